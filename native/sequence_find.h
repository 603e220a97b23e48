/* sequence_find.h: what a walk over a sequence would find. */
#ifndef HW_SEQUENCE_FIND_H
#define HW_SEQUENCE_FIND_H

#include "places.h"
#include "sequence.h"

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

/* Sum of an array by place, from p to before `end`. */
static uint32_t sum_of(const uint32_t *numbers, uint32_t p, uint32_t end)
{
    uint32_t sum = 0;
    for (; p % CHUNK && p < end; p++) {
        sum += numbers[p];
    }
    for (; p + CHUNK <= end; p += CHUNK) {
        sum += HW_BY_PROCESSOR(sum, numbers + p);
    }
    for (; p < end; p++) {
        sum += numbers[p];
    }
    return sum;
}

/* Entries ahead of a spot. */
static uint32_t rank_of(const struct sequence *q, struct spot spot)
{
    return sum_of(q->count, 0, spot.p) + spot.i;
}

/* The spot of the entry with this rank, or the end. */
static struct spot spot_of_rank(const struct sequence *q, uint32_t rank)
{
    struct spot spot = {0, 0};
    if (rank >= q->total) {
        spot.p = q->places;
        return spot;
    }
    for (;;) {
        const uint32_t ahead = HW_BY_PROCESSOR(sum, q->count + spot.p);
        if (rank < ahead) {
            break;
        }
        rank -= ahead;
        spot.p += CHUNK;
    }
    while (rank >= q->count[spot.p]) {
        rank -= q->count[spot.p++];
    }
    spot.i = rank;
    return spot;
}

/* ---- by size ----------------------------------------------------------------------------------------------------- */

/* The first place from p on with a number from `least` to `most` in an array by place; the number of places: none. */
static uint32_t next_place_between(const struct sequence *q, const uint32_t *numbers, uint32_t p, uint32_t least,
                                   uint32_t most)
{
    for (; p % CHUNK && p < q->places; p++) {
        if (numbers[p] >= least && numbers[p] <= most) {
            return p;
        }
    }
    for (; p < q->places; p += CHUNK) {
        const uint32_t found = HW_BY_PROCESSOR(first_between, numbers + p, least, most);
        if (found < CHUNK) {
            return p + found < q->places ? p + found : q->places;
        }
    }
    return q->places;
}

/* The first place from p on whose chunk's largest entry may be of this size or more. */
static uint32_t next_large_place(const struct sequence *q, uint32_t p, uint32_t size)
{
    return next_place_between(q, q->largest, p, size, INT32_MAX);
}

/* Which of the places from `first` on, a multiple of 64, but before `end`, may have an entry of one of these classes.
 */
static inline uint64_t places_with(const struct sequence *q, uint32_t first, uint32_t end, uint64_t classes)
{
    const uint64_t all = HW_BY_PROCESSOR(sharing, q->classes + first, classes);
    return end - first < 64u ? all & (((uint64_t)1 << (end - first)) - 1u) : all;
}

/* The first place from p on whose chunk may have an entry of one of these classes. */
static uint32_t next_place_with(const struct sequence *q, uint32_t p, uint64_t classes)
{
    for (uint32_t first = p / 64u * 64u; first < q->places; first += 64u) {
        uint64_t wanted = places_with(q, first, q->places, classes);
        if (first < p) {
            wanted &= ~(uint64_t)0 << (p - first);
        }
        if (wanted) {
            return first + lowest_of(wanted);
        }
    }
    return q->places;
}

static inline uint64_t classes_between(uint32_t least, uint32_t most)
{
    const uint32_t top = class_of(most);
    return ~(uint64_t)0 << class_of(least) & (top == 63u ? ~(uint64_t)0 : ((uint64_t)2 << top) - 1u);
}

/* The first entry from `spot` on with a size from `least`, at least 1, to `most`; else the end. */
static struct spot first_sized(struct sequence *q, struct spot spot, uint32_t least, uint32_t most)
{
    const uint64_t classes = classes_between(least, most);
    struct spot found = {q->places, 0};
    if (is_end(q, spot)) {
        return found;
    }
    for (; spot.i && spot.i < q->count[spot.p]; spot.i++) {
        const uint32_t size = size_at(q, spot);
        if (size >= least && size <= most) {
            return spot;
        }
    }
    uint32_t p = spot.i ? spot.p + 1u : spot.p;
    for (;;) {
        p = most == INT32_MAX ? next_large_place(q, p, least) : next_place_with(q, p, classes);
        if (p == q->places) {
            return found;
        }
        found.i = HW_BY_PROCESSOR(first_between, chunk_of(q, p)->size, least, most);
        if (found.i < CHUNK) {
            found.p = p;
            return found;
        }
        found.i = 0;
        if (q->loose[p]) {
            sequence_tighten(q, p);
        }
        p++;
    }
}

/* The least excess over `size` of the entries of a chunk, of which the first `count` matter, if it is below `bound`:
 * its index is stored. */
static inline uint32_t least_excess_in(const struct chunk *chunk, uint32_t count, uint32_t size, uint32_t bound,
                                       uint32_t *index)
{
    struct chunk part;
    if (count < CHUNK) {
        memset(part.size, 0, sizeof part.size);
        memcpy(part.size, chunk->size, count * sizeof *part.size);
        chunk = &part;
    }
    const uint32_t excess = HW_BY_PROCESSOR(least_excess, chunk->size, size);
    if (excess < bound) {
        *index = HW_BY_PROCESSOR(first_between, chunk->size, size + excess, size + excess);
    }
    return excess;
}

