/* threads.h: one heap for several threads.
 *
 * With a lock each call is made under it, and nothing else differs. With caches each thread has quick lists of its own
 * before the lock: what it frees, it is given again without asking anybody. Lists that are empty are filled, and lists
 * that hold too much are emptied, several blocks at a time.
 *
 *     malloc:   the thread's list of that size -> under the lock: a block, and others for half of the list
 *     free:     the thread's list of that size -> under the lock: half of the list goes back
 *
 * Sizes come in classes, eight to an octave, so that few lists serve all requests: a request is given the smallest
 * block of the next class, or a larger one of that class.
 *
 * Between the lists and the heap lies the depot: a list of each class, which a batch of blocks joins and leaves without
 * a look at its neighbours. It holds at most a share of what the heap has ever covered; what is more goes back to the
 * heap. What the depot does not have is cut, a batch at one go, from free memory, else taken from there block by block;
 * only then does the heap grow.
 *
 * A cache is an object of the heap, which its thread's first call takes, so what it costs is part of the arena:
 *
 *     next cache | bytes that its lists may hold | the list that shrank last | head, numbers | head, numbers | ...
 *
 * How many blocks a list may hold follows what is asked for: twice as many after each miss and each overflow, as long
 * as all lists together stay within the recipe's bytes. Where they would not, another list, each in its turn, gives up
 * half for a list that missed.
 *
 * Nobody but the thread itself looks at its cache, except in the child of a fork, where that thread is gone. A list is
 * whole at every moment: the head is written last.
 *
 * The platform is reached through hooks: HW_LOCK() and HW_UNLOCK(); HW_THREAD(), where the calling thread keeps its
 * struct hw_thread; HW_STARTED() of a new heap; HW_THREAD_BEGINS() once a thread has a cache to be given back;
 * HW_PREFETCH(), where memory is slower than the processor by far.
 *
 * Sources: Bonwick and Adams 2001 (magazines and their depot); Ghemawat and Menage, TCMalloc (classes, caches of
 * threads that are bounded in bytes and start slowly, batches).
 */
#ifndef HW_THREADS_H
#define HW_THREADS_H

#include "largest.h"

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

/* Where the depot has how far the heap may grow until it is emptied; its first word is how many bytes it holds. */
enum { HW_DEPOT_UNTIL = 4 };

/* Classes to an octave, as a power of two; most blocks that are taken or given back at a time; most that a list may
 * hold; how many lists are looked at for one that can shrink; bytes that are cut at one go; which share of the heap the
 * depot may hold; by which share the heap grows until the depot is emptied. */
enum {
    HW_CACHE_FINE = 3,
    HW_CACHE_BATCH = 32,
    HW_CACHE_MOST = 256,
    HW_CACHE_LOOKS = 16,
    HW_CACHE_CUT = 4096,
    HW_DEPOT_SHARE = 8,
    HW_DEPOT_GROWTH = 32
};

/* Blocks on their way out of the depot or the heap: one for a request, whose payload lies at `at`, and others for a
 * list, each of which leads on to the next. */
struct hw_batch {
    uint32_t at; /* 0: there is none, and no others */
    uint32_t first;
    uint32_t blocks; /* how many from `first` on */
};

/* ---- classes of size -----------------------------------------------------------------------------------------------
 */

/* The class of so many units: one for each number up to 2^(FINE + 1), then 2^FINE to an octave. */
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

/* ---- the lists of a thread ----------------------------------------------------------------------------------------
 */

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

/* ---- the depot, under the lock -------------------------------------------------------------------------------------
 */

HW_HOT uint32_t depot_head(const struct hw_policy *p, uint32_t list)
{
    return p->depot_at + 8u + 4u * list;
}

/* Adds to what the depot holds, which 2^32 less `bytes` takes off. */
static inline void depot_account(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    store4(h, p->depot_at, load4(h, p->depot_at) + bytes);
}

/* Whether so many bytes are within the depot's share of what the heap has ever covered. */
static inline int depot_may_hold(const struct hw_policy *p, struct hw_heap *h, uint32_t bytes)
{
    return bytes <= (load4(h, p->shared_high_at) - p->control) / HW_DEPOT_SHARE;
}

