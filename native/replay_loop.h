/* replay_loop.h: a whole replay, from the first call to the last. */
#ifndef HW_WHOLE_H
#define HW_WHOLE_H

#include "accounts.h"

/* Whether a replay has come to all levels of some corner. */
static int is_at_corner(const struct hw_watch *watch, const struct hw_so_far *so_far)
{
    const uint64_t to_come = watch->to_come ? watch->to_come[so_far->calls / watch->stretch] : 0;
    const uint64_t reached[HW_GROWING] = {so_far->used,        so_far->reads + so_far->writes + to_come,
                                          so_far->reads,       so_far->writes,
                                          so_far->moved,       so_far->malloc_max,
                                          so_far->realloc_max, so_far->free_max};
    for (uint64_t corner = 0; corner < watch->corners; corner++) {
        const uint64_t *levels = watch->levels + corner * HW_GROWING;
        size_t at = 0;
        while (at < HW_GROWING && reached[at] >= levels[at]) {
            at++;
        }
        if (at == HW_GROWING) {
            return 1;
        }
    }
    return 0;
}

/* Asks, where it is time to, whether a replay is worth going on with; `asked` are the calls after which it was last. */
static int is_given_up(struct replay *r, const struct accounts *a, uint64_t calls, const struct hw_watch *watch,
                       uint64_t *asked)
{
    const struct hw_so_far so_far = {calls,
                                     r->policy->fixed_end + shared_bytes(r),
                                     r->heap.reads,
                                     r->heap.writes,
                                     r->heap.moved_bytes,
                                     a->allocating.max,
                                     a->realloc_max,
                                     a->freeing.max};
    if (calls - *asked < watch->latest && !is_at_corner(watch, &so_far)) {
        return 0;
    }
    *asked = calls;
    return !watch->go_on(watch->watcher, &so_far);
}

/* Takes the moment after the call i, in a stretch of a timeline, if it has the fewest or the most bytes so far. */
static void note_moment(const struct replay *r, const struct hw_timeline *timeline, uint64_t stretch, uint64_t i)
{
    const struct hw_moment now = {i, (uint32_t)r->requested, (uint32_t)(r->capacity + r->headers),
                                  r->heap.covered_bytes, 0};
    struct hw_moment *few = &timeline->moments[2u * stretch];
    struct hw_moment *many = few + 1;
    const int begins = i == (stretch ? timeline->ends[stretch - 1u] : 0);
    if (begins || now.requested < few->requested) {
        *few = now;
    }
    if (begins || now.requested > many->requested) {
        *many = now;
    }
}

/* Takes note of how far memory has come in a stretch. */
static void note_reached(struct replay *r, struct hw_covered *covered)
{
    const uint64_t blocks = r->capacity + r->headers;
    covered->footprint = r->policy->fixed_end + shared_bytes(r);
    covered->blocks = blocks > covered->blocks ? blocks : covered->blocks;
}

enum { OBJECT_AHEAD = 32, BLOCK_AHEAD = 16, NEIGHBOUR_AHEAD = 6 }; /* calls */

#if defined(__GNUC__)
static HW_ALWAYS_INLINE uint32_t word_in(const struct replay *r, uint32_t at)
{
    uint32_t word = 0;
    if ((uint64_t)at + sizeof word <= r->bytes) {
        memcpy(&word, r->heap.base + at, sizeof word);
    }
    return word;
}

/* Fetches what the links of the block b lead to, if it is free. */
static HW_ALWAYS_INLINE void fetch_linked(const struct replay *r, uint32_t b)
{
    if ((word_in(r, b) & HW_USED) == 0) {
        __builtin_prefetch(r->heap.base + word_in(r, b + 4u));
        __builtin_prefetch(r->heap.base + word_in(r, b + 8u));
    }
}
#endif

/* Fetches what calls soon to come will look at: the object, once that is there its block, and once that is there what a
 * free block behind it is linked with. Inlined, because compilers take a function that only fetches for one that does
 * nothing. */
static HW_ALWAYS_INLINE void look_ahead(const struct replay *r, uint64_t i)
{
#if defined(__GNUC__)
    __builtin_prefetch(&r->objects[r->calls->slot[i + OBJECT_AHEAD]]);
    const struct object *object = &r->objects[r->calls->slot[i + BLOCK_AHEAD]];
    __builtin_prefetch(r->heap.base + object->at);
    __builtin_prefetch(r->heap.base + object->at + object->capacity);
    if (r->has_links && r->calls->op[i + NEIGHBOUR_AHEAD] == HW_OP_FREE) {
        object = &r->objects[r->calls->slot[i + NEIGHBOUR_AHEAD]];
        fetch_linked(r, object->at + object->capacity);
        if (r->heap.engine.shadow) {
            const struct chunks *nodes = &r->heap.engine.shadow->pools[r->policy->pool_count - 1u].nodes;
            fetch_number(nodes, object->at);
            fetch_number(nodes, object->at + object->capacity + 4u);
        }
    }
#else
    (void)r;
    (void)i;
#endif
}

/* See hw_replay(). */
static int replay_all(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                      const struct hw_options *options, struct hw_metrics *metrics)
{
    const struct hw_watch *watch = options->watch;
    const struct hw_timeline *timeline = options->timeline;
    struct replay r;
    const int failed = replay_start(&r, policy, calls, memory, bytes, options->check, metrics);
    if (failed) {
        return failed;
    }
    struct accounts *a = calloc(1, sizeof *a);
    if (a == NULL || !accounts_open(a, calls)) {
        accounts_close(a);
        replay_free_memory(&r);
        return HW_NO_MEMORY;
    }
    r.tallies = calls->totals.requests == 0;
    int lost = 0;
    uint64_t stretch = 0;
    uint64_t looks = watch ? watch->every : UINT64_MAX;
    uint64_t asked = 0;
    const uint64_t ahead = calls->slots < FEW_OBJECTS || calls->count < OBJECT_AHEAD ? 0 : calls->count - OBJECT_AHEAD;
    for (uint64_t i = 0; i < calls->count; i++) {
        if (i < ahead) {
            look_ahead(&r, i);
        }
        const uint64_t cost = replay_call(&r, i);
        account_cost(a, calls->op[i], cost);
        if (metrics->failed | (uint64_t)r.tallies) {
            if (!r.tallies && !begin_to_tally(&r, a, i)) {
                lost = 1;
                break;
            }
            account_time(a, &r, i);
        }
        if (timeline) {
            stretch += i == timeline->ends[stretch];
            if (timeline->covered) {
                note_reached(&r, &timeline->covered[stretch]);
            } else {
                note_moment(&r, timeline, stretch, i);
            }
        }
        if (i + 1u == looks && looks < calls->count) {
            looks += watch->every;
            if (is_given_up(&r, a, i + 1u, watch, &asked)) {
                metrics->abandoned_call = i;
                break;
            }
        }
    }
    if (!r.tallies) {
        take_totals(&r, a, &calls->totals);
    }
    lost |= replay_end(&r) != 0;
    tell_accounts(a, metrics);
    accounts_close(a);
    return lost ? HW_NO_MEMORY : 0;
}

#endif
