/* native.c: the entry points of the replay engine. All calls of the core are in this file, because it takes long to
 * compile. */
#define _GNU_SOURCE
#include "native.h"

#include "stress_test.h"
#include "marks.h"
#include "ordinary.h"
#include "pictures.h"
#include "route.h"
#include "replay_loop.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- arenas ------------------------------------------------------------------------------------------------------ */

static size_t whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1u) / page * page;
}

enum { MOST_HUGE = 1 << 26 }; /* bytes */

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
    /* blocks are looked at all over the arena; where it is larger they are, too, and huge pages would be touched once
     */
    (void)madvise(memory + skipped, ahead + (size < MOST_HUGE ? size : MOST_HUGE), MADV_HUGEPAGE);
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

/* ---- replays ----------------------------------------------------------------------------------------------------- */

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
    return hw_leaves_switches(policy);
}

int hw_is_ordinary(const struct hw_policy *policy)
{
    return hw_leaves_switches(policy);
}

/* At level full a replay whose arena is not inspected omits the masks of its metadata. */
static const struct hw_policy *unmasked(const struct hw_policy *policy, struct hw_policy *bare)
{
    if (policy->checks != HW_CHECKS_FULL) {
        return policy;
    }
    *bare = *policy;
    bare->cache.links.keyed = HW_KEYS_NONE;
    for (uint32_t i = 0; i < bare->pool_count; i++) {
        struct hw_links *links = links_of(&bare->pools[i]);
        if (links) {
            links->keyed = HW_KEYS_NONE;
        }
    }
    return bare;
}

int hw_replay(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
              const struct hw_options *options, struct hw_metrics *metrics)
{
    struct hw_policy bare;
    const struct hw_policy *replayed = options->check == HW_CHECK_NOTHING ? unmasked(policy, &bare) : policy;
    if (has_own_code(replayed)) {
        return hw_replay_ordinary(replayed, calls, memory, bytes, options, metrics);
    }
    return replay_all(replayed, calls, memory, bytes, options, metrics);
}

uint32_t hw_replay_each(const struct hw_policy *const *policies, uint32_t count, const struct hw_calls *calls,
                        void *memory, size_t bytes, struct hw_metrics *metrics, int *code)
{
    const struct hw_options options = {HW_CHECK_NOTHING, NULL, NULL};
    int clean = 1;
    for (uint32_t k = 0; k < count; k++) {
        const struct hw_policy *policy = policies[k];
        if (policy->checks && !clean) {
            hw_forget(memory, bytes);
        }
        *code = hw_replay(policy, calls, memory, bytes < policy->reach ? bytes : policy->reach, &options, &metrics[k]);
        if (*code) {
            return k;
        }
        clean = metrics[k].wiped;
    }
    return count;
}