/* Whether the heap has grown by so much that the depot is emptied before it takes in more. */
static inline int has_outgrown(const struct hw_policy *p, struct hw_heap *h)
{
    return heap_covered(p, h) > load4(h, p->depot_at + HW_DEPOT_UNTIL);
}

/* Gives the first `blocks` blocks of the list at `head` to the depot; to the heap where that would be too much. */
static inline void depot_give(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t head,
                              uint32_t blocks)
{
    const uint32_t bytes = blocks * cache_capacity(&p->cache, list);
    uint32_t at = load4(h, head);
    if (!has_outgrown(p, h) && depot_may_hold(p, h, load4(h, p->depot_at) + bytes)) {
        uint32_t last = at;
        for (uint32_t passed = 1; passed < blocks; passed++) {
            last = load4(h, last);
        }
        store4(h, head, load4(h, last));
        store4(h, last, load4(h, depot_head(p, list)));
        store4(h, depot_head(p, list), at);
        depot_account(p, h, bytes);
        return;
    }
    for (; blocks; blocks--) {
        const uint32_t next = load4(h, at);
        heap_free(p, h, at);
        at = next;
    }
    store4(h, head, at);
}

/* Takes a block out of the depot, and up to `most` with it. */
static inline struct hw_batch depot_take(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most)
{
    struct hw_batch got = {0, 0, 0};
    got.at = load4(h, depot_head(p, list));
    if (got.at == 0) {
        return got;
    }
    uint32_t last = got.at;
    uint32_t next = load4(h, last);
    got.first = most ? next : 0;
    while (got.blocks < most && next) {
        last = next;
        next = load4(h, last);
        got.blocks++;
    }
    store4(h, last, 0);
    store4(h, depot_head(p, list), next);
    depot_account(p, h, ~got.blocks * cache_capacity(&p->cache, list));
    return got;
}

/* Gives blocks of the depot back to the heap, at most a batch; 0 where it has none. */
HW_COLD int depot_yield(const struct hw_policy *p, struct hw_heap *h)
{
    uint32_t list = 0;
    if (load4(h, p->depot_at) == 0) {
        return 0;
    }
    while (load4(h, depot_head(p, list)) == 0) {
        list++;
    }
    struct hw_batch got = depot_take(p, h, list, HW_CACHE_BATCH - 1u);
    heap_free(p, h, got.at);
    while (got.first) {
        const uint32_t next = load4(h, got.first);
        heap_free(p, h, got.first);
        got.first = next;
    }
    return 1;
}

/* Ends a call that may have made the heap grow: once it has grown by a share since the depot was empty, what waits
 * there may be why. A batch goes back with each call then, until there is nothing left. */
static inline void depot_shrink(const struct hw_policy *p, struct hw_heap *h)
{
    if (has_outgrown(p, h) && !depot_yield(p, h)) {
        const uint32_t covered = heap_covered(p, h);
        store4(h, p->depot_at + HW_DEPOT_UNTIL, covered + covered / HW_DEPOT_GROWTH);
    }
}

/* ---- under the lock -----------------------------------------------------------------------------------------------
 */

/* Gives back blocks of a list until it holds at most `kept`, but at most a batch. */
static inline void cache_give_back(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list,
                                   uint32_t kept)
{
    const uint32_t head = cache_head(cache, list);
    const uint32_t held = cache_held(h, head);
    if (held > kept) {
        const uint32_t blocks = held - kept < HW_CACHE_BATCH ? held - kept : HW_CACHE_BATCH;
        depot_give(p, h, list, head, blocks);
        cache_set(h, head, cache_most(h, head), held - blocks);
    }
}

