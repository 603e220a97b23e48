/* FreeRTOSConfig.h: what lwIP's port for FreeRTOS needs of the kernel that the other programs here do without. */
#ifndef LWIP_EXAMPLE_FREERTOS_CONFIG_H
#define LWIP_EXAMPLE_FREERTOS_CONFIG_H

#define configUSE_RECURSIVE_MUTEXES 1
#define INCLUDE_vTaskSuspend 1

#include "../freertos/FreeRTOSConfig.h"

/* It sleeps, so that several emulated boards share a processor. */
#undef configUSE_IDLE_HOOK
#define configUSE_IDLE_HOOK 1

#endif
