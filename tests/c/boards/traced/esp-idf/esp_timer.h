/* ESP-IDF's esp_timer.h: what app_trace_esp_idf.c uses. */
#pragma once
#include <stdint.h>
int64_t esp_timer_get_time(void);
