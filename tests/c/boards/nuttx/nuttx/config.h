#pragma once
#define CONFIG_BUILD_FLAT 1
#define CONFIG_MM_REGIONS 1
#define CONFIG_DEBUG_MM 1
#define CONFIG_FS_PROCFS 1