/* Lets another list hold half as many blocks as before: the next one that holds no more than a batch above that. */
static inline void cache_shrink_one(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t list = load4(h, cache + HW_CACHE_TURN);
    uint32_t most = 0;
    for (uint32_t looks = 0; looks < HW_CACHE_LOOKS && most == 0; looks++) {
        list = list + 1u < p->cache.count ? list + 1u : 0;
        most = cache_most(h, cache_head(cache, list));
    }
    store4(h, cache + HW_CACHE_TURN, list);
    const uint32_t head = cache_head(cache, list);
    cache_give_back(p, h, cache, list, most / 2u);
    const uint32_t held = cache_held(h, head);
    const uint32_t left = held > most / 2u ? held : most / 2u;
    cache_set(h, head, left, held);
    store4(h, cache + HW_CACHE_GRANTED,
           load4(h, cache + HW_CACHE_GRANTED) - (most - left) * cache_capacity(&p->cache, list));
}

/* Lets a list hold more, if need be at the cost of another; 0 where it cannot. */
static inline int cache_grow_list(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    if (cache_widen(p, h, cache, list)) {
        return 1;
    }
    if (cache_most(h, cache_head(cache, list)) >= HW_CACHE_MOST) {
        return 0;
    }
    cache_shrink_one(p, h, cache);
    return cache_widen(p, h, cache, list);
}

/* Gives back blocks of the lists from `list` on, at most a batch; returns the list to go on with, the number of lists
 * at the end. Looks at links alone: a thread that a fork ended may not have come to count what it took. */
HW_COLD uint32_t cache_empty(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    for (uint32_t blocks = 0; list < p->cache.count && blocks < HW_CACHE_BATCH; blocks++) {
        const uint32_t head = cache_head(cache, list);
        const uint32_t at = load4(h, head);
        if (at) {
            store4(h, head, load4(h, at));
            heap_free(p, h, at);
        } else {
            cache_set(h, head, cache_most(h, head), 0);
            list++;
        }
    }
    return list;
}

/* Serves n bytes or nothing; a refusal does not count. */
static inline void *malloc_uncounted(const struct hw_policy *p, struct hw_heap *h, uint32_t n)
{
    const uint32_t refused = load4(h, p->refused_at);
    void *memory = hw_malloc(p, h, n);
    store4(h, p->refused_at, refused);
    return memory;
}

/* Makes a cache for a thread that has none; 1 where it has one now. */
HW_COLD int cache_open(const struct hw_policy *p, struct hw_heap *h, struct hw_thread *t)
{
    void *memory = t->heap == NULL ? malloc_uncounted(p, h, p->cache_object) : NULL;
    if (memory == NULL) {
        return 0;
    }
    const uint32_t cache = address_of(p, h, memory);
    for (uint32_t at = 0; at < p->cache_object; at += 4u) {
        store4(h, cache + at, 0);
    }
    store4(h, cache + HW_CACHE_NEXT, load4(h, p->caches_at));
    store4(h, p->caches_at, cache);
    t->cache = cache;
    t->heap = h;
    return 1;
}

/* Serves n bytes, growing only where `grows`: the address of the payload, or 0. */
static inline uint32_t serve(const struct hw_policy *p, struct hw_heap *h, uint32_t n, int grows)
{
    if (!grows) {
        const uint32_t high = load4(h, p->shared_high_at);
        const uint32_t at = heap_find(p, h, n);
        if (p->cache_finds_new && at && load4(h, p->shared_high_at) != high) {
            heap_release(p, h, at); /* it was never used, and there may be a smaller block that was */
            store4(h, p->shared_high_at, high);
            return 0;
        }
        return at;
    }
    const void *memory = malloc_uncounted(p, h, n);
    return memory ? address_of(p, h, memory) : 0;
}

/* One block of the heap cut into several: the last one may be larger by what was too little for a block. */
static inline struct hw_batch cut_batch(const struct hw_policy *p, struct hw_heap *h, uint32_t size, uint32_t most,
                                        int grows)
{
    const struct hw_general *g = &p->pools[p->pool_count - 1u].general;
    struct hw_batch got = {0, 0, 0};
    got.at = serve(p, h, (most + 1u) * size - p->cache.block_header, grows);
    if (got.at == 0) {
        return got;
    }
    uint32_t b = block_of(g, h, got.at);
    uint32_t word = load_word(g, h, b);
    uint32_t left = word_size(g, word);
    got.first = got.at;
    while (got.blocks < most) {
        got.blocks++;
        store_word(g, h, b, size_word(g, size, word_flags(g, word)));
        store4(h, payload_of(g, b), got.blocks < most ? payload_of(g, b + size) : 0);
        b += size;
        left -= size;
        write_used(g, h, b, left, HW_PREV_USED);
        clear_tag(g, h, b);
        note_block_made(h, g->overhead);
        word = load_word(g, h, b);
    }
    got.at = payload_of(g, b);
    return got;
}

