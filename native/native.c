/* native.c: the entry points of the replay engine, and its pictures of the arena. */
#define _GNU_SOURCE
#include "ordinary.h"
#include "replay.h"
#include "route.h"

#include <sys/mman.h>
#include <unistd.h>

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

uint32_t hw_number_objects(const uint8_t *op, const uint32_t *id, uint64_t count, uint32_t *latest, uint32_t *object)
{
    uint32_t objects = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (op[i] == HW_OP_MALLOC || op[i] == HW_OP_CALLOC) {
            latest[id[i]] = objects++;
        }
        object[i] = latest[id[i]];
    }
    return objects;
}

int hw_is_orderly(const uint8_t *op, const uint32_t *id, uint64_t count, unsigned char *live)
{
    for (uint64_t i = 0; i < count; i++) {
        const int is_born = op[i] == HW_OP_MALLOC || op[i] == HW_OP_CALLOC;
        if (live[id[i]] == is_born) {
            return 0;
        }
        live[id[i]] = op[i] != HW_OP_FREE;
    }
    return 1;
}

void hw_deaths(const struct hw_calls *calls, int32_t *latest, int32_t *death)
{
    memset(latest, -1, calls->slots * sizeof *latest);
    for (uint64_t i = calls->count; i-- > 0;) {
        int32_t *next = &latest[calls->slot[i]];
        death[i] = -1;
        if (calls->op[i] == HW_OP_FREE) {
            *next = (int32_t)i;
        } else if (calls->op[i] != HW_OP_REALLOC) {
            death[i] = *next;
            *next = -1;
        }
    }
}

/* Bytes that a request makes its object, see hw_live_bytes(). */
static int64_t bytes_of(const struct hw_calls *calls, const int64_t *bytes, uint32_t align, uint64_t i)
{
    if (bytes) {
        return bytes[i];
    }
    const int64_t size = calls->size[i];
    if (align == 0) {
        return size;
    }
    return ((size ? size : 1) + align - 1) / align * align;
}

int64_t hw_live_bytes(const struct hw_calls *calls, const int64_t *bytes, uint32_t align, int both, int64_t *after)
{
    int64_t *have = calloc(calls->slots ? calls->slots : 1u, sizeof *have);
    int64_t sum = 0;
    int64_t largest = 0;
    if (have == NULL) {
        return HW_NO_MEMORY;
    }
    for (uint64_t i = 0; i < calls->count; i++) {
        int64_t *mine = &have[calls->slot[i]];
        const int64_t before = *mine;
        *mine = calls->op[i] == HW_OP_FREE ? 0 : bytes_of(calls, bytes, align, i);
        sum += *mine - before;
        const int64_t at_once = both && calls->op[i] == HW_OP_REALLOC ? sum + before : sum;
        largest = at_once > largest ? at_once : largest;
        if (after) {
            after[i] = sum;
        }
    }
    free(have);
    return largest;
}

int hw_total(const struct hw_calls *calls, uint64_t count, struct hw_totals *totals)
{
    struct hw_totals sum = {0};
    uint32_t *have = calloc(calls->slots ? calls->slots : 1u, sizeof *have);
    *totals = sum;
    if (have == NULL) {
        return HW_NO_MEMORY;
    }
    uint64_t live = 0;
    for (uint64_t i = 0; i < count; i++) {
        const int is_request = calls->op[i] != HW_OP_FREE;
        const uint32_t size = is_request ? calls->size[i] : 0;
        live += (uint64_t)size - have[calls->slot[i]];
        have[calls->slot[i]] = size;
        sum.requests += is_request ? 1u : 0;
        sum.requested_bytes += size;
        sum.requested_peak = live > sum.requested_peak ? live : sum.requested_peak;
        const double span = span_of(calls, i);
        sum.weighted += span * (double)live;
        sum.weight += span;
    }
    free(have);
    *totals = sum;
    return 0;
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
#ifdef MADV_HUGEPAGE
    (void)madvise(memory + skipped, ahead + size, MADV_HUGEPAGE); /* blocks are looked at all over the arena */
#endif
    return memory + skipped + ahead;
}

void hw_unreserve(void *memory, size_t front, size_t bytes)
{
    if (memory) {
        unmap((unsigned char *)memory - whole_pages(front), whole_pages(front) + whole_pages(bytes));
    }
}

void hw_forget(void *memory, size_t bytes)
{
    (void)madvise(memory, whole_pages(bytes), MADV_DONTNEED);
}

