/* native.c: the replay engine. It drives the core with the policy known at run time and keeps the accounts that the
 * heap itself does not: what is live, what each call cost, what covered the arena. */
#define _GNU_SOURCE
#define HW_SHADOW
#include "native.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shadow_kinds.h"
#include "shadow_merging.h"
#include "shadow_searches.h"

/* ---- traces ---------------------------------------------------------------------------------------------------- */

uint32_t hw_assign_slots(const uint8_t *op, const uint32_t *object, uint64_t count, uint32_t objects, uint32_t *scratch,
                         uint32_t *slot)
{
    uint32_t *number = scratch;           /* of each live object, plus 1 */
    uint32_t *unused = scratch + objects; /* a stack: the number freed last is in the cache */
    uint32_t unused_count = 0;
    uint32_t slots = 0;
    memset(number, 0, objects * sizeof *number);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t *mine = &number[object[i]];
        if (*mine == 0) {
            *mine = unused_count ? unused[--unused_count] : ++slots;
        }
        slot[i] = *mine - 1u;
        if (op[i] == HW_OP_FREE) {
            unused[unused_count++] = *mine;
            *mine = 0;
        }
    }
    return slots;
}

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1u) / page * page;
}

static void unmap(unsigned char *from, size_t bytes)
{
    if (bytes) {
        munmap(from, bytes);
    }
}

void *hw_reserve(size_t front, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = whole_pages(bytes);
    const size_t ahead = whole_pages(front);
    size_t alignment = page;
    while (alignment < size) {
        alignment *= 2u;
    }
    const size_t all = ahead + size + alignment;
    unsigned char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    const size_t skipped = (alignment - (uintptr_t)(memory + ahead) % alignment) % alignment;
    unmap(memory, skipped);
    unmap(memory + skipped + ahead + size, alignment - skipped);
    return memory + skipped + ahead;
}

void hw_unreserve(void *memory, size_t front, size_t bytes)
{
    if (memory) {
        unmap((unsigned char *)memory - whole_pages(front), whole_pages(front) + whole_pages(bytes));
    }
}

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
    size_t bytes;             /* of the arena */
    struct hw_shadow *shadow; /* the index; the heap forgets it where it cannot be kept */
    uint64_t patience;        /* accesses that long walks may still make before there is one */
    uint64_t most_patience;
    uint64_t requested; /* live */
    uint64_t capacity;  /* of live blocks */
    uint64_t headers;   /* of live blocks */
    int check;
    struct hw_metrics *metrics;
};

/* Whether objects move, and are reached through references. */
static int moves(const struct hw_policy *policy)
{
    return policy->pools[0].kind == HW_COMPACT;
}

/* Pointers that the reference of an object takes, with what the heap keeps beside it. */
static size_t reference_words(const struct hw_policy *policy)
{
    const struct hw_compact *c = &policy->pools[0].compact;
    return c->header == 0 && c->in_arena == 0 ? sizeof(struct hw_handle) / sizeof(void *) : 1u;
}

size_t hw_front_bytes(const struct hw_policy *policy, const struct hw_calls *calls)
{
    return moves(policy) ? calls->slots * reference_words(policy) * sizeof(void *) : 0;
}

/* The reference of an object that moves: in front of the arena, so that its distance is the same on every machine. */
static void **slot_reference(struct replay *r, uint32_t slot)
{
    return (void **)(void *)r->heap.base - (slot + 1u) * reference_words(r->policy);
}

enum {
    PATIENCE = 1 << 17, /* accesses of long walks beyond these before an index is made */
    BEARABLE = 256      /* accesses of long walks a call that take no longer than keeping it */
};

/* Accesses that long walks may make before the heap is indexed. For tests and measurements the environment variable
 * HEAPWRIGHT_INDEX says how many; at 0 the heap is indexed from the first call on, at "never" it is not. */
