/* app_lwip_opts.h: to be included by lwipopts.h, before or after its other options. */
#ifndef APP_LWIP_OPTS_H
#define APP_LWIP_OPTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *app_lwip_malloc(size_t size);
void *app_lwip_calloc(size_t count, size_t size);
void app_lwip_free(void *pointer);

#ifdef __cplusplus
}
#endif

/* Bytes of the arena, in the place of MEM_SIZE. */
#ifndef APP_LWIP_BYTES
#define APP_LWIP_BYTES 32768
#endif

/* lwIP before 2.2.1 wants APP_LWIP_BEFORE_2_2_1. */
#ifdef APP_LWIP_BEFORE_2_2_1
#define MEM_LIBC_MALLOC 1
#define mem_clib_malloc app_lwip_malloc
#define mem_clib_calloc app_lwip_calloc
#define mem_clib_free app_lwip_free
#else
#define MEM_CUSTOM_ALLOCATOR 1
#define MEM_CUSTOM_MALLOC app_lwip_malloc
#define MEM_CUSTOM_CALLOC app_lwip_calloc
#define MEM_CUSTOM_FREE app_lwip_free
#endif

/* The pools, too: 0 before this file leaves them to lwIP. */
#ifndef MEMP_MEM_MALLOC
#define MEMP_MEM_MALLOC 1
#endif

#endif