/* One block of the heap after the other. */
static inline struct hw_batch single_blocks(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most,
                                            int grows)
{
    const uint32_t n = cache_block(&p->cache, list) - p->cache.block_header;
    struct hw_batch got = {0, 0, 0};
    got.at = serve(p, h, n, grows);
    while (got.at && got.blocks < most) {
        const uint32_t at = serve(p, h, n, grows);
        if (at == 0) {
            break;
        }
        if (cache_list_of(p, h, at) != list) {
            heap_free(p, h, at); /* larger than it had to be: the rest was too small for a block */
            break;
        }
        store4(h, at, got.first);
        got.first = at;
        got.blocks++;
    }
    return got;
}

/* A block of a list's size out of the heap, and up to `most` with it. */
static inline struct hw_batch heap_take(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t most,
                                        int grows)
{
    const uint32_t size = cache_block(&p->cache, list);
    const uint32_t fit = HW_CACHE_CUT / size;
    if (p->cache_cuts && most && fit) {
        const struct hw_batch got = cut_batch(p, h, size, most < fit ? most : fit, grows);
        if (got.at) {
            return got;
        }
    }
    return single_blocks(p, h, list, most, grows);
}

/* After a miss: lets the list of requests for n bytes hold more, and fills half of it. Returns one more block's
 * payload, for the request; 0 where there is none. What the heap refuses meanwhile does not count. */
HW_COLD uint32_t cache_fill(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t n)
{
    const uint32_t list = cache_list_for(p, n);
    const uint32_t head = cache_head(cache, list);
    (void)cache_grow_list(p, h, cache, list);
    const uint32_t most = cache_most(h, head);
    const uint32_t half = most / 2u < HW_CACHE_BATCH ? most / 2u : HW_CACHE_BATCH - 1u;
    struct hw_batch got = depot_take(p, h, list, half);
    for (int grows = 0; got.at == 0 && grows < 2; grows++) {
        got = heap_take(p, h, list, half, grows);
    }
    store4_last(h, head, got.first);
    cache_set(h, head, most, got.blocks);
    return got.at;
}

/* After a free that found its list full: lets it hold more, at the cost of another only where it may hold next to
 * nothing; else gives half of it back. */
static inline void cache_relieve(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    const uint32_t most = cache_most(h, cache_head(cache, list));
    const int grown = most < 2u ? cache_grow_list(p, h, cache, list) : cache_widen(p, h, cache, list);
    if (!grown) {
        cache_give_back(p, h, cache, list, most / 2u);
    }
}

/* After a refusal: whether the thread's cache or the depot had something to give back. The refusal, which raised the
 * number of them beyond `refused`, is forgotten then. */
static inline int cache_yields(const struct hw_policy *p, struct hw_heap *h, struct hw_thread *t, uint32_t refused)
{
    int yielded = 0;
    if (t->heap == h) {
        for (uint32_t list = 0; list < p->cache.count; list++) {
            while (cache_held(h, cache_head(t->cache, list))) {
                cache_give_back(p, h, t->cache, list, 0);
                yielded = 1;
            }
        }
    }
    while (depot_yield(p, h)) {
        yielded = 1;
    }
    if (yielded) {
        store4(h, p->refused_at, refused);
    }
    return yielded;
}

/* Takes a cache out of the heap's list of caches, and gives it back. O(threads). */
static inline void cache_close(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t before = p->caches_at;
    while (load4(h, before) != cache) {
        before = load4(h, before) + HW_CACHE_NEXT;
    }
    store4(h, before, load4(h, cache + HW_CACHE_NEXT));
    heap_free(p, h, cache);
}

/* ---- checking ------------------------------------------------------------------------------------------------------
 */

