/* app_trace_newlib.c: records the calls of newlib's heap, those of the library itself included.
 *
 * Linked with -Wl,--wrap=_malloc_r,--wrap=_free_r,--wrap=_realloc_r,--wrap=_calloc_r,--wrap=_memalign_r,
 * --wrap=malloc,--wrap=calloc,--wrap=realloc. Some of them call others: only the outermost is recorded, and
 * __malloc_lock keeps other threads out meanwhile.
 */
#include <malloc.h>
#include <reent.h>

/* All is called between __malloc_lock and __malloc_unlock, but for app_trace_drain(). */
#define APP_TRACE_ENTER() __malloc_lock(_REENT)
#define APP_TRACE_LEAVE() __malloc_unlock(_REENT)

static const void *caller; /* of malloc() and its kin, which call what is recorded here */
#define APP_TRACE_CALLER() (caller != 0 ? caller : __builtin_return_address(0))

#include "app_trace_ring.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *pointer, size_t size);
void *__real__malloc_r(struct _reent *reent, size_t size);
void __real__free_r(struct _reent *reent, void *pointer);
void *__real__realloc_r(struct _reent *reent, void *pointer, size_t size);
void *__real__calloc_r(struct _reent *reent, size_t count, size_t size);
void *__real__memalign_r(struct _reent *reent, size_t alignment, size_t size);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *pointer, size_t size);
void *__wrap__malloc_r(struct _reent *reent, size_t size);
void __wrap__free_r(struct _reent *reent, void *pointer);
void *__wrap__realloc_r(struct _reent *reent, void *pointer, size_t size);
void *__wrap__calloc_r(struct _reent *reent, size_t count, size_t size);
void *__wrap__memalign_r(struct _reent *reent, size_t alignment, size_t size);

static unsigned inside;

/* Whether this call is the outermost. */
static int enter(struct _reent *reent)
{
    __malloc_lock(reent);
    return inside++ == 0;
}

static void leave(struct _reent *reent)
{
    inside--;
    __malloc_unlock(reent);
}

void *__wrap__malloc_r(struct _reent *reent, size_t size)
{
    const int outermost = enter(reent);
    void *pointer = __real__malloc_r(reent, size);
    if (outermost) {
        app_trace_allocated(pointer, size);
    }
    leave(reent);
    return pointer;
}

void __wrap__free_r(struct _reent *reent, void *pointer)
{
    if (enter(reent)) {
        app_trace_freed(pointer);
    }
    __real__free_r(reent, pointer);
    leave(reent);
}

void *__wrap__realloc_r(struct _reent *reent, void *pointer, size_t size)
{
    const int outermost = enter(reent);
    void *moved = __real__realloc_r(reent, pointer, size);
    if (outermost) {
        app_trace_resized(pointer, moved, size);
    }
    leave(reent);
    return moved;
}

void *__wrap__calloc_r(struct _reent *reent, size_t count, size_t size)
{
    const int outermost = enter(reent);
    void *pointer = __real__calloc_r(reent, count, size);
    if (outermost) {
        app_trace_cleared(pointer, count * size);
    }
    leave(reent);
    return pointer;
}

void *__wrap__memalign_r(struct _reent *reent, size_t alignment, size_t size)
{
    const int outermost = enter(reent);
    void *pointer = __real__memalign_r(reent, alignment, size);
    if (outermost) {
        app_trace_allocated(pointer, size);
    }
    leave(reent);
    return pointer;
}

static inline void called_from(const void *site)
{
    if (APP_TRACE_SITES) {
        __malloc_lock(_REENT);
        caller = site;
    }
}

static inline void called(void)
{
    if (APP_TRACE_SITES) {
        caller = 0;
        __malloc_unlock(_REENT);
    }
}

void *__wrap_malloc(size_t size)
{
    called_from(__builtin_return_address(0));
    void *pointer = __real_malloc(size);
    called();
    return pointer;
}

void *__wrap_calloc(size_t count, size_t size)
{
    called_from(__builtin_return_address(0));
    void *pointer = __real_calloc(count, size);
    called();
    return pointer;
}

void *__wrap_realloc(void *pointer, size_t size)
{
    called_from(__builtin_return_address(0));
    void *moved = __real_realloc(pointer, size);
    called();
    return moved;
}
