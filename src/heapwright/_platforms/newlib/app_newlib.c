/* app_newlib.c: app_heap as the malloc of newlib and newlib-nano.
 *
 * Newlib's own functions allocate through those that take a struct _reent (_malloc_r, ...); all are here, so that no
 * other allocator is linked, and with it no _sbrk. Each call is made between __malloc_lock and __malloc_unlock, which
 * a program of several threads defines, or its RTOS's port for newlib.
 */
#include "app_heap.h"

#include <errno.h>
#include <malloc.h>
#include <reent.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(APP_ARENA_BYTES)
static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[APP_ARENA_BYTES];
#define ARENA_BEGIN arena
#define ARENA_END (arena + sizeof arena)
#elif defined(APP_ARENA_BEGIN) && defined(APP_ARENA_END)
extern unsigned char APP_ARENA_BEGIN[], APP_ARENA_END[];
#define ARENA_BEGIN APP_ARENA_BEGIN
#define ARENA_END APP_ARENA_END
#else
#error "define APP_ARENA_BYTES, or APP_ARENA_BEGIN and APP_ARENA_END, symbols of the linker script; see app_README.md"
#endif

static struct app_heap *heap;

static void make_heap(void)
{
    const uintptr_t most = APP_ARENA_ALIGNMENT - 1u;
    unsigned char *begin = ARENA_BEGIN + (-(uintptr_t)ARENA_BEGIN & most);
    heap = app_init(begin, (size_t)(ARENA_END - begin));
}

static struct app_heap *enter(struct _reent *reent)
{
    __malloc_lock(reent);
    if (heap == NULL) {
        make_heap();
    }
    return heap;
}

static void *leave(struct _reent *reent, void *memory)
{
    if (memory == NULL) {
        reent->_errno = ENOMEM;
    }
    __malloc_unlock(reent);
    return memory;
}

/* For app_statistics() and app_check(), under the same lock. NULL before the first call. */
struct app_heap *app_libc_heap(void)
{
    return heap;
}

void *_malloc_r(struct _reent *reent, size_t size)
{
    return leave(reent, enter(reent) ? app_malloc(heap, size) : NULL);
}

void _free_r(struct _reent *reent, void *pointer)
{
    if (pointer != NULL) {
        app_free(enter(reent), pointer);
        __malloc_unlock(reent);
    }
}

void *_calloc_r(struct _reent *reent, size_t count, size_t size)
{
    return leave(reent, enter(reent) ? app_calloc(heap, count, size) : NULL);
}

void *_realloc_r(struct _reent *reent, void *pointer, size_t size)
{
    return leave(reent, enter(reent) ? app_realloc(heap, pointer, size) : NULL);
}

void *_memalign_r(struct _reent *reent, size_t alignment, size_t size)
{
    return leave(reent, enter(reent) ? app_aligned_alloc(heap, alignment, size) : NULL);
}

size_t _malloc_usable_size_r(struct _reent *reent, void *pointer)
{
    const size_t bytes = pointer ? app_usable_size(enter(reent), pointer) : 0;
    if (pointer) {
        __malloc_unlock(reent);
    }
    return bytes;
}

void *malloc(size_t size)
{
    return _malloc_r(_REENT, size);
}

void free(void *pointer)
{
    _free_r(_REENT, pointer);
}

void *calloc(size_t count, size_t size)
{
    return _calloc_r(_REENT, count, size);
}

void *realloc(void *pointer, size_t size)
{
    return _realloc_r(_REENT, pointer, size);
}

void *memalign(size_t alignment, size_t size)
{
    return _memalign_r(_REENT, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return _memalign_r(_REENT, alignment, size);
}

size_t malloc_usable_size(void *pointer)
{
    return _malloc_usable_size_r(_REENT, pointer);
}