/* The number of blocks in a list, no more than `most`; UINT32_MAX where one is no used block of the list's class. */
static inline uint32_t count_list(const struct hw_policy *p, struct hw_heap *h, uint32_t list, uint32_t head,
                                  uint32_t most)
{
    uint32_t blocks = 0;
    uint32_t at = load4(h, head);
    while (at && blocks < most) {
        if (!heap_has_used(p, h, at) || cache_list_of(p, h, at) != list) {
            return UINT32_MAX;
        }
        blocks++;
        at = load4(h, at);
    }
    return at ? UINT32_MAX : blocks;
}

static inline int check_depot(const struct hw_policy *p, struct hw_heap *h)
{
    const uint32_t told = load4(h, p->depot_at);
    uint32_t bytes = 0;
    if (!depot_may_hold(p, h, told)) {
        return HW_BROKEN_QUICK;
    }
    for (uint32_t list = 0; list < p->cache.count; list++) {
        const uint32_t capacity = cache_capacity(&p->cache, list);
        const uint32_t blocks = count_list(p, h, list, depot_head(p, list), told / capacity);
        if (blocks == UINT32_MAX) {
            return HW_BROKEN_QUICK;
        }
        bytes += blocks * capacity;
    }
    return bytes == told ? 0 : HW_BROKEN_QUICK;
}

static inline int check_cache(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t granted = 0;
    for (uint32_t list = 0; list < p->cache.count; list++) {
        const uint32_t head = cache_head(cache, list);
        if (count_list(p, h, list, head, cache_most(h, head)) != cache_held(h, head)) {
            return HW_BROKEN_QUICK;
        }
        granted += cache_most(h, head) * cache_capacity(&p->cache, list);
    }
    return granted == load4(h, cache + HW_CACHE_GRANTED) && granted <= p->cache_bytes ? 0 : HW_BROKEN_QUICK;
}

/* Checks the depot and the calling thread's cache, too: nobody may look at another's. Needs the lock. */
static inline int caches_check(const struct hw_policy *p, struct hw_heap *h, const struct hw_thread *t)
{
    const int broken = check_depot(p, h);
    return broken || t->heap != h ? broken : check_cache(p, h, t->cache);
}

/* ---- public entry points with caches, see heapwright.h --------------------------------------------------------------
 */

HW_COLD void *malloc_beyond_cache(const struct hw_policy *p, struct hw_heap *heap, struct hw_thread *t, size_t size)
{
    uint32_t at = 0;
    void *memory = NULL;
    int begins = 0;
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t refused = load4(heap, p->refused_at);
    if (t->heap == heap && is_cached_size(p, size)) {
        at = cache_fill(p, heap, t->cache, (uint32_t)request_for(p, size));
    }
    if (at) {
        memory = arena_pointer(heap, at);
    } else {
        do {
            memory = hw_malloc(p, heap, size);
        } while (memory == NULL && cache_yields(p, heap, t, refused));
        if (memory && is_cached_size(p, size)) {
            begins = cache_open(p, heap, t);
        }
    }
    depot_shrink(p, heap);
    HW_UNLOCK(heap, key);
    if (begins) {
        HW_THREAD_BEGINS(heap);
    }
    return memory;
}

/* Serves `size` bytes out of the thread's cache: the payload, or NULL, which is no refusal. */
HW_HOT void *cache_take(const struct hw_policy *p, struct hw_heap *heap, const struct hw_thread *t, size_t size)
{
    if (t->heap == heap && is_cached_size(p, size)) {
        const uint32_t list = cache_list_for(p, (uint32_t)request_for(p, size));
        const uint32_t at = cache_pop(heap, cache_head(t->cache, list));
        if (at) {
            return HW_TOLD(heap, arena_pointer(heap, at), size);
        }
    }
    return NULL;
}

static inline void *hw_cached_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    struct hw_thread *t = HW_THREAD(heap);
    void *memory = cache_take(p, heap, t, size);
    if (memory) {
        return memory;
    }
    return HW_TOLD(heap, malloc_beyond_cache(p, heap, t, size), size);
}

static inline void *hw_cached_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    const size_t bytes = size != 0 && count > HW_MAX_REQUEST / size ? SIZE_MAX : count * size;
    unsigned char *memory = hw_cached_malloc(p, heap, bytes);
    if (memory) {
        for (size_t i = 0; i < bytes; i++) {
            memory[i] = 0;
        }
    }
    return memory;
}