static uint64_t patience(void)
{
    const char *chosen = getenv("HEAPWRIGHT_INDEX");
    if (chosen == NULL || *chosen == '\0') {
        return PATIENCE;
    }
    return strcmp(chosen, "never") == 0 ? UINT64_MAX : strtoull(chosen, NULL, 10);
}

/* Indexes the heap, once; without memory for that, it is walked. */
static void start_index(struct replay *r)
{
    r->shadow = shadow_make(r->policy, &r->heap, r->bytes);
    r->heap.shadow = r->shadow;
    r->patience = UINT64_MAX; /* never again */
}

/* Keeps account of long walks, and indexes the heap when they go on. */
static void watch_walks(struct replay *r, uint64_t accesses)
{
    if (accesses > HW_SHORT_WALK) {
        r->metrics->walked += accesses;
    } else {
        accesses = 0;
    }
    if (r->patience == UINT64_MAX) {
        return;
    }
    if (accesses > r->patience) {
        start_index(r);
        return;
    }
    r->patience += BEARABLE - accesses;
    if (r->patience > r->most_patience) {
        r->patience = r->most_patience;
    }
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
    r->metrics = metrics;
    metrics->broken_call = calls->count;
    metrics->abandoned_call = calls->count;
    if (!heap_init(policy, &r->heap, bytes)) {
        return HW_NO_ROOM;
    }
    r->heap.reads = 0;
    r->heap.writes = 0;
    const size_t front = hw_front_bytes(policy, calls);
    memset((unsigned char *)memory - front, 0, front);
    r->patience = r->most_patience = patience();
    if (r->patience == 0) {
        start_index(r);
    }
    r->objects = calloc(calls->slots ? calls->slots : 1u, sizeof *r->objects);
    if (r->objects == NULL) {
        shadow_free(r->shadow);
        return HW_NO_MEMORY;
    }
    return 0;
}

/* Metadata bytes that a block brings with it; the descriptors of partitions lie elsewhere. */
static uint32_t overhead_of(const struct hw_pool *pool, uint32_t capacity)
{
    if (pool->kind == HW_FIXED) {
        return pool->fixed.header;
    }
    if (pool->kind == HW_BUDDY) {
        return pool->buddy.header;
    }
    if (pool->kind == HW_PARTITION) {
        return capacity / pool->partition.partition * pool->partition.descriptor;
    }
    return pool->general.overhead;
}

/* Payload bytes of a block; padding counts as overhead on whichever side of the payload it lies. */
static uint32_t capacity_of(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    if (pool->kind == HW_GENERAL && pool->general.pad) {
        const struct hw_general *g = &pool->general;
        return word_size(g, load_word(g, h, block_of(g, h, at))) - g->overhead;
    }
    return pool_capacity(pool, h, at);
}

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
        const struct hw_compact *c = &p->pools[0].compact;
        void **reference = slot_reference(r, (uint32_t)(object - r->objects));
        object->capacity = (uint32_t)hw_handle_usable_size(p, &r->heap, reference);
        object->header = c->header + (c->in_arena ? c->handle : 0);
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

/* A pattern that tells objects and places apart, so that a block which moved or overlaps another is found out. */
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

/* The address of what a call of the heap returned; 0 where it refused. */
static uint32_t address_or_none(struct replay *r, const void *pointer)
{
    return pointer ? address_of(r->policy, &r->heap, pointer) : 0;
}

/* Asks for an object; returns its address, 0 where it was refused. Objects that move have the heap's own alignment. */
static uint32_t request(struct replay *r, uint32_t slot, uint32_t size, uint32_t align)
{
    if (moves(r->policy)) {
        if (align > r->policy->align || !hw_handle_alloc(r->policy, &r->heap, slot_reference(r, slot), size)) {
            return 0;
        }
        locate(r, slot);
        return r->objects[slot].at;
    }
    if (align) {
        return address_or_none(r, hw_aligned_alloc(r->policy, &r->heap, align, size));
    }
    return address_or_none(r, hw_malloc(r->policy, &r->heap, size));
}

