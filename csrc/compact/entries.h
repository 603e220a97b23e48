/* compact/entries.h: the public entry points of a heap whose objects move, see heapwright.h: the pool is its recipe's
 * only one. */
#ifndef HW_COMPACT_ENTRIES_H
#define HW_COMPACT_ENTRIES_H

#include "counters.h"
#include "events.h"
#include "requests.h"
#include "compact/objects.h"

/* Bytes of an object's block, header included. */
static inline uint32_t object_bytes(const struct hw_compact *c, struct hw_heap *h, void **reference)
{
    const uint32_t k = reference_number(h, reference);
    return compact_size(c, h, k, load_reference(h, k) - c->header);
}

/* Counts a reference that leads to no object; 0 for such a one. */
static inline int is_reference(const struct hw_policy *p, struct hw_heap *h, void **reference)
{
    if (p->checks && !leads_to_object(&p->pools[0].compact, h, reference)) {
        count_misuse(p->misused_at, h);
        return 0;
    }
    return 1;
}

static inline int hw_handle_alloc(const struct hw_policy *p, struct hw_heap *heap, void **reference, size_t size)
{
    const uint32_t n = size ? (uint32_t)size : 1u;
    *reference = NULL;
    if (!exceeds(size, HW_MAX_REQUEST) && pool_takes(&p->pools[0], n) &&
        compact_malloc(&p->pools[0].compact, heap, reference, n)) {
        if (p->counters_at) {
            count_malloc(p, heap, object_bytes(&p->pools[0].compact, heap, reference));
        }
        HW_ALLOCATED(heap, reference, size);
        return 1;
    }
    count_refused(p, heap);
    if (p->counters_at) {
        keep_refused(p, heap, size);
    }
    HW_REFUSED(heap, size);
    return 0;
}

/* Whether an object may be made n bytes large: a smaller one it may always become. */
static inline int may_resize_to(const struct hw_pool *pool, uint32_t n)
{
    if (pool->min_size > 1u && n < pool->min_size) {
        return 1;
    }
    return pool_takes(pool, n);
}

static inline int hw_handle_realloc(const struct hw_policy *p, struct hw_heap *heap, void **reference, size_t size)
{
    const struct hw_compact *c = &p->pools[0].compact;
    const uint32_t n = size ? (uint32_t)size : 1u;
    if (*reference == NULL) {
        return hw_handle_alloc(p, heap, reference, size);
    }
    if (!is_reference(p, heap, reference)) {
        return 0;
    }
    const uint32_t bytes = p->counters_at ? object_bytes(c, heap, reference) : 0;
    if (!exceeds(size, HW_MAX_REQUEST) && may_resize_to(&p->pools[0], n) &&
        compact_resize(c, heap, reference_number(heap, reference), n)) {
        if (p->counters_at) {
            count_change(p, heap, bytes, object_bytes(c, heap, reference));
        }
        HW_RESIZED(heap, reference, reference, size);
        return 1;
    }
    count_refused(p, heap);
    if (p->counters_at) {
        keep_refused(p, heap, size);
    }
    HW_REFUSED(heap, size);
    return 0;
}

static inline void hw_handle_free(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    const struct hw_compact *c = &p->pools[0].compact;
    if (*reference == NULL || !is_reference(p, heap, reference)) {
        return;
    }
    HW_FREED(heap, reference);
    if (p->counters_at) {
        count_free_call(p, heap, object_bytes(c, heap, reference));
    }
    compact_release(c, heap, reference_number(heap, reference));
    *reference = NULL;
}

static inline void *hw_handle_pointer(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    (void)p;
    (void)heap;
    return *reference;
}

static inline size_t hw_handle_usable_size(const struct hw_policy *p, struct hw_heap *heap, void **reference)
{
    const struct hw_compact *c = &p->pools[0].compact;
    if (*reference == NULL) {
        return 0;
    }
    return (size_t)(object_bytes(c, heap, reference) - c->header);
}

#endif