HW_COLD void free_beyond_cache(const struct hw_policy *p, struct hw_heap *heap, struct hw_thread *t, void *pointer)
{
    int begins = 0;
    int kept = 0;
    if (pointer == NULL) {
        return;
    }
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t at = address_of(p, heap, pointer);
    const uint32_t list = cache_list_of(p, heap, at);
    if (list < p->cache.count) {
        begins = cache_open(p, heap, t);
        if (t->heap == heap) {
            cache_relieve(p, heap, t->cache, list);
            kept = cache_push(heap, cache_head(t->cache, list), at);
        }
    }
    if (!kept) {
        hw_free(p, heap, pointer);
    }
    HW_UNLOCK(heap, key);
    if (begins) {
        HW_THREAD_BEGINS(heap);
    }
}

/* Gives an object to the heap where the pointer has to be looked at first. */
static inline void free_checked(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t at = address_of(p, heap, pointer);
    if (is_usable(p, heap, at)) {
        HW_FREED(heap, pointer);
        heap_free(p, heap, at);
    }
    HW_UNLOCK(heap, key);
}

static inline void hw_cached_free(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    if (p->checks) {
        free_checked(p, heap, pointer);
        return;
    }
    struct hw_thread *t = HW_THREAD(heap);
    if (pointer != NULL) {
        HW_FREED(heap, pointer);
    }
    if (t->heap == heap && pointer != NULL) {
        if (cache_keep(p, heap, t->cache, address_of(p, heap, pointer))) {
            return;
        }
    }
    free_beyond_cache(p, heap, t, pointer);
}

/* Whether an object has a block of the list that serves a request for `size` bytes, and so one that is large enough. */
static inline int fits_as_it_is(const struct hw_policy *p, struct hw_heap *heap, const void *pointer, size_t size)
{
    return cache_list_for(p, (uint32_t)request_for(p, size)) == cache_list_of(p, heap, address_of(p, heap, pointer));
}

/* Memory for `size` bytes, out of the thread's cache where that is for such: the address of the payload, or 0, which is
 * no refusal. */
static inline uint32_t serve_to_move(const struct hw_policy *p, struct hw_heap *heap, uint32_t cache, size_t size)
{
    const uint32_t n = (uint32_t)request_for(p, size);
    uint32_t at = is_cached_size(p, size) ? cache_pop(heap, cache_head(cache, cache_list_for(p, n))) : 0;
    if (at == 0) {
        const uintptr_t key = HW_LOCK(heap);
        at = is_cached_size(p, size) ? cache_fill(p, heap, cache, n) : serve(p, heap, n, 1);
        depot_shrink(p, heap);
        HW_UNLOCK(heap, key);
    }
    return at;
}

/* Gives back an object that was copied elsewhere. */
static inline void accept_moved(const struct hw_policy *p, struct hw_heap *heap, uint32_t cache, uint32_t at)
{
    if (cache_keep(p, heap, cache, at)) {
        return;
    }
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t list = cache_list_of(p, heap, at);
    if (list < p->cache.count) {
        cache_relieve(p, heap, cache, list);
    }
    if (list == p->cache.count || !cache_push(heap, cache_head(cache, list), at)) {
        heap_free(p, heap, at);
    }
    HW_UNLOCK(heap, key);
}

/* Moves an object that has one of the blocks that caches keep, or will have one. So no such block is made or lost but
 * by way of the caches, and none is cut or merged while objects change their sizes: what is freed is asked for again.
 * NULL where that cannot be, with the object as it was. */
static inline void *move_cached(const struct hw_policy *p, struct hw_heap *heap, const struct hw_thread *t,
                                void *pointer, size_t size)
{
    const uint32_t from = address_of(p, heap, pointer);
    if (t->heap != heap || exceeds(size, HW_MAX_REQUEST) ||
        (!is_cached_size(p, size) && cache_list_of(p, heap, from) == p->cache.count)) {
        return NULL;
    }
    const uint32_t to = serve_to_move(p, heap, t->cache, size);
    if (to == 0) {
        return NULL;
    }
    const uint32_t had = heap_capacity(p, heap, from);
    copy_payload(heap, to, from, had < size ? had : (uint32_t)size);
    accept_moved(p, heap, t->cache, from);
    return HW_TOLD_RESIZED(heap, pointer, arena_pointer(heap, to), size);
}

