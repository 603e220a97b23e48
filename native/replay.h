/* replay.h: one replay of a trace on the core. It keeps the accounts that the heap itself does not: what is live, what
 * each call cost.
 *
 * native.c includes this with the policy read at run time. The build makes more copies of it and of the core, in which
 * the switches that nearly all recipes have in common are constants (build_copies.py).
 */
#ifndef HW_REPLAY_H
#define HW_REPLAY_H

#include "listener.h"
#include <stdlib.h>
#include <string.h>
#include "kinds.h"
#include "threads.h"

/* ---- one replay -------------------------------------------------------------------------------------------------- */

struct object {
    uint32_t at;       /* payload address; 0 where the object is not alive */
    uint32_t size;     /* bytes requested */
    uint32_t capacity; /* payload bytes of its block */
    uint32_t header;   /* header bytes of its block */
};

struct replay {
    const struct hw_policy *policy;
    const struct hw_calls *calls;
    struct hw_heap heap;
    struct object *objects;
    struct hw_thread *threads; /* what each keeps, where the heap has caches of threads */
    size_t bytes;              /* of the arena */
    struct hw_shadow *shadow;  /* the index; the heap forgets it where it cannot be kept */
    uint64_t patience;         /* accesses that long walks may still make before there is one */
    uint64_t most_patience;
    uint64_t bearable;  /* accesses of long walks a call that take no longer than keeping an index */
    uint64_t walked_at; /* calls when patience was counted last */
    uint64_t requested; /* live */
    uint64_t capacity;  /* of live blocks */
    uint64_t headers;   /* of live blocks */
    int check;
    int tallies;   /* whether requested bytes are summed up call by call, as the trace's totals do not give them */
    int has_links; /* free blocks are linked both ways, in words behind a header of one word */
    struct hw_metrics *metrics;
};

/* The reference of an object that moves: in front of the arena, so that its distance is the same on every machine. */
static void **slot_reference(struct replay *r, uint32_t slot)
{
    return (void **)(void *)r->heap.base - (slot + 1u) * reference_words(r->policy);
}

/* ---- when walks get long ----------------------------------------------------------------------------------------- */

/* Accesses that long walks may make before the heap is indexed. For tests and measurements the environment variable
 * HEAPWRIGHT_INDEX says how many; at 0 the heap is indexed from the first call on, at "never" it is not. */
static uint64_t patience(uint64_t ordinary)
{
    const char *chosen = getenv("HEAPWRIGHT_INDEX");
    if (chosen == NULL || *chosen == '\0') {
        return ordinary;
    }
    return strcmp(chosen, "never") == 0 ? UINT64_MAX : strtoull(chosen, NULL, 10);
}

/* Indexes the heap, once; without memory for that, it is walked. */
static void start_index(struct replay *r)
{
    r->shadow = shadow_make(r->policy, &r->heap, r->bytes, front_bytes(r->policy, r->calls));
    r->heap.engine.shadow = r->shadow;
    r->patience = UINT64_MAX; /* never again */
}

