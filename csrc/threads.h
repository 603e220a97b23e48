/* threads.h: one heap for several threads.
 *
 * With a lock each call is made under it, and nothing else differs. With caches each thread has quick lists of its own
 * before the lock: what it frees, it is given again without asking anybody. Lists that are empty are filled, and lists
 * that hold too much are emptied, several blocks at a time.
 *
 *     malloc:   the thread's list of that size -> under the lock: the heap, and blocks for half of the list
 *     free:     the thread's list of that size -> under the lock: half of the list to the heap
 *
 * A cache is an object of the heap, which its thread's first call takes, so what it costs is part of the arena:
 *
 *     next cache | bytes that its lists may hold | the list that shrank last | head, numbers | head, numbers | ...
 *
 * How many blocks a list may hold follows what is asked for: twice as many after each miss and each overflow, as long
 * as all lists together stay within the recipe's bytes. Where they would not, another list, each in its turn, gives up
 * half.
 *
 * Nobody but the thread itself looks at its cache, except in the child of a fork, where that thread is gone. A list is
 * whole at every moment: the head is written last.
 *
 * The platform is reached through hooks: HW_LOCK() and HW_UNLOCK(); HW_THREAD(), where the calling thread keeps its
 * struct hw_thread; HW_STARTED() of a new heap; HW_THREAD_BEGINS() once a thread has a cache to be given back.
 *
 * Sources: Bonwick and Adams 2001 (magazines); Ghemawat and Menage, TCMalloc (caches of threads, bounded in bytes).
 */
#ifndef HW_THREADS_H
#define HW_THREADS_H

#include "largest.h"

#ifdef HW_EXPLORE
#define HW_LOCK(heap) ((uintptr_t)(heap)->base)
#define HW_UNLOCK(heap, key) ((void)(heap), (void)(key))
#define HW_THREAD(heap) ((heap)->thread)
#define HW_THREAD_BEGINS(heap) ((void)(heap))
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

/* Most blocks that are taken or given back at a time; most that a list may hold; how many lists are looked at for one
 * that can shrink. */
enum { HW_CACHE_BATCH = 32, HW_CACHE_MOST = 256, HW_CACHE_LOOKS = 16 };

/* ---- the lists of a thread ----------------------------------------------------------------------------------------
 */

/* The list that serves n bytes, at most the largest that are cached. */
HW_HOT uint32_t cache_list(const struct hw_quick *q, uint32_t block)
{
    if (q->block_doubles) {
        return highest_bit(block) - highest_bit(q->block_least);
    }
    return (block - q->block_least) >> q->block_unit_shift;
}

HW_HOT uint32_t cache_head(uint32_t cache, uint32_t list)
{
    return cache + HW_CACHE_LISTS + 8u * list;
}

/* Where the numbers of the list at `head` lie. */
HW_HOT uint32_t cache_numbers(uint32_t head)
{
    return head + 4u;
}

/* Takes the first block off the list at `head`: the address of its payload; 0 where the list is empty. */
HW_HOT uint32_t cache_pop(struct hw_heap *h, uint32_t head)
{
    const uint32_t at = load4(h, head);
    if (at) {
        store4(h, head, load4(h, at));
        store4(h, cache_numbers(head), load4(h, cache_numbers(head)) - 1u);
    }
    return at;
}

/* Puts a block on the list at `head`; 0 where the list holds as many as it may. */
HW_HOT int cache_push(struct hw_heap *h, uint32_t head, uint32_t at)
{
    const uint32_t numbers = load4(h, cache_numbers(head));
    if ((numbers & 0xffffu) >= numbers >> 16) {
        return 0;
    }
    store4(h, at, load4(h, head));
    store4_last(h, head, at);
    store4(h, cache_numbers(head), numbers + 1u);
    return 1;
}

/* Keeps a block in its list; 0 where it has none or that is full. */
HW_HOT int cache_keep(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t at)
{
    const struct hw_quick *q = &p->cache;
    const uint32_t list = quick_list(q, heap_capacity(p, h, at) + q->block_header);
    return list < q->count && cache_push(h, cache_head(cache, list), at);
}

/* Whether a request has a list. */
HW_HOT int is_cached_size(const struct hw_policy *p, size_t size)
{
    return size <= p->cache_largest;
}

/* Whether a list holds as many blocks as any may. */
static inline int is_widest(struct hw_heap *h, uint32_t head)
{
    return load4(h, cache_numbers(head)) >> 16 >= HW_CACHE_MOST;
}

