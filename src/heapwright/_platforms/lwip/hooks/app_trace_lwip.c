/* app_trace_lwip.c: records the calls of lwIP's heap, and of its pools.
 *
 * Linked with
 * -Wl,--wrap=mem_malloc,--wrap=mem_calloc,--wrap=mem_free,--wrap=mem_trim,--wrap=memp_malloc,--wrap=memp_free.
 */
#include "lwip/opt.h"

#include "lwip/mem.h"
#include "lwip/memp.h"
#include "lwip/sys.h"

#define APP_TRACE_ENTER()                                                                                              \
    SYS_ARCH_DECL_PROTECT(old);                                                                                        \
    SYS_ARCH_PROTECT(old)
#define APP_TRACE_LEAVE() SYS_ARCH_UNPROTECT(old)

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() ((uint32_t)sys_now())
#define APP_TRACE_TICKS_PER_SECOND 1000u
#endif

#include "app_trace_ring.h"

#if MEMP_OVERFLOW_CHECK
#error "lwIP's memp_malloc has another signature with MEMP_OVERFLOW_CHECK: record without it"
#endif

void *__real_mem_malloc(mem_size_t size);
void *__real_mem_calloc(mem_size_t count, mem_size_t size);
void *__real_mem_trim(void *pointer, mem_size_t size);
void __real_mem_free(void *pointer);
void *__real_memp_malloc(memp_t type);
void __real_memp_free(memp_t type, void *pointer);

void *__wrap_mem_malloc(mem_size_t size);
void *__wrap_mem_calloc(mem_size_t count, mem_size_t size);
void *__wrap_mem_trim(void *pointer, mem_size_t size);
void __wrap_mem_free(void *pointer);
void *__wrap_memp_malloc(memp_t type);
void __wrap_memp_free(memp_t type, void *pointer);

void *__wrap_mem_malloc(mem_size_t size)
{
    void *pointer = __real_mem_malloc(size);
    app_trace_allocated(pointer, size);
    return pointer;
}

void *__wrap_mem_calloc(mem_size_t count, mem_size_t size)
{
    void *pointer = __real_mem_calloc(count, size);
    app_trace_cleared(pointer, (size_t)count * size);
    return pointer;
}

/* Cuts an object short, where it lies. */
void *__wrap_mem_trim(void *pointer, mem_size_t size)
{
    void *trimmed = __real_mem_trim(pointer, size);
    app_trace_resized(pointer, trimmed, size);
    return trimmed;
}

void __wrap_mem_free(void *pointer)
{
    app_trace_freed(pointer);
    __real_mem_free(pointer);
}

#if MEMP_MEM_MALLOC /* pools are in the heap, which records them */

void *__wrap_memp_malloc(memp_t type)
{
    return __real_memp_malloc(type);
}

void __wrap_memp_free(memp_t type, void *pointer)
{
    __real_memp_free(type, pointer);
}

#else

/* The call site is the pool: an address in its descriptor, memp_TCP_PCB and the like, which the program's ELF file
 * names. */
void *__wrap_memp_malloc(memp_t type)
{
    void *pointer = __real_memp_malloc(type);
    trace_allocated(pointer, TRACE_MALLOC, (uint32_t)memp_pools[type]->size,
                    (uint32_t)(uintptr_t)memp_pools[type] + 2u);
    return pointer;
}

void __wrap_memp_free(memp_t type, void *pointer)
{
    app_trace_freed(pointer);
    __real_memp_free(type, pointer);
}

#endif