/* ---- entry points ------------------------------------------------------------------------------------------------ */

size_t hw_front_bytes(const struct hw_policy *policy, const struct hw_calls *calls)
{
    return front_bytes(policy, calls);
}

/* Whether the policy has code of its own that this processor can run. For tests and measurements the environment
 * variable HEAPWRIGHT_ORDINARY, set to "never", says that it has none. */
static int has_own_code(const struct hw_policy *policy)
{
    const char *chosen = getenv("HEAPWRIGHT_ORDINARY");
    if (chosen && strcmp(chosen, "never") == 0) {
        return 0;
    }
#ifdef HW_ORDINARY_AVX2
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) {
        return 0;
    }
#endif
    return hw_is_ordinary(policy);
}

int hw_replay(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes, int check,
              const struct hw_watch *watch, const struct hw_timeline *timeline, struct hw_metrics *metrics)
{
    if (has_own_code(policy)) {
        return hw_replay_ordinary(policy, calls, memory, bytes, check, watch, timeline, metrics);
    }
    return replay_all(policy, calls, memory, bytes, check, watch, timeline, metrics);
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

int hw_route(struct hw_memory *memories, uint32_t count, const struct hw_calls *calls, uint32_t *where, uint32_t *at,
             struct hw_metrics *metrics)
{
    struct route r = {.count = 0, .calls = calls, .metrics = metrics};
    r.heaps = calloc(count, sizeof *r.heaps);
    r.owner = calloc(calls->slots + 1u, sizeof *r.owner);
    int failed = r.heaps && r.owner && accounts_open(&r.accounts, calls) ? 0 : HW_NO_MEMORY;
    while (failed == 0 && r.count < count) {
        failed = route_start(&r, &memories[r.count]);
        r.count += failed == 0;
    }
    if (failed == 0) {
        failed = route_all(&r, where, at);
        r.count = 0;
    }
    while (r.count > 0) {
        replay_free_memory(&r.heaps[--r.count].replay);
    }
    free(r.accounts.allocating.dear);
    free(r.accounts.freeing.dear);
    free(r.heaps);
    free(r.owner);
    return failed;
}

/* ---- films ------------------------------------------------------------------------------------------------------- */

struct hw_film {
    struct replay replay;
    struct hw_metrics metrics;
    uint64_t next;  /* call */
    uint64_t grown; /* see hw_extent */
    uint64_t shared;
    uint64_t birth; /* of the object that is left out; as `death`, the number of calls where none is */
    uint64_t death;
    unsigned char *live; /* room for a mark for each address, all 0; NULL before the first look */
};

/* Where pieces go. */
struct map {
    struct hw_piece *pieces;
    uint64_t room;
    uint64_t count;
};

static void add_piece(struct map *map, const struct hw_piece *piece)
{
    if (piece->size == 0) {
        return;
    }
    if (map->count < map->room) {
        map->pieces[map->count] = *piece;
    }
    map->count++;
}

/* Adds a stretch outside all blocks. */
static void add_run(struct map *map, uint32_t offset, uint32_t size, uint32_t state)
{
    const struct hw_piece piece = {offset, size, 0, state, HW_MAX_POOLS};
    add_piece(map, &piece);
}

/* A block that its pool holds for handed out but no object lives in waits in a quick list; where there is none, it is
 * one of a class whose free blocks are listed. `live` is NULL where no block can wait so. */
static void add_block(struct map *map, const struct replay *r, uint32_t pool, const struct hw_block *block,
                      const unsigned char *live)
{
    uint32_t state = HW_RUN_FREE;
    if (block->state == HW_BLOCK_USED && (live == NULL || live[block->offset + block->header])) {
        state = HW_RUN_USED;
    } else if (block->state == HW_BLOCK_USED && r->policy->pools[pool].cached) {
        state = HW_RUN_CACHED;
    }
    const struct hw_piece piece = {block->offset, block->size, block->header, state, pool};
    add_piece(map, &piece);
}

/* The pools' numbers in the order in which they lie in the arena; returns how many hold blocks of their own. */
static uint32_t order_pools(struct replay *r, uint32_t *order)
{
    uint32_t starts[HW_MAX_POOLS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->policy->pool_count; i++) {
        struct hw_block first = {0, 0, 0, 0, 0};
        const struct hw_pool *pool = &r->policy->pools[i];
        if (pool->kind == HW_QUICK || !pool_block_at(pool, &r->heap, 0, &first)) {
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

static void add_arena(struct map *map, struct replay *r, const unsigned char *live)
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
            add_block(map, r, order[i], &block, live);
            end = block.offset + block.size;
        }
    }
    const uint32_t arena = (uint32_t)r->bytes;
    end = add_descriptors(map, r, end, arena);
    add_run(map, end, arena - end, HW_RUN_UNTOUCHED);
}

struct hw_film *hw_film_open(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                             int *code)
{
    struct hw_film *film = calloc(1, sizeof *film);
    if (film == NULL) {
        *code = HW_NO_MEMORY;
        return NULL;
    }
    *code = replay_start(&film->replay, policy, calls, memory, bytes, HW_CHECK_NOTHING, &film->metrics);
    if (*code) {
        free(film);
        return NULL;
    }
    film->birth = film->death = film->grown = calls->count;
    film->shared = shared_bytes(&film->replay);
    return film;
}

void hw_film_leave_out(struct hw_film *film, uint64_t birth, uint64_t death)
{
    film->birth = birth;
    film->death = death;
}

/* Whether a call is of the object that is left out. */
static int is_left_out(const struct hw_film *film, uint64_t call)
{
    const uint32_t *slot = film->replay.calls->slot;
    return call >= film->birth && call <= film->death && slot[call] == slot[film->birth];
}

/* Performs the next call. */
static void film_call(struct hw_film *film)
{
    struct replay *r = &film->replay;
    const uint64_t call = film->next++;
    if (is_left_out(film, call)) {
        return;
    }
    (void)replay_call(r, call);
    const uint64_t shared = shared_bytes(r);
    if (shared != film->shared) {
        film->shared = shared;
        film->grown = call;
    }
}

/* Marks where live objects' payloads begin, or takes the marks away. */
static void mark_live(struct hw_film *film, unsigned char mark)
{
    const struct replay *r = &film->replay;
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        film->live[r->objects[slot].at] = mark;
    }
    film->live[0] = 0;
}