/* Lets a list hold twice as many blocks, where all lists together stay within their bytes; 0 where they do not. */
static inline int cache_widen(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    const uint32_t numbers = cache_numbers(cache_head(cache, list));
    const uint32_t most = load4(h, numbers) >> 16;
    const uint32_t more = most ? most : 1u;
    const uint32_t granted = load4(h, cache + HW_CACHE_GRANTED) + more * quick_list_capacity(&p->cache, list);
    if (granted > p->cache_bytes) {
        return 0;
    }
    store4(h, numbers, load4(h, numbers) + (more << 16));
    store4(h, cache + HW_CACHE_GRANTED, granted);
    return 1;
}

/* ---- under the lock -----------------------------------------------------------------------------------------------
 */

/* Gives blocks of the list at `head` back to the heap until it holds at most `kept`, but at most a batch. */
static inline void cache_give_back(const struct hw_policy *p, struct hw_heap *h, uint32_t head, uint32_t kept)
{
    const uint32_t numbers = load4(h, cache_numbers(head));
    uint32_t at = load4(h, head);
    uint32_t blocks = 0;
    while (blocks < HW_CACHE_BATCH && (numbers & 0xffffu) > kept + blocks) {
        const uint32_t next = load4(h, at);
        heap_free(p, h, at);
        at = next;
        blocks++;
    }
    store4(h, head, at);
    store4(h, cache_numbers(head), numbers - blocks);
}

/* Lets another list hold half as many blocks as before: the next one that holds no more than a batch above that. */
static inline void cache_shrink_one(const struct hw_policy *p, struct hw_heap *h, uint32_t cache)
{
    uint32_t list = load4(h, cache + HW_CACHE_TURN);
    uint32_t most = 0;
    for (uint32_t looks = 0; looks < HW_CACHE_LOOKS && most == 0; looks++) {
        list = list + 1u < p->cache.count ? list + 1u : 0;
        most = load4(h, cache_numbers(cache_head(cache, list))) >> 16;
    }
    store4(h, cache + HW_CACHE_TURN, list);
    const uint32_t head = cache_head(cache, list);
    const uint32_t half = most / 2u;
    cache_give_back(p, h, head, half);
    const uint32_t numbers = load4(h, cache_numbers(head));
    const uint32_t left = (numbers & 0xffffu) > half ? numbers & 0xffffu : half;
    store4(h, cache_numbers(head), numbers - ((most - left) << 16));
    store4(h, cache + HW_CACHE_GRANTED,
           load4(h, cache + HW_CACHE_GRANTED) - (most - left) * quick_list_capacity(&p->cache, list));
}

