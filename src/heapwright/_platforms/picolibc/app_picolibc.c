/* app_picolibc.c: app_heap as the malloc of picolibc.
 *
 * All functions of the objects in libc.a that hold its own allocator are here, so that it is not linked, and with it no
 * sbrk. Each call is made under picolibc's own lock, which a program of several threads gives it
 * (__retarget_lock_acquire_recursive and its kin).
 */
#include "app_heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/lock.h>

#if defined(APP_ARENA_BYTES)
static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[APP_ARENA_BYTES];
#define ARENA_BEGIN arena
#define ARENA_END (arena + sizeof arena)
#else
#ifndef APP_ARENA_BEGIN /* as picolibc's linker script calls them */
#define APP_ARENA_BEGIN __heap_start
#define APP_ARENA_END __heap_end
#endif
extern unsigned char APP_ARENA_BEGIN[], APP_ARENA_END[];
#define ARENA_BEGIN APP_ARENA_BEGIN
#define ARENA_END APP_ARENA_END
#endif

static struct app_heap *heap;

static void make_heap(void)
{
    const uintptr_t most = APP_ARENA_ALIGNMENT - 1u;
    unsigned char *begin = ARENA_BEGIN + (-(uintptr_t)ARENA_BEGIN & most);
    heap = app_init(begin, (size_t)(ARENA_END - begin));
}

static struct app_heap *enter(void)
{
    __LIBC_LOCK();
    if (heap == NULL) {
        make_heap();
    }
    return heap;
}

static void *leave(void *memory)
{
    __LIBC_UNLOCK();
    if (memory == NULL) {
        errno = ENOMEM;
    }
    return memory;
}

/* For app_statistics() and app_check(), under the same lock. NULL before the first call. */
struct app_heap *app_libc_heap(void)
{
    return heap;
}

void *malloc(size_t size)
{
    return leave(enter() ? app_malloc(heap, size) : NULL);
}

void free(void *pointer)
{
    if (pointer != NULL) {
        app_free(enter(), pointer);
        __LIBC_UNLOCK();
    }
}

void cfree(void *pointer)
{
    free(pointer);
}

void *calloc(size_t count, size_t size)
{
    return leave(enter() ? app_calloc(heap, count, size) : NULL);
}

void *realloc(void *pointer, size_t size)
{
    return leave(enter() ? app_realloc(heap, pointer, size) : NULL);
}

void *memalign(size_t alignment, size_t size)
{
    return leave(enter() ? app_aligned_alloc(heap, alignment, size) : NULL);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1u)) != 0) {
        return EINVAL;
    }
    void *found = enter() ? app_aligned_alloc(heap, alignment, size) : NULL;
    __LIBC_UNLOCK();
    if (found == NULL) {
        return ENOMEM;
    }
    *memory = found;
    return 0;
}

size_t malloc_usable_size(void *pointer)
{
    if (pointer == NULL) {
        return 0;
    }
    const size_t bytes = app_usable_size(enter(), pointer);
    __LIBC_UNLOCK();
    return bytes;
}
