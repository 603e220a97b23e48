/* app_mbedtls.c: app_heap as the memory of mbedTLS.
 *
 * mbedTLS holds no lock when it allocates: where several threads use it, the recipe's threads must be "lock" or
 * "cached".
 */
#include "app_mbedtls.h"

#include "mbedtls/platform.h"

#ifndef MBEDTLS_PLATFORM_MEMORY
#error "define MBEDTLS_PLATFORM_MEMORY in the configuration of mbedTLS"
#endif

static struct app_heap *heap;

void *app_mbedtls_calloc(size_t count, size_t size)
{
    return heap ? app_calloc(heap, count, size) : NULL;
}

void app_mbedtls_free(void *pointer)
{
    if (pointer != NULL) {
        app_free(heap, pointer);
    }
}

int app_mbedtls_use(void *arena, size_t bytes)
{
    heap = app_init(arena, bytes);
#ifndef MBEDTLS_PLATFORM_CALLOC_MACRO
    mbedtls_platform_set_calloc_free(app_mbedtls_calloc, app_mbedtls_free);
#endif
    return heap ? 0 : -1;
}

struct app_heap *app_mbedtls_heap(void)
{
    return heap;
}
