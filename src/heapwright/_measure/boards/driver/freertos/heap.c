/* heap.c: one of the kernel's own heaps, HEAP_FILE, with the lock that the build chooses. */
#include <stdlib.h>
#include <string.h>

#define MPU_WRAPPERS_INCLUDED_FROM_API_FILE
#include "FreeRTOS.h"
#include "task.h"
#undef MPU_WRAPPERS_INCLUDED_FROM_API_FILE

#ifdef HEAP_CRITICAL
#define vTaskSuspendAll() taskENTER_CRITICAL()
#define xTaskResumeAll() (taskEXIT_CRITICAL(), pdFALSE)
#endif

#include HEAP_FILE
