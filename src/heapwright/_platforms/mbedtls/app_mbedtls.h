/* app_mbedtls.h: app_heap as the memory of mbedTLS. It includes none of mbedTLS's headers: its configuration may
 * include this one. */
#ifndef APP_MBEDTLS_H
#define APP_MBEDTLS_H

#include "app_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lets mbedTLS allocate from the `bytes` bytes at `arena`, aligned to APP_ARENA_ALIGNMENT. To be called before any
 * function of mbedTLS. Returns 0, or -1 where the arena is too small for the heap's own data. */
int app_mbedtls_use(void *arena, size_t bytes);

/* For app_statistics() and app_check(), while mbedTLS does nothing. NULL before app_mbedtls_use(). */
struct app_heap *app_mbedtls_heap(void);

/* Functions that mbedTLS calls: set by app_mbedtls_use(), or by MBEDTLS_PLATFORM_CALLOC_MACRO and
 * MBEDTLS_PLATFORM_FREE_MACRO. */
void *app_mbedtls_calloc(size_t count, size_t size);
void app_mbedtls_free(void *pointer);

#ifdef __cplusplus
}
#endif

#endif