/* Asks for another size of an object; returns its address, 0 where it was refused. */
static uint32_t request_size(struct replay *r, uint32_t slot, uint32_t size)
{
    struct object *object = &r->objects[slot];
    if (moves(r->policy)) {
        const int served = hw_handle_realloc(r->policy, &r->heap, slot_reference(r, slot), size);
        locate(r, slot);
        return served ? object->at : 0;
    }
    return address_or_none(r, hw_realloc(r->policy, &r->heap, arena_pointer(&r->heap, object->at), size));
}

static void give_back(struct replay *r, uint32_t slot)
{
    if (moves(r->policy)) {
        hw_handle_free(r->policy, &r->heap, slot_reference(r, slot));
        return;
    }
    hw_free(r->policy, &r->heap, arena_pointer(&r->heap, r->objects[slot].at));
}

static void replay_malloc(struct replay *r, uint64_t i)
{
    const uint32_t slot = r->calls->slot[i];
    const uint32_t size = r->calls->size[i];
    const uint32_t align = r->calls->align ? r->calls->align[i] : 0;
    const uint32_t at = request(r, slot, size, align);
    r->metrics->requested_bytes += size;
    r->objects[slot].at = at;
    if (at == 0) {
        r->metrics->failed++;
        return;
    }
    r->metrics->admitted_bytes += size;
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
    r->metrics->requested_bytes += size;
    const uint32_t had = object->size;
    const uint32_t at = request_size(r, slot, size);
    if (at == 0) {
        r->metrics->failed++;
        return;
    }
    r->metrics->admitted_bytes += size;
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

/* Performs one call; returns the metadata accesses it made. */
static uint64_t replay_call(struct replay *r, uint64_t i)
{
    const uint64_t before = r->heap.reads + r->heap.writes;
    const uint64_t skipped = r->heap.skipped;
    const uint32_t covered = r->heap.covered_bytes;
    const uint64_t moved = r->heap.moved_bytes;
    const uint8_t op = r->calls->op[i];
    if (op == HW_OP_FREE) {
        replay_free(r, i);
    } else if (op == HW_OP_REALLOC) {
        replay_realloc(r, i);
    } else {
        replay_malloc(r, i);
    }
    struct hw_metrics *m = r->metrics;
    if (r->requested > m->requested_peak) {
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
    watch_walks(r, cost - (r->heap.skipped - skipped) - (r->heap.moved_bytes - moved) / 2u);
    if (moves(r->policy) && r->check && r->heap.moved_bytes != moved) {
        look_at_all(r, i);
    }
    if (r->check == HW_CHECK_INVARIANTS) {
        const uint64_t reads = r->heap.reads;
        const int broken = hw_check(r->policy, &r->heap);
        if (broken) {
            note_broken(r, i, broken);
        }
        r->heap.reads = reads;
    }
    return cost;
}

static void replay_free_memory(struct replay *r)
{
    shadow_free(r->shadow);
    free(r->objects);
}

/* Returns 0, or HW_NO_MEMORY where the numbers mean nothing for want of memory. */
static int replay_end(struct replay *r)
{
    struct hw_metrics *m = r->metrics;
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        m->live_blocks += r->objects[slot].at != 0;
    }
    m->reads = r->heap.reads;
    m->writes = r->heap.writes;
    m->skipped = r->heap.skipped;
    m->moved = r->heap.moved_bytes;
    m->covered = r->heap.covered_bytes;
    m->shared = load4(&r->heap, r->policy->shared_high_at) - r->policy->fixed_end;
    if (r->policy->grows_down) {
        m->shared += load4(&r->heap, r->policy->shared_end_at) - load4(&r->heap, r->policy->shared_limit_at);
    }
    const int lost = r->shadow && r->shadow->lost;
    replay_free_memory(r);
    return lost ? HW_NO_MEMORY : 0;
}

/* ---- costs of calls ---------------------------------------------------------------------------------------------- */

/* How often each cost occurred; costs beyond the table are kept one by one. */
struct costs {
    uint32_t often[4096];
    uint32_t *dear;
    uint64_t dear_count;
    uint64_t count;
    uint64_t max;
};

static void costs_add(struct costs *costs, uint64_t cost)
{
    costs->count++;
    if (cost > costs->max) {
        costs->max = cost;
    }
    if (cost < 4096u) {
        costs->often[cost]++;
    } else {
        costs->dear[costs->dear_count++] = cost > UINT32_MAX ? UINT32_MAX : (uint32_t)cost;
    }
}

/* The smallest cost that at least 99.9 % of the calls do not exceed. */
static uint64_t costs_p999(struct costs *costs)
{
    uint64_t left = costs->count - costs->count / 1000u; /* ceil(0.999 count) calls are at or below it */
    if (costs->count == 0) {
        return 0;
    }
    for (uint32_t cost = 0; cost < 4096u; cost++) {
        if (costs->often[cost] >= left) {
            return cost;
        }
        left -= costs->often[cost];
    }
    qsort(costs->dear, costs->dear_count, sizeof *costs->dear, rising);
    return costs->dear[left - 1u];
}

/* ---- entry points ------------------------------------------------------------------------------------------------ */

struct accounts {
    struct costs allocating;
    struct costs freeing;
    double weighted; /* live requested bytes times microseconds, or times calls */
    double weight;
};

static void account_time(struct accounts *a, const struct replay *r, uint64_t i)
{
    double span = 1.0;
    if (r->calls->ts_us) {
        span = i + 1u < r->calls->count ? (double)(r->calls->ts_us[i + 1u] - r->calls->ts_us[i]) : 0.0;
    }
    a->weighted += span * (double)r->requested;
    a->weight += span;
}

/* The bounds that a replay has not come to yet, and the one that it must not exceed now. */
struct bounds {
    const struct hw_bound *next;
    const struct hw_bound *end;
    uint64_t accesses;
};

/* Whether some other heap needed less of both, whatever is still to come. */
static int is_hopeless(struct bounds *bounds, const struct replay *r)
{
    while (bounds->next != bounds->end && bounds->next->covered <= r->heap.covered_bytes) {
        bounds->accesses = bounds->next->accesses;
        bounds->next++;
    }
    return r->heap.reads + r->heap.writes > bounds->accesses;
}

int hw_replay(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes, int check,
              const struct hw_bound *bounds, uint32_t bound_count, uint32_t *timeline, struct hw_metrics *metrics)
{
    struct replay r;
    const int failed = replay_start(&r, policy, calls, memory, bytes, check, metrics);
    if (failed) {
        return failed;
    }
    struct accounts *a = calloc(1, sizeof *a);
    uint32_t *dear = malloc((calls->count ? calls->count : 1u) * sizeof *dear);
    if (a == NULL || dear == NULL) {
        free(a);
        free(dear);
        replay_free_memory(&r);
        return HW_NO_MEMORY;
    }
    uint64_t frees = 0;
    for (uint64_t i = 0; i < calls->count; i++) {
        frees += calls->op[i] == HW_OP_FREE;
    }
    struct bounds ahead = {bounds, bounds ? bounds + bound_count : NULL, UINT64_MAX};
    a->freeing.dear = dear;
    a->allocating.dear = dear + frees;
    for (uint64_t i = 0; i < calls->count; i++) {
        costs_add(calls->op[i] == HW_OP_FREE ? &a->freeing : &a->allocating, replay_call(&r, i));
        account_time(a, &r, i);
        if (timeline) {
            timeline[3u * i] = (uint32_t)r.requested;
            timeline[3u * i + 1u] = (uint32_t)(r.capacity + r.headers);
            timeline[3u * i + 2u] = r.heap.covered_bytes;
        }
        if (is_hopeless(&ahead, &r)) {
            metrics->abandoned_call = i;
            break;
        }
    }
    const int lost = replay_end(&r);
    metrics->malloc_max = a->allocating.max;
    metrics->malloc_p999 = costs_p999(&a->allocating);
    metrics->free_max = a->freeing.max;
    metrics->free_p999 = costs_p999(&a->freeing);
    metrics->mean_requested = a->weight > 0.0 ? a->weighted / a->weight : 0.0;
    free(dear);
    free(a);
    return lost;
}

int hw_serves(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes)
{
    struct replay r;
    struct hw_metrics metrics;
    const int failed = replay_start(&r, policy, calls, memory, bytes, HW_CHECK_NOTHING, &metrics);
    if (failed) {
        return failed;
    }
    for (uint64_t i = 0; i < calls->count && metrics.failed == 0; i++) {
        replay_call(&r, i);
    }
    return replay_end(&r) ? HW_NO_MEMORY : metrics.failed == 0;
}

/* ---- the heap map ------------------------------------------------------------------------------------------------ */

struct map {
    struct hw_run *runs;
    uint64_t room;
    uint64_t count;
    uint32_t column;
};

/* Adds a run, or lengthens the last one. */
static void add_run(struct map *map, uint32_t offset, uint32_t size, uint32_t state)
{
    if (size == 0) {
        return;
    }
    if (map->count > 0 && map->count <= map->room) {
        struct hw_run *last = &map->runs[map->count - 1u];
        if (last->column == map->column && last->state == state && last->offset + last->size == offset) {
            last->size += size;
            return;
        }
    }
    if (map->count < map->room) {
        const struct hw_run run = {map->column, offset, size, state};
        map->runs[map->count] = run;
    }
    map->count++;
}

/* A block that its pool holds for handed out but no object lives in waits in a quick list; where there is none, it is
 * one of a class whose free blocks are listed. `live` is NULL where no block can wait so. */
static void add_block(struct map *map, const struct hw_pool *pool, const struct hw_block *block,
                      const unsigned char *live)
{
    uint32_t state = HW_RUN_FREE;
    if (block->state == HW_BLOCK_USED && (live == NULL || live[block->offset + block->header])) {
        state = HW_RUN_USED;
    } else if (block->state == HW_BLOCK_USED && pool->cached) {
        state = HW_RUN_CACHED;
    }
    add_run(map, block->offset, block->header, HW_RUN_HEADER);
    add_run(map, block->offset + block->header, block->size - block->header, state);
}

/* The pools' numbers in the order in which they lie in the arena; returns how many hold blocks of their own. */
static uint32_t order_pools(struct replay *r, uint32_t *order)
{
    uint32_t starts[HW_MAX_POOLS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->policy->pool_count; i++) {
        struct hw_block first = {0, 0, 0, 0, 0};
        if (!pool_block_at(&r->policy->pools[i], &r->heap, 0, &first)) {
            continue;
        }
        uint32_t place = count++;
        for (; place > 0 && starts[place - 1u] > first.offset; place--) {
            starts[place] = starts[place - 1u];
            order[place] = order[place - 1u];
        }
        starts[place] = first.offset;
        order[place] = i;
    }
    return count;
}

/* Tells where a pool's descriptors or handles lie, those ever used first or, if they grow downwards, last; 0 where it
 * has none. */
static int descriptor_table(struct replay *r, const struct hw_pool *pool, uint32_t *from, uint32_t *used, uint32_t *end)
{
    if (pool->kind == HW_COMPACT && pool->compact.in_arena) {
        *from = load4(&r->heap, pool->compact.limit_at);
        *end = load4(&r->heap, pool->compact.end_at);
        *used = *end - *from;
        return 1;
    }
    if (pool->kind != HW_PARTITION) {
        return 0;
    }
    const struct hw_partition *g = &pool->partition;
    const uint32_t covered = (partition_number(g, load4(&r->heap, g->high_at)) - 1u) * g->descriptor;
    *from = g->grow ? load4(&r->heap, g->limit_at) : g->descriptors;
    *used = covered;
    *end = g->grow ? *from + covered : g->descriptors + g->most * g->descriptor;
    return 1;
}

/* Descriptors of the pools whose descriptors lie between `from` and `to`; returns where they end, or `from`. */
static uint32_t add_descriptors(struct map *map, struct replay *r, uint32_t from, uint32_t to)
{
    uint32_t table = 0;
    uint32_t used = 0;
    uint32_t end = 0;
    for (uint32_t i = 0; i < r->policy->pool_count; i++) {
        if (descriptor_table(r, &r->policy->pools[i], &table, &used, &end) && table >= from && end <= to) {
            add_run(map, from, table - from, HW_RUN_UNTOUCHED);
            add_run(map, table, used, HW_RUN_HEADER);
            from = table + used;
        }
    }
    return from;
}

static void add_column(struct map *map, struct replay *r, uint32_t arena, const unsigned char *live)
{
    const struct hw_policy *p = r->policy;
    uint32_t order[HW_MAX_POOLS];
    const uint32_t pools = order_pools(r, order);
    uint32_t end = p->control;
    add_run(map, 0, p->control, HW_RUN_CONTROL);
    for (uint32_t i = 0; i < pools; i++) {
        struct hw_block block = {0, 0, 0, 0, 0};
        while (pool_block_at(&p->pools[order[i]], &r->heap, block.offset + block.size, &block)) {
            end = add_descriptors(map, r, end, block.offset);
            add_run(map, end, block.offset - end, HW_RUN_UNTOUCHED);
            add_block(map, &p->pools[order[i]], &block, live);
            end = block.offset + block.size;
        }
    }
    end = add_descriptors(map, r, end, arena);
    add_run(map, end, arena - end, HW_RUN_UNTOUCHED);
}

int64_t hw_heap_map(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                    const uint64_t *columns, uint32_t column_count, struct hw_run *runs, uint64_t room)
{
    struct replay r;
    struct hw_metrics metrics;
    struct map map = {runs, room, 0, 0};
    const int failed = replay_start(&r, policy, calls, memory, bytes, HW_CHECK_NOTHING, &metrics);
    if (failed) {
        return failed;
    }
    unsigned char *live = calloc(bytes + 1u, 1);
    if (live == NULL) {
        replay_free_memory(&r);
        return HW_NO_MEMORY;
    }
    for (uint64_t i = 0; i < calls->count && map.column < column_count; i++) {
        struct object *object = &r.objects[calls->slot[i]];
        live[object->at] = 0;
        (void)replay_call(&r, i);
        live[object->at] = 1;
        live[0] = 0;
        if (columns[map.column] == i) {
            add_column(&map, &r, (uint32_t)bytes, moves(policy) ? NULL : live);
            map.column++;
        }
    }
    free(live);
    return replay_end(&r) ? HW_NO_MEMORY : (int64_t)map.count;
}

/* ---- metadata ------------------------------------------------------------------------------------------------------
 */

struct marks {
    unsigned char *bytes; /* one for each of the arena's */
    uint32_t end;         /* behind the last marked one */
    struct hw_heap *heap;
};

static void mark(struct marks *m, uint32_t from, uint32_t bytes)
{
    memset(m->bytes + from, 1, bytes);
    if (from + bytes > m->end) {
        m->end = from + bytes;
    }
}

static void general_mark(const struct hw_general *g, const struct hw_block *block, struct marks *m)
{
    const uint32_t payload = block->offset + block->header;
    mark(m, block->offset, block->header ? g->word.bytes : 0);
    if (block->header > g->header) {
        mark(m, payload - g->header, g->word.bytes);
    }
    if (block->state == HW_BLOCK_FREE) {
        const uint32_t links = g->free_list == HW_DOUBLE || g->free_list == HW_TREE ? 2u : g->free_list == HW_SINGLE;
        mark(m, block->offset + g->node, links * g->links.field.bytes);
        if (has_flag_before(g) && can_merge(g, block->size)) {
            mark(m, tag_at(g, block->offset + block->size), g->word.bytes);
        }
    }
    if (g->tag_in_header) {
        mark(m, tag_at(g, block->offset), g->word.bytes);
    }
    if (block->state == HW_BLOCK_CACHED) {
        mark(m, payload, g->links.field.bytes);
    }
}

static void fixed_mark(const struct hw_fixed *f, const struct hw_block *block, struct marks *m)
{
    if (f->header) {
        mark(m, block->offset, f->grow ? f->word.bytes : 0);
    }
    if (f->grow && f->first_fit) {
        mark(m, block->offset + 4u, f->links.field.bytes);
    }
    if (block->state == HW_BLOCK_CACHED || (block->state == HW_BLOCK_FREE && !f->first_fit)) {
        mark(m, block->offset + block->header, f->links.field.bytes);
    }
}

static void buddy_mark(const struct hw_buddy *y, const struct hw_block *block, struct marks *m)
{
    const uint32_t payload = block->offset + block->header;
    mark(m, block->offset, y->word.bytes);
    if (block->state == HW_BLOCK_FREE) {
        mark(m, payload, 2u * y->links.field.bytes);
    }
}

static void partition_mark(const struct hw_partition *g, const struct hw_block *block, struct marks *m)
{
    const uint32_t table = partition_table(g, m->heap);
    const uint32_t i = partition_number(g, block->offset);
    const uint32_t last = i + block->size / g->partition - 1u;
    const uint32_t width = g->field.bytes;
    mark(m, count_at(g, table, i), width);
    if (g->coalesce) {
        mark(m, first_at(g, table, last), width);
    }
    if (block->state == HW_BLOCK_FREE) {
        mark(m, next_at(g, table, i), 2u * width);
    }
}

static void compact_mark(const struct hw_compact *c, const struct hw_block *block, struct marks *m)
{
    if (c->header) {
        mark(m, block->offset, 2u * c->word.bytes);
    }
}

/* The handles in the arena: those given back hold a link, the others an address, and more where there are no headers.
 */
static void mark_handles(const struct hw_compact *c, struct marks *m)
{
    const uint32_t table = handle_table(c, m->heap);
    const uint32_t width = c->links.field.bytes;
    if (c->in_arena == 0) {
        return;
    }
    for (uint32_t k = load4(m->heap, c->handles_at); k > 0; k--) {
        mark(m, handle_at(c, table, k), width);
        if (c->header == 0 && is_chained(c, m->heap, table, k)) {
            mark(m, handle_at(c, table, k), 3u * width);
        }
    }
}

/* A block that waits in a quick list holds a link. */
static void mark_cached(const struct hw_policy *policy, const struct hw_block *block, struct marks *m)
{
    if (block->state == HW_BLOCK_CACHED) {
        for (uint32_t i = 0; i < block->pool; i++) {
            if (policy->pools[i].kind == HW_QUICK) {
                mark(m, block->offset + block->header, policy->pools[i].quick.links.field.bytes);
            }
        }
    }
}

int64_t hw_metadata(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                    unsigned char *marks)
{
    struct replay r;
    struct hw_metrics metrics;
    const int failed = replay_start(&r, policy, calls, memory, bytes, HW_CHECK_NOTHING, &metrics);
    if (failed) {
        return failed;
    }
    for (uint64_t i = 0; i < calls->count; i++) {
        (void)replay_call(&r, i);
    }
    struct marks m = {marks, 0, &r.heap};
    struct hw_block block = {0, 0, 0, 0, 0};
    mark(&m, 0, policy->control);
    while (hw_next_block(policy, &r.heap, &block)) {
        const struct hw_pool *pool = &policy->pools[block.pool];
        HW_ASK(pool, mark, &block, &m);
        mark_cached(policy, &block, &m);
    }
    if (moves(policy)) {
        mark_handles(&policy->pools[0].compact, &m);
    }
    return replay_end(&r) ? HW_NO_MEMORY : (int64_t)m.end;
}
