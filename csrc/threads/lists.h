/* threads/lists.h: the lists of blocks that a thread keeps, and their classes of size; see threads.h. */
#ifndef HW_THREADS_LISTS_H
#define HW_THREADS_LISTS_H

#include "check.h"

#ifdef HW_EXPLORE
#define HW_LOCK(heap) ((uintptr_t)(heap)->base)
#define HW_UNLOCK(heap, key) ((void)(heap), (void)(key))
#define HW_THREAD(heap) ((heap)->thread)
#define HW_THREAD_BEGINS(heap) ((void)(heap))
#define HW_PREFETCH(pointer) ((void)(pointer))
#endif

/* What a thread keeps: its cache, in which heap. All zero before its first call. */
struct hw_thread {
    struct hw_heap *heap; /* NULL: it has none */
    uint32_t cache;       /* where in the arena */
};

/* Where in a cache its numbers lie, ahead of the lists: the next cache; the sum of what its lists may hold, in bytes;
 * the list that shrank last. Each list has a head and a word of two halves: how many blocks it holds, how many it may.
 */
enum { HW_CACHE_NEXT = 0, HW_CACHE_GRANTED = 4, HW_CACHE_TURN = 8, HW_CACHE_LISTS = 12 };

/* Classes to an octave, as a power of two; most blocks that are taken or given back at a time; most that a list may
 * hold; how many lists are looked at for one that can shrink; bytes that are cut at one go; by which share the heap
 * grows until the depot is emptied. */
enum {
    HW_CACHE_FINE = 3,
    HW_CACHE_BATCH = 32,
    HW_CACHE_MOST = 256,
    HW_CACHE_LOOKS = 16,
    HW_CACHE_CUT = 4096,
    HW_DEPOT_GROWTH = 32
};

/* ---- classes of size --------------------------------------------------------------------------------------------- */

/* The class of a number of units: one for each number up to 2^(FINE + 1), then 2^FINE per octave. */
HW_HOT uint32_t cache_class(uint32_t units)
{
    const uint32_t coarse = highest_bit(units | (uint32_t)1 << HW_CACHE_FINE) - HW_CACHE_FINE;
    return (coarse << HW_CACHE_FINE) + (units >> coarse);
}

/* The list that keeps blocks of this size. */
HW_HOT uint32_t cache_list(const struct hw_policy *p, uint32_t block)
{
    const struct hw_quick *q = &p->cache;
    if (q->block_doubles) {
        return highest_bit(block) - highest_bit(q->block_least);
    }
    if (p->cache_tabled) {
        return p->cache_ranks[block >> q->block_unit_shift] - 1u;
    }
    return cache_class(block >> q->block_unit_shift) - cache_class(q->block_least >> q->block_unit_shift);
}

/* The list that serves n bytes, at most the largest that are cached: all its blocks are large enough. */
HW_HOT uint32_t cache_list_for(const struct hw_policy *p, uint32_t n)
{
    const struct hw_quick *q = &p->cache;
    if (q->block_doubles) {
        return cache_list(p, quick_block(q, n));
    }
    if (p->cache_tabled) {
        return p->cache_ranks[(n + q->block_header - 1u) >> q->block_unit_shift];
    }
    const uint32_t less = (quick_block(q, n) >> q->block_unit_shift) - 1u;
    return cache_class(less) + 1u - cache_class(q->block_least >> q->block_unit_shift);
}

/* The smallest block that a list keeps: what it is filled with. */
static inline uint32_t cache_block(const struct hw_quick *q, uint32_t list)
{
    if (q->block_doubles) {
        return q->block_least << list;
    }
    const uint32_t class = list + cache_class(q->block_least >> q->block_unit_shift);
    const uint32_t coarse = class < (uint32_t)2 << HW_CACHE_FINE ? 0 : (class >> HW_CACHE_FINE) - 1u;
    return (class - (coarse << HW_CACHE_FINE)) << coarse << q->block_unit_shift;
}

