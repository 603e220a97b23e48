/* shadow_moving.h: the index of a compacting pool.
 *
 *     place      1             2                3             4           in order of address
 *     block      handle 7      gone             handle 2      handle 9
 *     size       24            0                16            40
 *     holes      none          8, 24            none          8           behind it, the nearest first
 *
 * The address of a block is the sum of the sizes before it: moving all blocks behind a position changes one number. So
 * here the arena is not the source of truth. The header of a block and the address in its handle may be stale, and are
 * updated before they are read: settle_handle(), settle_blocks(). All else in the arena is always up to date.
 *
 * Sums over places are kept in a tree (Fenwick, "A new data structure for cumulative frequency tables", 1994).
 */
#ifndef HW_SHADOW_MOVING_H
#define HW_SHADOW_MOVING_H

#include "shadow.h"

/* ---- sums over places -------------------------------------------------------------------------------------------- */

static void add_sums(struct moving *m, uint32_t place, const struct sums *by)
{
    for (; place <= m->room; place += place & (0u - place)) {
        m->tree[place].bytes += by->bytes;
        m->tree[place].words += by->words;
        m->tree[place].used += by->used;
        m->tree[place].holes += by->holes;
    }
}

/* Sums over all places up to this one. */
static struct sums sums_to(const struct moving *m, uint32_t place)
{
    struct sums all = {0, 0, 0, 0};
    for (; place; place &= place - 1u) {
        all.bytes += m->tree[place].bytes;
        all.words += m->tree[place].words;
        all.used += m->tree[place].used;
        all.holes += m->tree[place].holes;
    }
    return all;
}

/* The place of the block with this rank, from 1. */
static uint32_t place_of_rank(const struct moving *m, uint32_t rank)
{
    uint32_t place = 0;
    for (uint32_t step = m->room; step; step /= 2u) {
        if (place + step <= m->room && m->tree[place + step].used < rank) {
            place += step;
            rank -= m->tree[place].used;
        }
    }
    return place + 1u;
}

static inline uint32_t words_of(uint32_t bytes)
{
    return (bytes + 3u) / 4u;
}

/* The block of a place becomes `by` bytes larger, modulo 2^32. */
static void stretch(struct moving *m, uint32_t place, uint32_t by)
{
    struct stay *stay = &m->stays[place];
    const struct sums sums = {by, words_of(stay->size + by) - words_of(stay->size), 0, 0};
    stay->size += by;
    add_sums(m, place, &sums);
}

/* ---- settling ---------------------------------------------------------------------------------------------------- */

/* The index of a pool's moving blocks; NULL where there is none. */
static inline struct moving *moving_of(const struct hw_compact *c, struct hw_heap *h)
{
    return h->engine.shadow ? shadow_of(c, h)->moving : NULL;
}

/* The block at a place, `at` bytes behind the first one: its header, and the address in its handle. */
static void settle(const struct hw_compact *c, struct hw_heap *h, const struct stay *stay, uint32_t at)
{
    const uint64_t reads = h->reads;
    const uint64_t writes = h->writes;
    store_reference(h, stay->k, c->start + at + c->header);
    if (c->header) {
        write_header(c, h, c->start + at, stay->size, stay->k);
    }
    h->reads = reads;
    h->writes = writes;
}

static void settle_place(const struct hw_compact *c, struct hw_heap *h, const struct moving *m, uint32_t place)
{
    settle(c, h, &m->stays[place], sums_to(m, place - 1u).bytes);
}

/* Updates a handle and its block's header, which are valid until the next slide. O(log blocks). */
static void settle_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    struct moving *m = moving_of(c, h);
    if (m && m->place_of[k]) {
        m->asked = k;
        settle_place(c, h, m, m->place_of[k]);
    }
}

/* Makes true what is said of all blocks and holes. O(blocks). */
static void settle_blocks(const struct hw_compact *c, struct hw_heap *h)
{
    const struct moving *m = moving_of(c, h);
    const uint64_t writes = h->writes;
    uint32_t at = 0;
    for (uint32_t place = 1; m && place <= m->count; place++) {
        const struct stay *stay = &m->stays[place];
        if (stay->k) {
            settle(c, h, stay, at);
        }
        at += stay->size;
        for (uint32_t hole = stay->hole; hole; hole = m->holes[hole].next) {
            if (c->header) {
                write_header(c, h, c->start + at, m->holes[hole].size, 0);
            }
            at += m->holes[hole].size;
        }
    }
    h->writes = writes;
}

