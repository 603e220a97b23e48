/* What app_trace_esp_idf.c uses of ESP-IDF's FreeRTOS, declared as its portmacro.h does. */
#pragma once
typedef struct {
    unsigned owner;
} portMUX_TYPE;
#define portMUX_INITIALIZER_UNLOCKED {0}
#define portENTER_CRITICAL_SAFE(lock) enter_critical(lock)
#define portEXIT_CRITICAL_SAFE(lock) exit_critical(lock)
void enter_critical(portMUX_TYPE *lock);
void exit_critical(portMUX_TYPE *lock);
