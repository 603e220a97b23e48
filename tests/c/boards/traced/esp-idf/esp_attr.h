/* ESP-IDF's esp_attr.h: code that stays in RAM. */
#pragma once
#define IRAM_ATTR