/* ---- keeping it -------------------------------------------------------------------------------------------------- */

/* Without memory for the index the arena has to be true again. */
static void drop_moving(const struct hw_compact *c, struct hw_heap *h)
{
    settle_blocks(c, h);
    h->engine.shadow = NULL;
}

/* Removes the positions of freed blocks, and rebuilds the tree. O(places). */
static void close_places(struct moving *m)
{
    uint32_t kept = 0;
    m->holed_count = 0;
    memset(m->tree, 0, (m->room + 1u) * sizeof *m->tree);
    for (uint32_t place = 1; place <= m->count; place++) {
        const struct stay stay = m->stays[place];
        if (stay.k == 0 && stay.hole == 0) {
            continue;
        }
        m->stays[++kept] = stay;
        struct sums sums = {stay.size, words_of(stay.size), stay.k != 0, 0};
        for (uint32_t hole = stay.hole; hole; hole = m->holes[hole].next) {
            sums.bytes += m->holes[hole].size;
            sums.holes++;
        }
        if (stay.k) {
            m->place_of[stay.k] = kept;
        }
        if (stay.hole) {
            m->holed[m->holed_count++] = kept;
        }
        m->tree[kept] = sums;
    }
    m->count = kept;
    for (uint32_t place = 1; place <= m->room; place++) {
        const uint32_t above = place + (place & (0u - place));
        if (above <= m->room) {
            m->tree[above].bytes += m->tree[place].bytes;
            m->tree[above].words += m->tree[place].words;
            m->tree[above].used += m->tree[place].used;
            m->tree[above].holes += m->tree[place].holes;
        }
    }
}

/* Makes room for a place behind the last one; 0 without memory. */
static int make_place(struct moving *m)
{
    if (m->room && m->count < m->room) {
        return 1;
    }
    const uint32_t used = m->room ? sums_to(m, m->room).used + m->holed_count : 0;
    const uint32_t room = m->room == 0 ? 64u : 2u * used > m->room ? 2u * m->room : m->room;
    if (room != m->room) {
        if (!lengthen(&m->tree, m->room ? m->room + 1u : 0, room + 1u, sizeof *m->tree) ||
            !lengthen(&m->stays, m->room ? m->room + 1u : 0, room + 1u, sizeof *m->stays) ||
            !lengthen(&m->holed, m->room, room, sizeof *m->holed)) {
            return 0;
        }
        m->room = room;
    }
    close_places(m);
    return 1;
}

/* Adds a block at the end, or with handle 0 the place of none; 0 without memory. */
static int add_block_at_end(struct moving *m, uint32_t k, uint32_t size)
{
    if (!make_place(m)) {
        return 0;
    }
    const struct sums sums = {size, words_of(size), k != 0, 0};
    m->stays[++m->count] = (struct stay){k, size, 0};
    add_sums(m, m->count, &sums);
    if (k) {
        m->place_of[k] = m->count;
    }
    return 1;
}

/* Adds a hole behind the block of a place; 0 without memory. */
static int add_hole(struct moving *m, uint32_t place, uint32_t size)
{
    if (m->hole_count + 1u >= m->hole_room) {
        const uint32_t room = m->hole_room ? 2u * m->hole_room : 64u;
        if (!lengthen(&m->holes, m->hole_room, room, sizeof *m->holes)) {
            return 0;
        }
        m->hole_room = room;
    }
    struct stay *stay = &m->stays[place];
    const struct sums sums = {size, 0, 0, 1u};
    if (stay->hole == 0) {
        m->holed[m->holed_count++] = place;
    }
    m->holes[++m->hole_count] = (struct hole){size, stay->hole};
    stay->hole = m->hole_count;
    add_sums(m, place, &sums);
    return 1;
}

static HW_NOINLINE void block_placed(const struct hw_compact *c, struct hw_heap *h, struct moving *m, uint32_t k,
                                     uint32_t size)
{
    if (!add_block_at_end(m, k, size)) {
        drop_moving(c, h);
    }
}

