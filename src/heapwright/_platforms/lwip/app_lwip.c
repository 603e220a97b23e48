/* app_lwip.c: app_heap as the heap of lwIP, and as its pools where MEMP_MEM_MALLOC is on.
 *
 * lwIP holds no lock when it calls an allocator that is not its own. Pools give back from any context, so each call is
 * made under SYS_ARCH_PROTECT, as lwIP's pools are.
 */
#include "app_heap.h"

#include <string.h>

#include "lwip/opt.h"
#include "lwip/sys.h"

_Static_assert(APP_ALIGNMENT % MEM_ALIGNMENT == 0,
               "MEM_ALIGNMENT is more than the heap's: take a recipe with that align");

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[APP_LWIP_BYTES];
static struct app_heap *heap;

/* For app_statistics() and app_check(), under the same protection. NULL before the first call. */
struct app_heap *app_lwip_heap(void)
{
    return heap;
}

void *app_lwip_malloc(size_t size)
{
    SYS_ARCH_DECL_PROTECT(level);
    SYS_ARCH_PROTECT(level);
    if (heap == NULL) {
        heap = app_init(arena, sizeof arena);
    }
    void *memory = heap ? app_malloc(heap, size) : NULL;
    SYS_ARCH_UNPROTECT(level);
    return memory;
}

void *app_lwip_calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL;
    }
    void *memory = app_lwip_malloc(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void app_lwip_free(void *pointer)
{
    SYS_ARCH_DECL_PROTECT(level);
    SYS_ARCH_PROTECT(level);
    app_free(heap, pointer);
    SYS_ARCH_UNPROTECT(level);
}