static inline void *hw_cached_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return hw_cached_malloc(p, heap, size);
    }
    if (p->checks == 0 && is_cached_size(p, size) && fits_as_it_is(p, heap, pointer, size)) {
        return HW_TOLD_RESIZED(heap, pointer, pointer, size);
    }
    struct hw_thread *t = HW_THREAD(heap);
    void *resized = p->checks ? NULL : move_cached(p, heap, t, pointer, size);
    if (resized) {
        return resized;
    }
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t refused = load4(heap, p->refused_at);
    do {
        resized = hw_realloc(p, heap, pointer, size);
    } while (resized == NULL && cache_yields(p, heap, t, refused));
    (void)HW_TOLD_RESIZED(heap, pointer, resized, size);
    depot_shrink(p, heap);
    HW_UNLOCK(heap, key);
    return resized;
}

static inline void *hw_cached_aligned_alloc(const struct hw_policy *p, struct hw_heap *heap, size_t alignment,
                                            size_t size)
{
    if (alignment <= p->align && alignment != 0 && (alignment & (alignment - 1u)) == 0) {
        return hw_cached_malloc(p, heap, size);
    }
    struct hw_thread *t = HW_THREAD(heap);
    void *memory = NULL;
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t refused = load4(heap, p->refused_at);
    do {
        memory = hw_aligned_alloc(p, heap, alignment, size);
    } while (memory == NULL && cache_yields(p, heap, t, refused));
    depot_shrink(p, heap);
    HW_UNLOCK(heap, key);
    return HW_TOLD(heap, memory, size);
}

static inline int hw_cached_check(const struct hw_policy *p, struct hw_heap *heap)
{
    const struct hw_thread *t = HW_THREAD(heap);
    const uintptr_t key = HW_LOCK(heap);
    const int broken = hw_check(p, heap);
    const int lists = broken ? broken : caches_check(p, heap, t);
    HW_UNLOCK(heap, key);
    return lists;
}

#ifdef HW_SHARED
static inline struct hw_heap *hw_cached_init(const struct hw_policy *p, void *arena, size_t bytes)
{
    struct hw_heap *heap = hw_init(p, arena, bytes);
    if (heap) {
        struct hw_thread *t = HW_THREAD(heap);
        if (t->heap == heap) {
            t->heap = NULL;
        }
        HW_STARTED(heap);
    }
    return heap;
}

static inline void *hw_take_cached(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    return cache_take(p, heap, HW_THREAD(heap), size);
}

static inline int hw_keep_cached(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    const struct hw_thread *t = HW_THREAD(heap);
    return p->checks == 0 && t->heap == heap && cache_keep(p, heap, t->cache, address_of(p, heap, pointer));
}

static inline void hw_release_thread(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_thread *t = HW_THREAD(heap);
    uint32_t list = 0;
    if (t->heap != heap) {
        return;
    }
    while (t->heap == heap) {
        const uintptr_t key = HW_LOCK(heap);
        list = cache_empty(p, heap, t->cache, list);
        if (list == p->cache.count) {
            cache_close(p, heap, t->cache);
            t->heap = NULL;
        }
        HW_UNLOCK(heap, key);
    }
    int more = 1;
    while (more) { /* the last one takes the depot along */
        const uintptr_t key = HW_LOCK(heap);
        more = load4(heap, p->caches_at) == 0 && depot_yield(p, heap);
        HW_UNLOCK(heap, key);
    }
}