/* Keeps account of a call i that has walked far, and indexes the heap when such calls go on. */
static HW_NOINLINE void watch_walk(struct replay *r, uint64_t i, uint64_t accesses)
{
    r->metrics->walked += accesses;
    if (r->patience == UINT64_MAX) {
        return;
    }
    const uint64_t short_calls = i - r->walked_at; /* since the last such call */
    r->walked_at = i + 1u;
    if (short_calls > (r->most_patience - r->patience) / r->bearable) {
        r->patience = r->most_patience;
    } else {
        r->patience += short_calls * r->bearable;
    }
    if (accesses > r->patience) {
        start_index(r);
        return;
    }
    r->patience += r->bearable - accesses;
    if (r->patience > r->most_patience) {
        r->patience = r->most_patience;
    }
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static void replay_free_memory(struct replay *r)
{
    r->metrics->wiped = wipe(&r->heap, r->bytes);
    shadow_free(r->shadow);
    free(r->objects);
    free(r->threads);
    free(r->heap.engine.lists);
}

static int replay_start(struct replay *r, const struct hw_policy *policy, const struct hw_calls *calls, void *memory,
                        size_t bytes, int check, struct hw_metrics *metrics)
{
    memset(r, 0, sizeof *r);
    memset(metrics, 0, sizeof *metrics);
    r->policy = policy;
    r->calls = calls;
    r->heap.base = memory;
    r->bytes = bytes;
    r->check = check;
    r->tallies = 1;
    r->has_links = has_plain_links(&policy->pools[policy->pool_count - 1u]);
    r->metrics = metrics;
    metrics->broken_call = calls->count;
    metrics->abandoned_call = calls->count;
    const struct hw_engine engine = {.stored = policy->checks && check == HW_CHECK_NOTHING ? take_pages() : NULL,
                                     .seen = check != HW_CHECK_NOTHING,
                                     .copies = check != HW_CHECK_NOTHING || moves(policy),
                                     .margins = {0, UINT32_MAX, 0, UINT32_MAX}};
    r->heap.engine = engine;
    if (!heap_init(policy, &r->heap, bytes)) {
        replay_free_memory(r);
        return HW_NO_ROOM;
    }
    r->heap.reads = 0;
    if (policy->checks == HW_CHECKS_FULL && check == HW_CHECK_NOTHING && heap_is_bounded(policy, &r->heap)) {
        r->heap.engine.bounds = (uint32_t)r->heap.reads;
    }
    r->heap.reads = 0;
    r->heap.writes = 0;
    const size_t front = front_bytes(policy, calls);
    memset((unsigned char *)memory - front, 0, front);
    const struct walking walking = walking_of(policy, calls);
    r->bearable = walking.bearable;
    r->patience = r->most_patience = patience(walking.patience);
    if (r->patience == 0) {
        start_index(r);
    }
    r->objects = calloc(calls->slots ? calls->slots : 1u, sizeof *r->objects);
    r->threads = calloc(calls->threads ? calls->threads : 1u, sizeof *r->threads);
    if (r->objects == NULL || r->threads == NULL || !note_lists(policy, &r->heap)) {
        replay_free_memory(r);
        return HW_NO_MEMORY;
    }
    return 0;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Where an object that moves is now; the access is the program's, not the heap's. */
static void locate(struct replay *r, uint32_t slot)
{
    const uint64_t reads = r->heap.reads;
    const unsigned char *payload = hw_handle_pointer(r->policy, &r->heap, slot_reference(r, slot));
    r->objects[slot].at = (uint32_t)(payload - r->heap.base);
    r->heap.reads = reads;
}

/* Looks at the heap without its accesses being counted. */
static void describe(struct replay *r, struct object *object)
{
    const uint64_t reads = r->heap.reads;
    const struct hw_policy *p = r->policy;
    if (moves(p)) {
        void **reference = slot_reference(r, (uint32_t)(object - r->objects));
        object->capacity = (uint32_t)hw_handle_usable_size(p, &r->heap, reference);
        object->header = overhead_of_moving(p);
        r->heap.reads = reads;
        return;
    }
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, &r->heap, object->at)) {
            object->capacity = capacity_of(pool, &r->heap, object->at);
            object->header = overhead_of(pool, object->capacity);
            break;
        }
    }
    r->heap.reads = reads;
}

static void enter(struct replay *r, struct object *object, uint32_t at, uint32_t size)
{
    object->at = at;
    object->size = size;
    describe(r, object);
    r->requested += size;
    r->capacity += object->capacity;
    r->headers += object->header;
}

static void leave(struct replay *r, struct object *object)
{
    r->requested -= object->size;
    r->capacity -= object->capacity;
    r->headers -= object->header;
    object->at = 0;
}

/* A fill pattern that is unique to an object and an offset, so that a moved or overlapping block is detected. */
static unsigned char pattern(uint32_t slot, uint32_t i)
{
    return (unsigned char)(slot * 167u + (i ^ i >> 8) * 59u + 1u);
}

static void fill(struct replay *r, uint32_t slot, uint32_t from)
{
    const struct object *object = &r->objects[slot];
    unsigned char *payload = arena_pointer(&r->heap, object->at);
    for (uint32_t i = from; r->check && i < object->size; i++) {
        payload[i] = pattern(slot, i);
    }
}

static int is_intact(struct replay *r, uint32_t slot, uint32_t bytes)
{
    const struct object *object = &r->objects[slot];
    const unsigned char *payload = arena_pointer(&r->heap, object->at);
    for (uint32_t i = 0; r->check && i < bytes; i++) {
        if (payload[i] != pattern(slot, i)) {
            return 0;
        }
    }
    return 1;
}

static void note_broken(struct replay *r, uint64_t call, int what)
{
    if (r->metrics->broken == 0) {
        r->metrics->broken = what;
        r->metrics->broken_call = call;
    }
}

/* ---- asking the heap --------------------------------------------------------------------------------------------- */

/* The address of what a call of the heap returned; 0 where it refused. */
static uint32_t address_or_none(struct replay *r, const void *pointer)
{
    return pointer ? address_of(r->policy, &r->heap, pointer) : 0;
}

static int has_caches(const struct replay *r)
{
    return r->policy->threads == HW_THREADS_CACHED;
}