int hw_serves(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes, int *wiped)
{
    struct replay r;
    struct hw_metrics metrics;
    struct hw_policy bare;
    const int failed = replay_start(&r, unmasked(policy, &bare), calls, memory, bytes, HW_CHECK_NOTHING, &metrics);
    *wiped = metrics.wiped;
    if (failed) {
        return failed;
    }
    for (uint64_t i = 0; i < calls->count && metrics.failed == 0; i++) {
        replay_call(&r, i);
    }
    const int lost = replay_end(&r);
    *wiped = metrics.wiped;
    return lost ? HW_NO_MEMORY : metrics.failed == 0;
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

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

struct hw_film {
    struct replay replay;
    struct hw_metrics metrics;
    uint64_t next;  /* call */
    uint64_t grown; /* see hw_extent */
    uint64_t shared;
    uint64_t birth; /* of the object that is left out; as `death`, the number of calls where none is */
    uint64_t death;
    unsigned char *live; /* 1 for each address at which a live object's payload begins; NULL before the first look */
};

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

void hw_film_follow(struct hw_film *film, const struct hw_calls *calls)
{
    film->replay.calls = calls;
    film->replay.walked_at = 0;
    film->next = 0;
    film->birth = film->death = UINT64_MAX;
}

/* Whether a call is of the object that is left out. */
static int is_left_out(const struct hw_film *film, uint64_t call)
{
    const uint32_t *slot = film->replay.calls->slot;
    return call >= film->birth && call <= film->death && slot[call] == slot[film->birth];
}

/* Marks where the payload of an object begins if it is alive, or takes the mark away. */
static void mark_live(struct hw_film *film, uint32_t slot, unsigned char mark)
{
    const uint32_t at = film->replay.objects[slot].at;
    if (film->live && at) {
        film->live[at] = mark;
    }
}

/* Performs the next call. */
static void film_call(struct hw_film *film)
{
    struct replay *r = &film->replay;
    const uint64_t call = film->next++;
    if (is_left_out(film, call)) {
        return;
    }
    mark_live(film, r->calls->slot[call], 0);
    (void)replay_call(r, call);
    mark_live(film, r->calls->slot[call], 1);
    const uint64_t shared = shared_bytes(r);
    if (shared != film->shared) {
        film->shared = shared;
        film->grown = call;
    }
}

/* Marks all live objects. Returns 0 for want of memory. */
static int begin_marks(struct hw_film *film)
{
    film->live = calloc(film->replay.bytes + 1u, 1);
    for (uint32_t slot = 0; film->live && slot < film->replay.calls->slots; slot++) {
        mark_live(film, slot, 1);
    }
    return film->live != NULL;
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
    if (film->live == NULL && !begin_marks(film)) {
        return HW_NO_MEMORY;
    }
    const uint64_t reads = r->heap.reads;
    settle_object(r->policy, &r->heap, NULL);
    add_arena(&map, r, moves(r->policy) ? NULL : film->live);
    r->heap.reads = reads;
    return (int64_t)map.count;
}

/* Adds to the cells of a state what lies from byte `from` to `to`. */
static void add_share(float *cells, uint32_t rows, double cell, uint64_t from, uint64_t to)
{
    const double end = (double)to / cell;
    double at = (double)from / cell;
    for (uint32_t row = (uint32_t)at; row < rows && at < end; row++) {
        const double edge = end < row + 1.0 ? end : row + 1.0;
        cells[row] += (float)(edge - at);
        at = edge;
    }
}

void hw_cell_shares(const struct hw_piece *pieces, uint64_t count, uint64_t extent, uint32_t rows, float *shares)
{
    const double cell = (double)extent / rows;
    for (uint64_t i = 0; i < count; i++) {
        const struct hw_piece *p = &pieces[i];
        const uint64_t body = (uint64_t)p->offset + p->header;
        add_share(shares + (size_t)HW_RUN_HEADER * rows, rows, cell, p->offset, body);
        add_share(shares + (size_t)p->state * rows, rows, cell, body, (uint64_t)p->offset + p->size);
    }
}

uint32_t hw_film_alive(struct hw_film *film, struct hw_alive *alive)
{
    struct replay *r = &film->replay;
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < r->calls->slots; slot++) {
        if (r->objects[slot].at) {
            if (moves(r->policy)) {
                settle_object(r->policy, &r->heap, slot_reference(r, slot));
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

void hw_film_counts(struct hw_film *film, struct hw_metrics *metrics)
{
    *metrics = film->metrics;
    replay_results(&film->replay, metrics);
}

int hw_film_close(struct hw_film *film, struct hw_metrics *metrics)
{
    const int lost = replay_end(&film->replay);
    *metrics = film->metrics;
    free(film->live);
    free(film);
    return lost;
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

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
    keep_arena(&r.heap);
    for (uint64_t i = 0; i < calls->count; i++) {
        (void)replay_call(&r, i);
    }
    settle_object(policy, &r.heap, NULL);
    struct marks m = {marks, 0, &r.heap};
    struct hw_block block = {0, 0, 0, 0, 0};
    mark(&m, 0, policy->control);
    while (hw_next_block(policy, &r.heap, &block)) {
        const struct hw_pool *pool = &policy->pools[block.pool];
        HW_ASK(pool, mark, &block, &m);
        mark_cached(policy, &block, &m);
        mark_guard(policy, &block, &m);
    }
    return replay_end(&r) ? HW_NO_MEMORY : (int64_t)m.end;
}

/* ---- usage ------------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct hw_usage) == HW_USAGE * sizeof(uint32_t), "the binding knows the members of the usage");

int hw_usage_after(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                   uint32_t *usage)
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
    const struct hw_usage after = hw_usage(policy, &r.heap);
    memcpy(usage, &after, sizeof after);
    return replay_end(&r) ? HW_NO_MEMORY : 0;
}