/* The first of the entries nearest to `size` from above, among the first `limit`; the end where none is as large. */
static struct spot best_sized(struct sequence *q, uint32_t limit, uint32_t size)
{
    const struct spot last = spot_of_rank(q, limit);
    const uint32_t end = last.p + (last.i != 0);
    struct spot best = {q->places, 0};
    uint64_t wanted = classes_between(size, INT32_MAX);
    uint32_t least = INT32_MAX - size + 1u;
    for (uint32_t first = 0; first < end; first += 64u) {
        uint64_t left = places_with(q, first, end, wanted);
        while (left) {
            const uint32_t p = first + lowest_of(left);
            const uint32_t count = p == last.p ? last.i : CHUNK;
            const uint32_t excess = least_excess_in(chunk_of(q, p), count, size, least, &best.i);
            left &= left - 1u;
            if (excess < least) {
                least = excess;
                best.p = p;
                if (excess == 0) {
                    return best;
                }
                wanted = classes_between(size, size + excess - 1u);
                left &= places_with(q, first, end, wanted);
            } else if (q->loose[p]) {
                sequence_tighten(q, p);
            }
        }
    }
    return best;
}

/* The first of the largest entries, if it has `size` bytes or more; else the end. */
static struct spot largest_of_all(struct sequence *q, uint32_t size)
{
    struct spot best = {q->places, 0};
    for (;;) {
        uint32_t largest = 0;
        for (uint32_t p = 0; p < q->places; p++) {
            largest = q->largest[p] > largest ? q->largest[p] : largest;
        }
        if (largest < size) {
            return best;
        }
        const uint32_t p = next_place_between(q, q->largest, 0, largest, largest);
        best.i = HW_BY_PROCESSOR(first_between, chunk_of(q, p)->size, largest, largest);
        if (best.i < CHUNK) {
            best.p = p;
            return best;
        }
        best.i = 0;
        sequence_tighten(q, p);
    }
}

/* The same among the first `limit`. */
static struct spot largest_sized(struct sequence *q, uint32_t limit, uint32_t size)
{
    const struct spot start = {0, 0};
    struct spot best = {q->places, 0};
    if (limit >= q->total) {
        return largest_of_all(q, size);
    }
    struct spot next = first_sized(q, start, size, INT32_MAX);
    while (!is_end(q, next) && rank_of(q, next) < limit) {
        best = next;
        next = first_sized(q, spot_behind(q, next), size_at(q, next) + 1u, INT32_MAX);
    }
    return best;
}

/* ---- by address -------------------------------------------------------------------------------------------------- */

/* The first entry with a lower address than `at`, in a sequence by falling addresses. */
static struct spot spot_below(const struct sequence *q, uint32_t at)
{
    uint32_t low = 0;
    uint32_t high = q->places;
    while (low < high) {
        const uint32_t middle = (low + high) / 2u;
        if (chunk_of(q, middle)->at[q->count[middle] - 1u] < at) {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    struct spot spot = {low, 0};
    if (low < q->places) {
        spot.i = HW_BY_PROCESSOR(first_between, chunk_of(q, low)->at, 1u, at - 1u);
    }
    return spot;
}

/* The first entry with a higher address than `at`, in a sequence by address. */
static struct spot spot_above(const struct sequence *q, uint32_t at)
{
    uint32_t low = 0;
    uint32_t high = q->places;
    while (low < high) {
        const uint32_t middle = (low + high) / 2u;
        if (chunk_of(q, middle)->at[q->count[middle] - 1u] > at) {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    struct spot spot = {low, 0};
    if (low < q->places) {
        spot.i = HW_BY_PROCESSOR(first_between, chunk_of(q, low)->at, at + 1u, INT32_MAX);
    }
    return spot;
}

/* The place of a block in a sequence by rising size and, where sizes are equal, by falling address. */
static struct spot spot_by_size(const struct sequence *q, uint32_t at, uint32_t size)
{
    uint32_t low = 0;
    uint32_t high = q->places;
    while (low < high) {
        const uint32_t middle = (low + high) / 2u;
        const struct spot last = {middle, q->count[middle] - 1u};
        const uint32_t last_size = size_at(q, last);
        if (last_size > size || (last_size == size && address_at(q, last) < at)) {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    struct spot spot = {low, 0};
    if (low < q->places) {
        const struct chunk *chunk = chunk_of(q, low);
        spot.i = HW_BY_PROCESSOR(count_ahead, chunk->at, chunk->size, at, size) - (CHUNK - q->count[low]);
    }
    return spot;
}

/* Entries that are higher by address and larger than this one, or lower and smaller. */
static uint64_t concordant_with(const struct sequence *q, uint32_t at, uint32_t size)
{
    uint64_t count = 0;
    for (uint32_t p = 0; p < q->places; p++) {
        const struct chunk *chunk = chunk_of(q, p);
        count += HW_BY_PROCESSOR(concordant, chunk->at, chunk->size, at, size);
    }
    return count - ((uint64_t)q->places * CHUNK - q->total); /* the zeros behind the last entries */
}

/* Entries that are lower by address than all behind them. */
static uint32_t lower_than_behind(const struct sequence *q)
{
    uint32_t count = 0;
    uint32_t lowest = INT32_MAX;
    for (uint32_t p = q->places; p-- > 0;) {
        const struct chunk *chunk = chunk_of(q, p);
        if (HW_BY_PROCESSOR(first_between, chunk->at, 1u, lowest - 1u) == CHUNK) {
            continue;
        }
        for (uint32_t i = q->count[p]; i-- > 0;) {
            if (chunk->at[i] < lowest) {
                lowest = chunk->at[i];
                count++;
            }
        }
    }
    return count;
}

#endif