int64_t hw_film_show(struct hw_film *film, uint64_t call, struct hw_piece *pieces, uint64_t room)
{
    struct replay *r = &film->replay;
    struct map map = {pieces, room, 0};
    while (film->next <= call && film->next < r->calls->count) {
        film_call(film);
    }
    if (room == 0) {
        return 0;
    }
    film->live = film->live ? film->live : calloc(r->bytes + 1u, 1);
    if (film->live == NULL) {
        return HW_NO_MEMORY;
    }
    const uint64_t reads = r->heap.reads;
    mark_live(film, 1);
    add_arena(&map, r, moves(r->policy) ? NULL : film->live);
    mark_live(film, 0);
    r->heap.reads = reads;
    return (int64_t)map.count;
}

uint32_t hw_film_alive(struct hw_film *film, struct hw_alive *alive)
{
    struct replay *r = &film->replay;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        if (r->objects[slot].at) {
            if (moves(r->policy)) {
                locate(r, slot);
            }
            const struct hw_alive one = {r->objects[slot].at, slot, r->objects[slot].size};
            alive[count++] = one;
        }
    }
    return count;
}

void hw_film_extent(struct hw_film *film, struct hw_extent *extent)
{
    struct replay *r = &film->replay;
    const uint64_t reads = r->heap.reads;
    extent->low = load4(&r->heap, r->policy->shared_high_at);
    extent->high = r->policy->grows_down ? load4(&r->heap, r->policy->shared_limit_at) : (uint32_t)r->bytes;
    extent->grown = film->grown;
    r->heap.reads = reads;
}

int hw_film_close(struct hw_film *film, struct hw_metrics *metrics)
{
    const int lost = replay_end(&film->replay);
    *metrics = film->metrics;
    free(film->live);
    free(film);
    return lost;
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

/* Behind an object of level full lies a guard. */
static void mark_guard(const struct hw_policy *policy, const struct hw_block *block, struct marks *m)
{
    if (policy->checks == HW_CHECKS_FULL && block->state == HW_BLOCK_USED) {
        const uint32_t at = block->offset + block->header;
        mark(m, at + heap_capacity(policy, m->heap, at), policy->guard.bytes);
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
        mark_guard(policy, &block, &m);
    }
    if (moves(policy)) {
        mark_handles(&policy->pools[0].compact, &m);
    }
    return replay_end(&r) ? HW_NO_MEMORY : (int64_t)m.end;
}