/* Payload bytes of the largest block that a list keeps. */
static inline uint32_t cache_capacity(const struct hw_quick *q, uint32_t list)
{
    if (q->block_doubles || list + 1u == q->count) {
        return cache_block(q, list) - q->block_header;
    }
    return cache_block(q, list + 1u) - ((uint32_t)1 << q->block_unit_shift) - q->block_header;
}

/* Whether a request has a list. */
HW_HOT int is_cached_size(const struct hw_policy *p, size_t size)
{
    return size <= p->cache_largest;
}

/* The list of a used block; the number of lists where it has none. */
HW_HOT uint32_t cache_list_of(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    const uint32_t block = heap_capacity(p, h, at) + p->cache.block_header;
    return quick_holds(&p->cache, block) ? cache_list(p, block) : p->cache.count;
}

/* ---- the lists of a thread --------------------------------------------------------------------------------------- */

HW_HOT uint32_t cache_head(uint32_t cache, uint32_t list)
{
    return cache + HW_CACHE_LISTS + 8u * list;
}

/* The numbers of the list at `head`, behind it: how many blocks it may hold, in the upper half, and how many more, in
 * the lower. */
HW_HOT uint32_t cache_numbers(struct hw_heap *h, uint32_t head)
{
    return load4_behind(h, head, 4);
}

HW_HOT void cache_count(struct hw_heap *h, uint32_t head, uint32_t numbers)
{
    store4_behind(h, head, 4, numbers);
}

static inline uint32_t cache_most(struct hw_heap *h, uint32_t head)
{
    return cache_numbers(h, head) >> 16;
}

static inline uint32_t cache_held(struct hw_heap *h, uint32_t head)
{
    const uint32_t numbers = cache_numbers(h, head);
    return (numbers >> 16) - (numbers & 0xffffu);
}

/* Lets the list at `head` hold `most` blocks, of which it has `held`. */
static inline void cache_set(struct hw_heap *h, uint32_t head, uint32_t most, uint32_t held)
{
    cache_count(h, head, most << 16 | (most - held));
}

/* Takes the first block off the list at `head`: the address of its payload; 0 where the list is empty. */
HW_HOT uint32_t cache_pop(struct hw_heap *h, uint32_t head)
{
    const uint32_t at = load4(h, head);
    if (at) {
        const uint32_t next = load4(h, at);
        HW_PREFETCH(arena_pointer(h, next)); /* the next request may ask for its link */
        store4(h, head, next);
        cache_count(h, head, cache_numbers(h, head) + 1u);
    }
    return at;
}

/* Puts a block on the list at `head`; 0 where the list holds as many as it may. */
HW_HOT int cache_push(struct hw_heap *h, uint32_t head, uint32_t at)
{
    const uint32_t numbers = cache_numbers(h, head);
    if ((numbers & 0xffffu) == 0) {
        return 0;
    }
    store4(h, at, load4(h, head));
    store4_last(h, head, at);
    cache_count(h, head, numbers - 1u);
    return 1;
}

/* Keeps a block in its list; 0 where it has none or that is full. */
HW_HOT int cache_keep(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t at)
{
    const uint32_t block = heap_capacity(p, h, at) + p->cache.block_header;
    return quick_holds(&p->cache, block) && cache_push(h, cache_head(cache, cache_list(p, block)), at);
}

/* Lets a list hold twice as many blocks, where all lists together stay within their bytes; 0 where they do not. */
static inline int cache_widen(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    const uint32_t head = cache_head(cache, list);
    const uint32_t most = cache_most(h, head);
    const uint32_t more = most ? most : 1u;
    const uint32_t granted = load4(h, cache + HW_CACHE_GRANTED) + more * cache_capacity(&p->cache, list);
    if (granted > p->cache_bytes || most >= HW_CACHE_MOST) {
        return 0;
    }
    cache_set(h, head, most + more, cache_held(h, head));
    store4(h, cache + HW_CACHE_GRANTED, granted);
    return 1;
}

#endif
