/* sequence.h: a summary of a list of blocks that finds in O(chunks) what a walk over the list would find.
 *
 *     place       0                 1                 2
 *     count       48                31                64            entries of the chunk
 *     largest     400               1500              96            no entry is larger
 *     classes     ..1.11..          .....1.1          1.......      size classes that may occur
 *                 |                 |                 |
 *     chunk      (at, size) x 64   (at, size) x 64   (at, size) x 64
 *
 * An entry is an address and a size, and 0 is the size of what is not free. Entries keep the order that they are put
 * in. A search rejects whole chunks by their summaries, and scans the entries of the few that remain; a rank is a sum
 * of counts. A summary is a bound, made exact when a search finds it too optimistic.
 *
 * All loops over entries and over chunks have 64 steps without a branch, with zeros behind the last entry, so that the
 * compiler makes AVX2, NEON or SSE2 of them.
 */
#ifndef HW_SEQUENCE_H
#define HW_SEQUENCE_H

#include "chunks.h"

/* ---- the places of a sequence --------------------------------------------------------------------------------------
 */

static void sequence_close(struct sequence *q)
{
    free(q->number);
    free(q->count);
    free(q->largest);
    free(q->toll);
    free(q->classes);
    free(q->loose);
}

static int sequence_make_room(struct sequence *q)
{
    if (q->places < q->room) {
        return 1;
    }
    const uint32_t room = q->room ? 2u * q->room : CHUNK;
    if (!lengthen(&q->number, q->room, room, sizeof *q->number) ||
        !lengthen(&q->count, q->room, room, sizeof *q->count) ||
        !lengthen(&q->largest, q->room, room, sizeof *q->largest) ||
        !lengthen(&q->toll, q->room, room, sizeof *q->toll) ||
        !lengthen(&q->classes, q->room, room, sizeof *q->classes) ||
        !lengthen(&q->loose, q->room, room, sizeof *q->loose)) {
        q->chunks->failed = 1;
        return 0;
    }
    q->room = room;
    return 1;
}

/* Opens a gap of one element in an array at p, or closes one; `behind` elements follow. */
static void shift_up(void *array, size_t width, uint32_t p, uint32_t behind)
{
    unsigned char *from = (unsigned char *)array + p * width;
    memmove(from + width, from, behind * width);
    memset(from, 0, width);
}

static void shift_down(void *array, size_t width, uint32_t p, uint32_t behind)
{
    unsigned char *to = (unsigned char *)array + p * width;
    memmove(to, to + width, behind * width);
    memset(to + behind * width, 0, width);
}

static void renumber(struct sequence *q, uint32_t p)
{
    for (; p < q->places; p++) {
        q->chunks->place[q->number[p]] = p;
    }
}

static void sequence_open_place(struct sequence *q, uint32_t p)
{
    const uint32_t number = chunks_take(q->chunks);
    const uint32_t behind = q->places++ - p;
    shift_up(q->number, sizeof *q->number, p, behind);
    shift_up(q->count, sizeof *q->count, p, behind);
    shift_up(q->largest, sizeof *q->largest, p, behind);
    shift_up(q->toll, sizeof *q->toll, p, behind);
    shift_up(q->classes, sizeof *q->classes, p, behind);
    shift_up(q->loose, sizeof *q->loose, p, behind);
    q->number[p] = number;
    q->chunks->owner[number] = q;
    renumber(q, p);
}

static void give_back_chunk(struct sequence *q, uint32_t p)
{
    struct chunks *c = q->chunks;
    const uint32_t number = q->number[p];
    forget_numbers(c, number);
    memset(&c->chunk[number], 0, sizeof c->chunk[number]);
    c->owner[number] = NULL;
    c->unused[c->unused_count++] = number;
}

static void sequence_close_place(struct sequence *q, uint32_t p)
{
    give_back_chunk(q, p);
    const uint32_t behind = --q->places - p;
    shift_down(q->number, sizeof *q->number, p, behind);
    shift_down(q->count, sizeof *q->count, p, behind);
    shift_down(q->largest, sizeof *q->largest, p, behind);
    shift_down(q->toll, sizeof *q->toll, p, behind);
    shift_down(q->classes, sizeof *q->classes, p, behind);
    shift_down(q->loose, sizeof *q->loose, p, behind);
    renumber(q, p);
}