/* Lets a list hold more, if need be at the cost of another; 0 where it cannot. */
static inline int cache_grow_list(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    if (is_widest(h, cache_head(cache, list))) {
        return 0;
    }
    if (cache_widen(p, h, cache, list)) {
        return 1;
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
            store4(h, cache_numbers(head), load4(h, cache_numbers(head)) & ~(uint32_t)0xffffu);
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

/* After a miss: lets the list of requests for n bytes hold more, and fills half of it. What the heap refuses meanwhile
 * does not count. */
HW_COLD void cache_fill(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t n)
{
    const uint32_t list = cache_list(&p->cache, quick_block(&p->cache, n));
    const uint32_t head = cache_head(cache, list);
    const uint32_t refused = load4(h, p->refused_at);
    (void)cache_grow_list(p, h, cache, list);
    const uint32_t numbers = load4(h, cache_numbers(head));
    const uint32_t half = numbers >> 17;
    const uint32_t most = half < HW_CACHE_BATCH ? half : HW_CACHE_BATCH;
    uint32_t first = load4(h, head);
    uint32_t blocks = 0;
    while (blocks < most) {
        const void *memory = hw_malloc(p, h, n);
        const uint32_t at = memory ? address_of(p, h, memory) : 0;
        if (at == 0) {
            break;
        }
        if (quick_list(&p->cache, heap_capacity(p, h, at) + p->cache.block_header) != list) {
            heap_free(p, h, at); /* larger than it had to be: the rest was too small for a block */
            break;
        }
        store4(h, at, first);
        first = at;
        blocks++;
    }
    store4(h, p->refused_at, refused);
    store4_last(h, head, first);
    store4(h, cache_numbers(head), numbers + blocks);
}

/* After a free that found its list full: lets it hold more, else gives half of it back. */
static inline void cache_relieve(const struct hw_policy *p, struct hw_heap *h, uint32_t cache, uint32_t list)
{
    const uint32_t head = cache_head(cache, list);
    if (!cache_grow_list(p, h, cache, list)) {
        cache_give_back(p, h, head, load4(h, cache_numbers(head)) >> 17);
    }
}

/* After a refusal: whether the thread's cache had something to give back. The refusal, which raised the number of them
 * beyond `refused`, is forgotten then. */
static inline int cache_yields(const struct hw_policy *p, struct hw_heap *h, struct hw_thread *t, uint32_t refused)
{
    uint32_t batches = 0;
    if (t->heap != h) {
        return 0;
    }
    for (uint32_t list = 0; list < p->cache.count; list++) {
        const uint32_t head = cache_head(t->cache, list);
        while (load4(h, head)) {
            cache_give_back(p, h, head, 0);
            batches++;
        }
    }
    if (batches > 0) {
        store4(h, p->refused_at, refused);
    }
    return batches > 0;
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

/* ---- public entry points with caches, see heapwright.h --------------------------------------------------------------
 */

HW_COLD void *malloc_beyond_cache(const struct hw_policy *p, struct hw_heap *heap, struct hw_thread *t, size_t size)
{
    void *memory = NULL;
    int begins = 0;
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t refused = load4(heap, p->refused_at);
    do {
        memory = hw_malloc(p, heap, size);
    } while (memory == NULL && cache_yields(p, heap, t, refused));
    if (memory && is_cached_size(p, size)) {
        begins = cache_open(p, heap, t);
        if (t->heap == heap) {
            cache_fill(p, heap, t->cache, (uint32_t)request_for(p, size));
        }
    }
    HW_UNLOCK(heap, key);
    if (begins) {
        HW_THREAD_BEGINS(heap);
    }
    return memory;
}

static inline void *hw_cached_malloc(const struct hw_policy *p, struct hw_heap *heap, size_t size)
{
    struct hw_thread *t = HW_THREAD(heap);
    if (t->heap == heap && is_cached_size(p, size)) {
        const struct hw_quick *q = &p->cache;
        const uint32_t block = quick_block(q, (uint32_t)request_for(p, size));
        const uint32_t at = cache_pop(heap, cache_head(t->cache, cache_list(q, block)));
        if (at) {
            return HW_TOLD(heap, arena_pointer(heap, at), size);
        }
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

/* Keeps a block for which there is a list, in which it found no place; 0 where it has to go to the heap. Needs the lock
 * to be held. */
static inline int cache_keep_yet(const struct hw_policy *p, struct hw_heap *heap, struct hw_thread *t, uint32_t at)
{
    const uint32_t list = quick_list(&p->cache, heap_capacity(p, heap, at) + p->cache.block_header);
    if (list >= p->cache.count || t->heap != heap) {
        return 0;
    }
    cache_relieve(p, heap, t->cache, list);
    return cache_push(heap, cache_head(t->cache, list), at);
}

HW_COLD void free_beyond_cache(const struct hw_policy *p, struct hw_heap *heap, struct hw_thread *t, void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    const uintptr_t key = HW_LOCK(heap);
    const int begins = cache_open(p, heap, t);
    if (!cache_keep_yet(p, heap, t, address_of(p, heap, pointer))) {
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

/* Whether an object has just the block that a request for `size` bytes would get. */
static inline int fits_as_it_is(const struct hw_policy *p, struct hw_heap *heap, const void *pointer, size_t size)
{
    const struct hw_quick *q = &p->cache;
    return quick_block(q, (uint32_t)request_for(p, size)) ==
           heap_capacity(p, heap, address_of(p, heap, pointer)) + q->block_header;
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
    void *resized = NULL;
    const uintptr_t key = HW_LOCK(heap);
    const uint32_t refused = load4(heap, p->refused_at);
    do {
        resized = hw_realloc(p, heap, pointer, size);
    } while (resized == NULL && cache_yields(p, heap, t, refused));
    (void)HW_TOLD_RESIZED(heap, pointer, resized, size);
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
    HW_UNLOCK(heap, key);
    return HW_TOLD(heap, memory, size);
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
    HW_UNLOCK(heap, key);
}

static inline size_t hw_cached_bytes(const struct hw_policy *p, struct hw_heap *heap)
{
    size_t sum = 0;
    const uintptr_t key = HW_LOCK(heap);
    for (uint32_t cache = load4(heap, p->caches_at); cache != 0; cache = load4(heap, cache + HW_CACHE_NEXT)) {
        for (uint32_t list = 0; list < p->cache.count; list++) {
            const uint32_t blocks = load4(heap, cache_numbers(cache_head(cache, list))) & 0xffffu;
            sum += (size_t)blocks * quick_list_capacity(&p->cache, list);
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