/* Asks for an object; returns its address, 0 where it was refused. Objects that move have the heap's own alignment. */
static uint32_t request(struct replay *r, uint32_t slot, uint32_t size, uint32_t align, uint32_t site)
{
    if (moves(r->policy)) {
        if (align > r->policy->align || !hw_handle_alloc(r->policy, &r->heap, slot_reference(r, slot), size)) {
            return 0;
        }
        locate(r, slot);
        return r->objects[slot].at;
    }
    if (has_caches(r)) {
        return address_or_none(r, align ? hw_cached_aligned_alloc(r->policy, &r->heap, align, size)
                                        : hw_cached_malloc(r->policy, &r->heap, size));
    }
    if (align) {
        return address_or_none(r, hw_aligned_alloc(r->policy, &r->heap, align, size));
    }
    return address_or_none(r, hw_malloc_at(r->policy, &r->heap, site, size));
}

/* Asks for another size of an object; returns its address, 0 where it was refused. */
static uint32_t request_size(struct replay *r, uint32_t slot, uint32_t size)
{
    struct object *object = &r->objects[slot];
    if (moves(r->policy)) {
        settle_object(r->policy, &r->heap, slot_reference(r, slot));
        const int served = hw_handle_realloc(r->policy, &r->heap, slot_reference(r, slot), size);
        locate(r, slot);
        return served ? object->at : 0;
    }
    void *pointer = arena_pointer(&r->heap, object->at);
    return address_or_none(r, has_caches(r) ? hw_cached_realloc(r->policy, &r->heap, pointer, size)
                                            : hw_realloc(r->policy, &r->heap, pointer, size));
}

/* Whether a request has low priority, on a heap to which that means something. */
static int is_low(const struct replay *r, uint64_t i)
{
    return r->policy->reserve && r->calls->low && r->calls->low[i];
}

/* Asks for an object, or another size of one, at low priority; returns its address, 0 where it was refused. */
static uint32_t request_low(struct replay *r, uint32_t slot, uint32_t size, uint32_t align)
{
    const struct hw_policy *p = r->policy;
    if (align) {
        if (leaves_reserve(p, &r->heap, size)) {
            return request(r, slot, size, align, 0);
        }
        count_refused(p, &r->heap);
        return 0;
    }
    if (r->objects[slot].at) {
        void *pointer = arena_pointer(&r->heap, r->objects[slot].at);
        return address_or_none(r, hw_realloc_low(p, &r->heap, pointer, size));
    }
    return address_or_none(r, hw_malloc_low(p, &r->heap, size));
}

static void give_back(struct replay *r, uint32_t slot)
{
    if (moves(r->policy)) {
        settle_object(r->policy, &r->heap, slot_reference(r, slot));
        hw_handle_free(r->policy, &r->heap, slot_reference(r, slot));
        return;
    }
    void *pointer = arena_pointer(&r->heap, r->objects[slot].at);
    if (has_caches(r)) {
        hw_cached_free(r->policy, &r->heap, pointer);
        return;
    }
    hw_free(r->policy, &r->heap, pointer);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Counts a request. */
static inline void tally_request(struct replay *r, uint32_t size, int served)
{
    if (r->tallies) {
        r->metrics->requested_bytes += size;
        r->metrics->admitted_bytes += served ? size : 0;
    }
    r->metrics->failed += !served;
}

static void replay_malloc(struct replay *r, uint64_t i)
{
    const uint32_t slot = r->calls->slot[i];
    const uint32_t size = r->calls->size[i];
    const uint32_t align = r->calls->align ? r->calls->align[i] : 0;
    const uint32_t site = r->calls->site ? r->calls->site[i] : 0;
    const uint32_t at = is_low(r, i) ? request_low(r, slot, size, align) : request(r, slot, size, align, site);
    r->objects[slot].at = at;
    tally_request(r, size, at != 0);
    if (at == 0) {
        r->metrics->failed_low += r->calls->low && r->calls->low[i];
        return;
    }
    enter(r, &r->objects[slot], at, size);
    fill(r, slot, 0);
}

static void replay_realloc(struct replay *r, uint64_t i)
{
    const uint32_t slot = r->calls->slot[i];
    const uint32_t size = r->calls->size[i];
    struct object *object = &r->objects[slot];
    if (object->at == 0) {
        return;
    }
    const uint32_t had = object->size;
    const uint32_t at = is_low(r, i) ? request_low(r, slot, size, 0) : request_size(r, slot, size);
    tally_request(r, size, at != 0);
    if (at == 0) {
        r->metrics->failed_low += r->calls->low && r->calls->low[i];
        return;
    }
    leave(r, object);
    enter(r, object, at, size);
    if (!is_intact(r, slot, had < size ? had : size)) {
        note_broken(r, i, HW_BROKEN_PAYLOAD);
    }
    fill(r, slot, had < size ? had : size);
}

static void replay_free(struct replay *r, uint64_t i)
{
    const uint32_t slot = r->calls->slot[i];
    struct object *object = &r->objects[slot];
    if (object->at == 0) {
        return;
    }
    if (!is_intact(r, slot, object->size)) {
        note_broken(r, i, HW_BROKEN_PAYLOAD);
    }
    give_back(r, slot);
    leave(r, object);
}

/* Finds all objects that move and looks at their payloads. O(bytes). */
static void look_at_all(struct replay *r, uint64_t call)
{
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        if (r->objects[slot].at) {
            locate(r, slot);
            if (!is_intact(r, slot, r->objects[slot].size)) {
                note_broken(r, call, HW_BROKEN_PAYLOAD);
            }
        }
    }
}