static void sequence_clear(struct sequence *q)
{
    if (q->places == 0) {
        return;
    }
    for (uint32_t p = 0; p < q->places; p++) {
        give_back_chunk(q, p);
    }
    memset(q->number, 0, q->places * sizeof *q->number);
    memset(q->count, 0, q->places * sizeof *q->count);
    memset(q->largest, 0, q->places * sizeof *q->largest);
    memset(q->toll, 0, q->places * sizeof *q->toll);
    memset(q->classes, 0, q->places * sizeof *q->classes);
    memset(q->loose, 0, q->places * sizeof *q->loose);
    q->places = 0;
    q->total = 0;
}

static inline struct chunk *chunk_of(const struct sequence *q, uint32_t p)
{
    return &q->chunks->chunk[q->number[p]];
}

/* Makes what is known of a chunk exact. */
static void sequence_tighten(struct sequence *q, uint32_t p)
{
    const struct chunk *chunk = chunk_of(q, p);
    q->largest[p] = HW_BY_PROCESSOR(largest, chunk->size);
    q->classes[p] = HW_BY_PROCESSOR(classes, chunk->size);
    q->loose[p] = 0;
}

/* An entry changes: the cost of a walk over its chunk, and over the one before if it is the first entry, has to be
 * recomputed. */
static inline void forget_toll(struct sequence *q, struct spot spot)
{
    q->toll[spot.p] = 0;
    if (spot.i == 0 && spot.p) {
        q->toll[spot.p - 1u] = 0;
    }
}

/* Moves the entries of place p from i on to the end of place `to`. */
static void move_entries(struct sequence *q, uint32_t p, uint32_t i, uint32_t to)
{
    struct chunk *source = chunk_of(q, p);
    struct chunk *target = chunk_of(q, to);
    const uint32_t moved = q->count[p] - i;
    const uint32_t had = q->count[to];
    memcpy(target->at + had, source->at + i, moved * sizeof *source->at);
    memcpy(target->size + had, source->size + i, moved * sizeof *source->size);
    memset(source->at + i, 0, moved * sizeof *source->at);
    memset(source->size + i, 0, moved * sizeof *source->size);
    for (uint32_t k = had; k < had + moved; k++) {
        note_number(q->chunks, target->at[k], q->number[to]);
    }
    q->count[p] = i;
    q->count[to] = had + moved;
    q->toll[p] = 0;
    q->toll[to] = 0;
    q->largest[to] = q->largest[to] > q->largest[p] ? q->largest[to] : q->largest[p];
    q->classes[to] |= q->classes[p];
    q->loose[to] = 1;
    q->loose[p] = 1;
}

/* Splits a full chunk; what grows at one end of the sequence leaves chunks behind that are three quarters full. */
static void sequence_split(struct sequence *q, struct spot *spot)
{
    const uint32_t p = spot->p;
    const uint32_t kept = spot->i == 0 && p == 0                    ? CHUNK / 4
                          : p + 1u == q->places && spot->i == CHUNK ? CHUNK / 4 * 3
                                                                    : CHUNK / 2;
    sequence_open_place(q, p + 1u);
    move_entries(q, p, kept, p + 1u);
    if (spot->i > kept) {
        spot->p++;
        spot->i -= kept;
    }
}

/* ---- entries -------------------------------------------------------------------------------------------------------
 */

/* Puts an entry ahead of the one at `spot`, which may be behind the last one of its chunk. */
static void sequence_insert(struct sequence *q, struct spot spot, uint32_t at, uint32_t size)
{
    if (!chunks_make_room(q->chunks) || !sequence_make_room(q)) {
        return;
    }
    if (q->places == 0) {
        sequence_open_place(q, 0);
    } else if (spot.p == q->places) {
        spot.p--;
        spot.i = q->count[spot.p];
    }
    if (q->count[spot.p] == CHUNK) {
        sequence_split(q, &spot);
    }
    const uint32_t p = spot.p;
    struct chunk *chunk = chunk_of(q, p);
    const uint32_t behind = q->count[p] - spot.i;
    memmove(chunk->at + spot.i + 1u, chunk->at + spot.i, behind * sizeof *chunk->at);
    memmove(chunk->size + spot.i + 1u, chunk->size + spot.i, behind * sizeof *chunk->size);
    chunk->at[spot.i] = at;
    chunk->size[spot.i] = size;
    note_number(q->chunks, at, q->number[p]);
    q->count[p]++;
    q->total++;
    q->largest[p] = size > q->largest[p] ? size : q->largest[p];
    q->classes[p] |= size ? (uint64_t)1 << class_of(size) : 0u;
    forget_toll(q, spot);
}

/* Merges a chunk that has few entries left with an adjacent one. */
static void sequence_join(struct sequence *q, uint32_t p)
{
    if (p + 1u == q->places || (p && q->count[p - 1u] < q->count[p + 1u])) {
        if (p == 0) {
            return;
        }
        p--;
    }
    if (q->count[p] + q->count[p + 1u] <= CHUNK / 4 * 3) {
        move_entries(q, p + 1u, 0, p);
        sequence_close_place(q, p + 1u);
    }
}