static inline void note_placed(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        block_placed(c, h, m, k, size);
    }
}

static HW_NOINLINE void block_released(struct moving *m, uint32_t k)
{
    const uint32_t place = m->place_of[k];
    const struct sums sums = {0, 0, UINT32_MAX, 0};
    stretch(m, place, 0u - m->stays[place].size);
    m->stays[place].k = 0;
    m->place_of[k] = 0;
    add_sums(m, place, &sums);
}

static inline void note_released(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        block_released(m, k);
    }
}

static inline void note_stretched(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t by)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        stretch(m, m->place_of[k], by);
    }
}

static HW_NOINLINE void block_holed(const struct hw_compact *c, struct hw_heap *h, struct moving *m, uint32_t k,
                                    uint32_t size)
{
    if (!add_hole(m, m->place_of[k], size)) {
        drop_moving(c, h);
        return;
    }
    stretch(m, m->place_of[k], 0u - size);
}

static inline void note_hole(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t size)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        block_holed(c, h, m, k, size);
    }
}

/* ---- moving all blocks ------------------------------------------------------------------------------------------- */

/* Counts the accesses of a walk over these blocks and holes, `moved` of which update their handles. */
static void count_walk(const struct hw_compact *c, struct hw_heap *h, const struct sums *walked, uint64_t moved,
                       uint64_t handle_loads)
{
    const uint64_t headers = (uint64_t)walked->used + walked->holes;
    count_skipped(h, c->header ? headers * 2u * loads_of(&c->word) : walked->used * handle_loads);
    h->writes += moved;
    h->engine.skipped += moved;
}

static HW_NOINLINE void shift_blocks(const struct hw_compact *c, struct hw_heap *h, struct moving *m, uint32_t k,
                                     uint32_t from, uint32_t to)
{
    const uint32_t place = m->place_of[k];
    const uint32_t top = load4(h, c->top_at);
    const struct sums all = sums_to(m, m->room);
    const struct sums ahead = sums_to(m, place);
    const struct sums ahead_of_it = sums_to(m, place - 1u);
    const struct sums behind = {0, 0, all.used - ahead.used, all.holes - ahead_of_it.holes};
    note_moved(h, top - from);
    store4(h, c->top_at, top - from + to);
    if (c->header == 0) {
        count_skipped(h, 1u);
    }
    count_walk(c, h, &behind, behind.used, 2u);
    stretch(m, place, to - from);
}

static inline int skip_shifting(const struct hw_compact *c, struct hw_heap *h, uint32_t k, uint32_t from, uint32_t to)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        shift_blocks(c, h, m, k, from, to);
    }
    return m != NULL;
}

/* Takes all holes out; returns the first place that had one, or the last of all. */
static uint32_t close_holes(struct moving *m)
{
    uint32_t first = m->count;
    for (uint32_t i = 0; i < m->holed_count; i++) {
        const uint32_t place = m->holed[i];
        struct sums sums = {0, 0, 0, 0};
        for (uint32_t hole = m->stays[place].hole; hole; hole = m->holes[hole].next) {
            sums.bytes -= m->holes[hole].size;
            sums.holes--;
        }
        add_sums(m, place, &sums);
        m->stays[place].hole = 0;
        first = place < first ? place : first;
    }
    m->holed_count = 0;
    m->hole_count = 0;
    return first;
}

static HW_NOINLINE void slide_blocks(const struct hw_compact *c, struct hw_heap *h, struct moving *m)
{
    (void)load4(h, c->header ? c->top_at : c->head_at); /* where the walk begins, or ends */
    const struct sums walked = sums_to(m, m->room);
    const uint32_t first = close_holes(m);
    const struct sums all = sums_to(m, m->room);
    const struct sums still = sums_to(m, first); /* what lies ahead of the first hole */
    const uint32_t words = all.words - still.words;
    h->reads += words;
    h->writes += words;
    h->moved_bytes += all.bytes - still.bytes;
    h->header_bytes -= walked.holes * c->header;
    count_walk(c, h, &walked, all.used - still.used, 3u);
    store4(h, c->top_at, c->start + all.bytes);
    store4(h, c->holes_at, 0);
    settle_handle(c, h, m->asked);
}