/* Inspects the heap after the call i, before which it had moved `moved` bytes, as closely as the options say. */
static HW_NOINLINE void look_after(struct replay *r, uint64_t i, uint64_t moved)
{
    if (moves(r->policy) && r->heap.moved_bytes != moved) {
        look_at_all(r, i);
    }
    if (r->check == HW_CHECK_INVARIANTS) {
        const uint64_t reads = r->heap.reads;
        const int broken = has_caches(r) ? hw_cached_check(r->policy, &r->heap) : hw_check(r->policy, &r->heap);
        if (broken) {
            note_broken(r, i, broken);
        }
        r->heap.reads = reads;
    }
}

/* Accesses of the copy that a realloc has made since the count of moved bytes was `moved`: it makes one at most. Copies
 * by compaction are not included. */
static inline uint64_t copy_accesses(const struct replay *r, uint64_t moved)
{
    return moves(r->policy) ? 0 : 2u * ((r->heap.moved_bytes - moved + 3u) / 4u);
}

/* Performs one call; returns the metadata accesses it made, the copy of a realloc not among them. */
static inline uint64_t replay_call(struct replay *r, uint64_t i)
{
    uint64_t copied = 0;
    const uint64_t before = r->heap.reads + r->heap.writes;
    const uint64_t skipped = r->heap.engine.skipped;
    const uint32_t covered = r->heap.covered_bytes;
    const uint64_t moved = r->heap.moved_bytes;
    const uint8_t op = r->calls->op[i];
    if (has_caches(r)) {
        r->heap.thread = &r->threads[r->calls->thread ? r->calls->thread[i] : 0];
    }
    if (op == HW_OP_FREE) {
        replay_free(r, i);
    } else if (op == HW_OP_REALLOC) {
        replay_realloc(r, i);
        copied = copy_accesses(r, moved);
    } else {
        replay_malloc(r, i);
    }
    struct hw_metrics *m = r->metrics;
    if (r->tallies && r->requested > m->requested_peak) {
        m->requested_peak = r->requested;
    }
    if (r->heap.covered_bytes != covered) {
        m->peak_requested = r->requested;
        m->peak_capacity = r->capacity;
        /* the header of a free block that nothing has covered yet is not part of what is covered */
        const uint64_t free_bytes = r->heap.covered_bytes - r->capacity;
        m->peak_headers = r->heap.header_bytes < free_bytes ? r->heap.header_bytes : free_bytes;
    }
    const uint64_t cost = r->heap.reads + r->heap.writes - before;
    if (cost > HW_SHORT_WALK) {
        const uint64_t walked = cost - (r->heap.engine.skipped - skipped) - (r->heap.moved_bytes - moved) / 2u;
        if (walked > HW_SHORT_WALK) {
            watch_walk(r, i, walked);
        }
    }
    if (r->check) {
        look_after(r, i, moved);
    }
    return cost - copied;
}

/* Bytes ever covered in the shared part of the arena; where it is taken from both ends, the most at once. */
static uint64_t shared_bytes(struct replay *r)
{
    const uint64_t reads = r->heap.reads;
    uint64_t bytes = load4(&r->heap, r->policy->shared_high_at) - r->policy->fixed_end;
    if (r->policy->grows_down) {
        bytes += load4(&r->heap, r->policy->shared_end_at) - load4(&r->heap, r->policy->shared_limit_at);
    }
    r->heap.reads = reads;
    return bytes;
}

/* Results of the replay, except those that are counted call by call. */
static void replay_results(struct replay *r, struct hw_metrics *m)
{
    m->live_blocks = 0;
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        m->live_blocks += r->objects[slot].at != 0;
    }
    m->reads = r->heap.reads;
    m->writes = r->heap.writes;
    m->skipped = r->heap.engine.skipped;
    m->moved = r->heap.moved_bytes;
    m->covered = r->heap.covered_bytes;
    m->shared = shared_bytes(r);
    m->margins = r->heap.engine.margins;
    m->same_from = same_from(r->policy, &r->heap);
}

/* Returns 0, or HW_NO_MEMORY where the numbers mean nothing for want of memory. */
static int replay_end(struct replay *r)
{
    replay_results(r, r->metrics);
    const int lost = r->shadow && r->shadow->lost;
    replay_free_memory(r);
    return lost ? HW_NO_MEMORY : 0;
}

#endif
