/* attacked_heap.h: a third-party heap under the names that assure/attack/faults.h calls. It counts nothing and has no
 * walk: what it notices shows in that it ends the program. */
#ifndef ATTACKED_HEAP_H
#define ATTACKED_HEAP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What heapwright._heaps.foreign.source writes for an adapter; see driver.c. */
extern const unsigned foreign_align, foreign_has_realloc, foreign_has_aligned_alloc;
unsigned char *foreign_array(void);
int foreign_init(void *memory, size_t bytes);
void *foreign_malloc(size_t size);
void *foreign_realloc(void *pointer, size_t size);
void *foreign_aligned_alloc(size_t align, size_t size);
void foreign_free(void *pointer);

#define ATTACKED_ALIGNMENT foreign_align
#define ATTACKED_RESIZE attacked_resize

static uintptr_t attacked_lowest = UINTPTR_MAX, attacked_highest; /* of all bytes that objects had */

static void *attacked_noted(void *object, size_t size)
{
    const uintptr_t at = (uintptr_t)object;
    if (object != NULL) {
        attacked_lowest = at < attacked_lowest ? at : attacked_lowest;
        attacked_highest = at + size > attacked_highest ? at + size : attacked_highest;
    }
    return object;
}

static struct attacked_heap *attacked_init(void *memory, size_t bytes)
{
    void *const arena = bytes && foreign_array() ? foreign_array() : memory;
    return foreign_init(bytes ? arena : NULL, bytes) ? memory : NULL;
}

static void *attacked_malloc(struct attacked_heap *heap, size_t size)
{
    (void)heap;
    return attacked_noted(foreign_malloc(size ? size : 1u), size);
}

/* As in the driver of replays: a heap without aligned requests gets none stricter than its own alignment. */
static void *attacked_aligned_alloc(struct attacked_heap *heap, size_t align, size_t size)
{
    if (align > foreign_align && foreign_has_aligned_alloc) {
        return attacked_noted(foreign_aligned_alloc(align, size ? size : 1u), size);
    }
    return attacked_malloc(heap, size);
}

static void attacked_free(struct attacked_heap *heap, void *object)
{
    (void)heap;
    foreign_free(object);
}

/* A heap without realloc moves each object, and copies as many bytes as fit: those of the smaller of the two. */
static void *attacked_resize(struct attacked_heap *heap, void *object, size_t had, size_t size)
{
    if (foreign_has_realloc) {
        return attacked_noted(foreign_realloc(object, size ? size : 1u), size);
    }
    void *moved = attacked_malloc(heap, size);
    if (moved != NULL) {
        memcpy(moved, object, had < size ? had : size);
        foreign_free(object);
    }
    return moved;
}

static int attacked_check(struct attacked_heap *heap)
{
    (void)heap;
    return 0;
}

#endif
