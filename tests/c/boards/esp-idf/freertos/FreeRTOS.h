/* The spinlock of ESP-IDF's FreeRTOS, as its ports declare it; this stub counts. */
#pragma once

typedef struct {
    int held;
} portMUX_TYPE;

#define portMUX_INITIALIZER_UNLOCKED {0}
#define portENTER_CRITICAL_SAFE(mux) standin_enter(mux)
#define portEXIT_CRITICAL_SAFE(mux) standin_leave(mux)

void standin_enter(portMUX_TYPE *mux);
void standin_leave(portMUX_TYPE *mux);
