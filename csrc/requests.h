/* requests.h: request sizes: which sizes a pool is offered, and how failures are counted. */
#ifndef HW_REQUESTS_H
#define HW_REQUESTS_H

#include "arena.h"

static inline void count_refused(const struct hw_policy *p, struct hw_heap *h)
{
    store4(h, p->refused_at, load4(h, p->refused_at) + 1u);
}

/* What a request of `size` bytes asks the pools for. */
static inline size_t request_for(const struct hw_policy *p, size_t size)
{
    if (p->empty_as_one == 0 && size == 0) {
        return 1u; /* an empty object is served as one byte */
    }
    return size;
}

/* Whether a pool is offered a request of n bytes, n <= HW_MAX_REQUEST. */
static inline int pool_takes(const struct hw_pool *pool, uint32_t n)
{
    if (pool->min_size > 1u && n < pool->min_size) {
        return 0;
    }
    if (pool->max_size < HW_MAX_REQUEST && n > pool->max_size) {
        return 0;
    }
    return 1;
}

#endif
