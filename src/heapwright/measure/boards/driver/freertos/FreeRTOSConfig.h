/* FreeRTOSConfig.h: a kernel to measure a heap in. One task calls the heap; asserts and trace macros are empty. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configCPU_CLOCK_HZ 25000000
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 256
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 1 /* the kernel's own objects are static: the heap has the trace's alone */
#define configKERNEL_PROVIDED_STATIC_MEMORY 1
#define configAPPLICATION_ALLOCATED_HEAP                                                                               \
    1 /* ucHeap, whose address the linker is told; configTOTAL_HEAP_SIZE is given */

/* Of Cortex-M. */
#define configENABLE_MPU 0
#define configKERNEL_INTERRUPT_PRIORITY 255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 160
#define configCHECK_HANDLER_INSTALLATION 0
#define vPortSVCHandler hw_supervisor_call
#define xPortPendSVHandler hw_pending_call
#define xPortSysTickHandler hw_tick
#define SVC_Handler hw_supervisor_call /* newer ports' names */
#define PendSV_Handler hw_pending_call
#define SysTick_Handler hw_tick

#endif