static inline int skip_sliding(const struct hw_compact *c, struct hw_heap *h)
{
    struct moving *m = moving_of(c, h);
    if (m) {
        slide_blocks(c, h, m);
    }
    return m != NULL;
}

/* ---- along the chain --------------------------------------------------------------------------------------------- */

static inline void skip_to_chain_end(const struct hw_compact *c, struct hw_heap *h, uint32_t *last)
{
    const struct moving *m = moving_of(c, h);
    if (m && *last) {
        const uint32_t used = sums_to(m, m->room).used;
        count_skipped(h, used - 1u);
        *last = m->stays[place_of_rank(m, used)].k;
    }
}

/* Moves `at`, the first handle of the chain, to the one before k, and counts the loads of each handle on the way;
 * returns the rank of k, 0 if it is not in the chain. */
static uint32_t pass_chained(struct hw_heap *h, const struct moving *m, uint32_t *at, uint32_t k, uint64_t loads)
{
    const uint32_t rank = m->place_of[k] ? sums_to(m, m->place_of[k]).used : 0;
    if (rank > 1u) {
        count_skipped(h, loads * (rank - 2u));
        *at = m->stays[place_of_rank(m, rank - 1u)].k;
    }
    return rank;
}

static inline void skip_to_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k)
{
    const struct moving *m = moving_of(c, h);
    if (m) {
        (void)pass_chained(h, m, before, k, 1u);
    }
}

static inline void skip_to_checked(const struct hw_compact *c, struct hw_heap *h, uint32_t *before, uint32_t k)
{
    const struct moving *m = moving_of(c, h);
    const uint32_t rank = m ? pass_chained(h, m, before, k, 3u) : 0;
    for (uint32_t near = rank > 1u ? rank - 1u : rank; rank && near <= rank + 1u; near++) {
        const uint32_t place = place_of_rank(m, near);
        if (place <= m->count && m->stays[place].k) {
            settle_place(c, h, m, place);
        }
    }
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

/* Adds blocks and holes by their headers; 0 without memory. */
static int fill_by_headers(struct moving *m, const struct hw_compact *c, struct hw_heap *h)
{
    const uint32_t top = load4(h, c->top_at);
    for (uint32_t b = c->start; b < top; b += header_size(c, h, b)) {
        const uint32_t k = header_handle(c, h, b);
        const uint32_t size = header_size(c, h, b);
        if (!add_block_at_end(m, k, k ? size : 0) || (k == 0 && !add_hole(m, m->count, size))) {
            return 0;
        }
    }
    return 1;
}

/* The same along the chain: a hole is where the next block does not begin. */
static int fill_by_chain(struct moving *m, const struct hw_compact *c, struct hw_heap *h)
{
    const uint32_t top = load4(h, c->top_at);
    uint32_t end = c->start;
    for (uint32_t k = load4(h, c->head_at); k || end < top; k = k ? load_handle_next(h, k) : 0) {
        const uint32_t at = k ? load_reference(h, k) : top;
        if (at != end && !(add_block_at_end(m, 0, 0) && add_hole(m, m->count, at - end))) {
            return 0;
        }
        end = at;
        if (k) {
            const uint32_t size = load_handle_size(h, k);
            if (!add_block_at_end(m, k, size)) {
                return 0;
            }
            end += size;
        }
    }
    return 1;
}

/* Indexes a compacting pool whose handles have numbers up to `most`, unless payloads are checked and have to move; 0
 * without memory. */
static int shadow_moving(struct shadow_pool *s, const struct hw_compact *c, struct hw_heap *h, uint32_t most)
{
    if (h->engine.seen) {
        return 1;
    }
    s->moving = calloc(1, sizeof *s->moving);
    if (s->moving == NULL) {
        return 0;
    }
    s->moving->place_of = calloc(most + 1u, sizeof *s->moving->place_of);
    if (s->moving->place_of == NULL) {
        return 0;
    }
    return c->header ? fill_by_headers(s->moving, c, h) : fill_by_chain(s->moving, c, h);
}

static void moving_free(struct moving *m)
{
    if (m) {
        free(m->tree);
        free(m->stays);
        free(m->place_of);
        free(m->holes);
        free(m->holed);
        free(m);
    }
}

#endif
