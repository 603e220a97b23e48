/* FreeRTOSConfig.h: a kernel for the test of the platform, on the POSIX port and on a Cortex-M3 under picolibc. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <assert.h>

#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configCPU_CLOCK_HZ 25000000
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 256
#define configMAX_TASK_NAME_LEN 10
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0
#define configUSE_MALLOC_FAILED_HOOK 1
#define configUSE_MUTEXES 1
#define configCHECK_FOR_STACK_OVERFLOW 0
#ifndef configTOTAL_HEAP_SIZE
#define configTOTAL_HEAP_SIZE 65536
#endif
#define configASSERT(holds) assert(holds)

#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskDelay 1

/* Cortex-M3; picolibc's start-up code calls its vectors so. */
#define configKERNEL_INTERRUPT_PRIORITY 255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 160
#define configCHECK_HANDLER_INSTALLATION 0
#define vPortSVCHandler arm_svc_isr
#define xPortPendSVHandler arm_pendsv_isr
#define xPortSysTickHandler arm_systick_isr

#endif