static inline void hw_after_fork(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_thread *t = HW_THREAD(heap);
    const uintptr_t key = HW_LOCK(heap);
    uint32_t cache = load4(heap, p->caches_at);
    while (cache) {
        const uint32_t next = load4(heap, cache + HW_CACHE_NEXT);
        if (t->heap != heap || t->cache != cache) {
            for (uint32_t list = 0; list < p->cache.count;) {
                list = cache_empty(p, heap, cache, list);
            }
            cache_close(p, heap, cache);
        }
        cache = next;
    }
    while (load4(heap, p->caches_at) == 0 && depot_yield(p, heap)) {
    }
    HW_UNLOCK(heap, key);
}

static inline size_t hw_cached_bytes(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    size_t sum = load4(heap, p->depot_at);
    for (uint32_t cache = load4(heap, p->caches_at); cache != 0; cache = load4(heap, cache + HW_CACHE_NEXT)) {
        for (uint32_t list = 0; list < p->cache.count; list++) {
            sum += (size_t)cache_held(heap, cache_head(cache, list)) * cache_capacity(&p->cache, list);
        }
    }
    HW_UNLOCK(heap, key);
    return sum;
}
#endif

/* ---- public entry points with a lock around each call ---------------------------------------------------------------
 */

static inline void *hw_locked_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_malloc(p, heap, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void *hw_locked_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    const size_t bytes = size != 0 && count > HW_MAX_REQUEST / size ? SIZE_MAX : count * size;
    unsigned char *memory = hw_locked_malloc(p, heap, bytes);
    if (memory) { /* cleared without the lock */
        for (size_t i = 0; i < bytes; i++) {
            memory[i] = 0;
        }
    }
    return memory;
}

static inline void *hw_locked_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *resized = hw_realloc(p, heap, pointer, size);
    HW_UNLOCK(heap, key);
    return resized;
}

static inline void *hw_locked_aligned_alloc(const struct hw_policy *p, struct hw_heap *heap, size_t alignment,
                                            size_t size)
{
    const uintptr_t key = HW_LOCK(heap);
    void *memory = hw_aligned_alloc(p, heap, alignment, size);
    HW_UNLOCK(heap, key);
    return memory;
}

static inline void hw_locked_free(const struct hw_policy *p, struct hw_heap *heap, void *pointer)
{
    const uintptr_t key = HW_LOCK(heap);
    hw_free(p, heap, pointer);
    HW_UNLOCK(heap, key);
}

static inline size_t hw_locked_usable_size(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uintptr_t key = HW_LOCK(heap);
    const size_t bytes = hw_usable_size(p, heap, pointer);
    HW_UNLOCK(heap, key);
    return bytes;
}

static inline int hw_locked_next_block(const struct hw_policy *p, struct hw_heap *heap, struct hw_block *block)
{
    const uintptr_t key = HW_LOCK(heap);
    const int found = hw_next_block(p, heap, block);
    HW_UNLOCK(heap, key);
    return found;
}

static inline struct hw_statistics hw_locked_statistics(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const struct hw_statistics told = hw_statistics(p, heap);
    HW_UNLOCK(heap, key);
    return told;
}

static inline size_t hw_locked_largest_free(const struct hw_policy *p, struct hw_heap *heap, uint32_t looks)
{
    const uintptr_t key = HW_LOCK(heap);
    const size_t largest = hw_largest_free(p, heap, looks);
    HW_UNLOCK(heap, key);
    return largest;
}

static inline struct hw_counters hw_locked_counters(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const struct hw_counters told = hw_counters(p, heap);
    HW_UNLOCK(heap, key);
    return told;
}

static inline void hw_locked_reset_least_free(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    hw_reset_least_free(p, heap);
    HW_UNLOCK(heap, key);
}

static inline uint32_t hw_locked_misused(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t misused = hw_misused(p, heap);
    HW_UNLOCK(heap, key);
    return misused;
}

static inline int hw_locked_check(const struct hw_policy *p, struct hw_heap *heap)
{
    const uintptr_t key = HW_LOCK(heap);
    const int broken = hw_check(p, heap);
    HW_UNLOCK(heap, key);
    return broken;
}

#ifndef HW_EXPLORE
static inline struct hw_heap *hw_locked_init(const struct hw_policy *p, void *arena, size_t bytes)
{
    struct hw_heap *heap = hw_init(p, arena, bytes);
    if (heap) {
        HW_STARTED(heap);
    }
    return heap;
}
#endif

#endif