/* Forgets which chunk holds an entry. For a moment a block and one inside it may be nearer to each other than blocks
 * are, in the order of addresses, so that one number is true for both. */
static inline void forget_number(struct sequence *q, const struct chunk *chunk, struct spot spot)
{
    const uint32_t shift = q->chunks->shift;
    const uint32_t place = chunk->at[spot.i] >> shift;
    const int shared = (spot.i && chunk->at[spot.i - 1u] >> shift == place) ||
                       (spot.i + 1u < q->count[spot.p] && chunk->at[spot.i + 1u] >> shift == place);
    uint32_t *number = number_at(q->chunks, chunk->at[spot.i]);
    if (!shared && *number == q->number[spot.p]) {
        *number = 0;
    }
}

static void sequence_remove(struct sequence *q, struct spot spot)
{
    struct chunk *chunk = chunk_of(q, spot.p);
    forget_number(q, chunk, spot);
    const uint32_t left = --q->count[spot.p];
    const uint32_t behind = left - spot.i;
    forget_toll(q, spot);
    q->total--;
    q->loose[spot.p] = 1;
    memmove(chunk->at + spot.i, chunk->at + spot.i + 1u, behind * sizeof *chunk->at);
    memmove(chunk->size + spot.i, chunk->size + spot.i + 1u, behind * sizeof *chunk->size);
    chunk->at[left] = 0;
    chunk->size[left] = 0;
    if (left == 0) {
        sequence_close_place(q, spot.p);
    } else if (left < CHUNK / 4) {
        sequence_join(q, spot.p);
    }
}

static void sequence_resize(struct sequence *q, struct spot spot, uint32_t size)
{
    uint32_t *entry = &chunk_of(q, spot.p)->size[spot.i];
    if (*entry == size) {
        return;
    }
    *entry = size;
    q->loose[spot.p] = 1;
    q->largest[spot.p] = size > q->largest[spot.p] ? size : q->largest[spot.p];
    q->classes[spot.p] |= size ? (uint64_t)1 << class_of(size) : 0u;
    forget_toll(q, spot);
}

/* Another address takes the place of an entry in the order. */
static void sequence_replace(struct sequence *q, struct spot spot, uint32_t at)
{
    struct chunk *chunk = chunk_of(q, spot.p);
    forget_number(q, chunk, spot);
    chunk->at[spot.i] = at;
    note_number(q->chunks, at, q->number[spot.p]);
    forget_toll(q, spot);
}

/* ---- an entry ---------------------------------------------------------------------------------------------------- */

/* The sequence that holds an entry with this address, and where; NULL where none does. */
static inline struct sequence *sequence_with(const struct chunks *c, uint32_t at, struct spot *spot)
{
    const uint32_t number = *number_at(c, at);
    if (number == 0) {
        return NULL;
    }
    spot->i = HW_BY_PROCESSOR(first_between, c->chunk[number].at, at, at);
    spot->p = c->place[number];
    return spot->i < CHUNK ? c->owner[number] : NULL;
}

/* Prefetches the number of the chunk that holds an entry with this address. */
static HW_ALWAYS_INLINE void fetch_number(const struct chunks *c, uint32_t at)
{
#if defined(__GNUC__)
    if (c->leaf_of) {
        __builtin_prefetch(number_at(c, at));
    }
#else
    (void)c;
    (void)at;
#endif
}

static inline uint32_t address_at(const struct sequence *q, struct spot spot)
{
    return chunk_of(q, spot.p)->at[spot.i];
}

static inline uint32_t size_at(const struct sequence *q, struct spot spot)
{
    return chunk_of(q, spot.p)->size[spot.i];
}

static inline int is_end(const struct sequence *q, struct spot spot)
{
    return spot.p >= q->places;
}

static inline struct spot spot_behind(const struct sequence *q, struct spot spot)
{
    struct spot behind = {spot.p, spot.i + 1u};
    if (behind.i == q->count[spot.p]) {
        behind.p++;
        behind.i = 0;
    }
    return behind;
}

/* Address of the entry ahead of a spot; `none` where there is none. */
static inline uint32_t address_before(const struct sequence *q, struct spot spot, uint32_t none)
{
    if (spot.i) {
        return chunk_of(q, spot.p)->at[spot.i - 1u];
    }
    return spot.p ? chunk_of(q, spot.p - 1u)->at[q->count[spot.p - 1u] - 1u] : none;
}

#endif
