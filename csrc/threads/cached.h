/* threads/cached.h: the public entry points with caches of threads, see heapwright.h. */
#ifndef HW_THREADS_CACHED_H
#define HW_THREADS_CACHED_H

#include "threads/fill.h"

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
            return HW_NOTIFY(heap, arena_pointer(heap, at), size);
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
    return HW_NOTIFY(heap, malloc_beyond_cache(p, heap, t, size), size);
}

static inline void *hw_cached_calloc(const struct hw_policy *p, struct hw_heap *heap, size_t count, size_t size)
{
    const size_t bytes = size != 0 && count > HW_MAX_REQUEST / size ? SIZE_MAX : count * size;
    void *memory = hw_cached_malloc(p, heap, bytes);
    if (memory) {
        clear_object(p, heap, memory, bytes);
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
        sealed_free(p, heap, at);
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
        sealed_free(p, heap, at);
    }
    HW_UNLOCK(heap, key);
}

/* Moves an object whose old or new block is of a cached size. So blocks of cached sizes are made and released only
 * through the caches, and none is split or merged while objects are resized: freed sizes are soon requested again.
 * NULL, with the object unchanged, if there is no memory. */
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
    copy_payload(copy_step(p->align, 0), heap, to, from, had < size ? had : (uint32_t)size);
    accept_moved(p, heap, t->cache, from);
    HW_RESIZED(heap, pointer, arena_pointer(heap, to), size);
    return arena_pointer(heap, to);
}

static inline void *hw_cached_realloc(const struct hw_policy *p, struct hw_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return hw_cached_malloc(p, heap, size);
    }
    if (p->checks == 0 && is_cached_size(p, size) && fits_as_it_is(p, heap, pointer, size)) {
        HW_RESIZED(heap, pointer, pointer, size);
        return pointer;
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
    if (resized == NULL) {
        HW_REFUSED(heap, size);
    } else {
        HW_RESIZED(heap, pointer, resized, size);
    }
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
    return HW_NOTIFY(heap, memory, size);
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

#endif
