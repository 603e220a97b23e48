/* ESP-IDF's task.h: what app_trace_esp_idf.c uses. */
#pragma once
typedef struct tskTaskControlBlock *TaskHandle_t;
TaskHandle_t xTaskGetCurrentTaskHandle(void);
