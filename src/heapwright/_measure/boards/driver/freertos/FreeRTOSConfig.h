/* FreeRTOSConfig.h: a kernel to measure a heap in. One task calls the heap. HEAP_CONFIG: an application's own file;
 * without it asserts and trace macros are empty. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#ifdef HEAP_CONFIG
#undef FREERTOS_CONFIG_H /* the application's has the same guard, as a rule */
#include HEAP_CONFIG
#else
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configCPU_CLOCK_HZ 25000000
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 256
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#endif

/* The kernel's own objects are static: the heap has the trace's alone. A linked symbol sets the address of ucHeap. */
#undef configSUPPORT_DYNAMIC_ALLOCATION
#undef configSUPPORT_STATIC_ALLOCATION
#undef configKERNEL_PROVIDED_STATIC_MEMORY
#undef configAPPLICATION_ALLOCATED_HEAP
#undef configTOTAL_HEAP_SIZE
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 1
#define configKERNEL_PROVIDED_STATIC_MEMORY 1
#define configAPPLICATION_ALLOCATED_HEAP 1
#define configTOTAL_HEAP_SIZE HEAP_BYTES

/* What a task alone has not, and what the emulated board has otherwise. */
#undef configUSE_TIMERS
#undef configUSE_NEWLIB_REENTRANT
#undef configENABLE_MPU
#undef configKERNEL_INTERRUPT_PRIORITY
#undef configMAX_SYSCALL_INTERRUPT_PRIORITY
#undef configPRIO_BITS
#undef __NVIC_PRIO_BITS
#undef configCHECK_HANDLER_INSTALLATION
#define configUSE_TIMERS 0
#define configUSE_NEWLIB_REENTRANT 0
#define configENABLE_MPU 0
#define configKERNEL_INTERRUPT_PRIORITY 255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 160
#define configCHECK_HANDLER_INSTALLATION 0
#undef vPortSVCHandler
#undef xPortPendSVHandler
#undef xPortSysTickHandler
#define vPortSVCHandler hw_supervisor_call
#define xPortPendSVHandler hw_pending_call
#define xPortSysTickHandler hw_tick
#define SVC_Handler hw_supervisor_call /* newer ports' names */
#define PendSV_Handler hw_pending_call
#define SysTick_Handler hw_tick

#endif
