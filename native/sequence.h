/* sequence.h: a list of blocks that answers in one look what a walk over it would find.
 *
 *     place       0                 1                 2
 *     count       48                31                64            entries of the chunk
 *     largest     400               1500              96            no entry is larger
 *     classes     ..1.11..          .....1.1          1.......      size classes that may occur
 *                 |                 |                 |
 *     chunk      (at, size) x 64   (at, size) x 64   (at, size) x 64
 *
 * An entry is an address and a size, and 0 is the size of what is not free. Entries keep the order that they are put
 * in. A search passes whole chunks by what is known of them, and looks through the entries of the few that are left; a
 * rank is a sum of counts. What is known of a chunk is a bound, made exact when a search finds that it promised too
 * much.
 *
 * All loops over entries and over chunks have 64 steps without a branch, with zeros behind the last entry, so that the
 * compiler makes AVX2, NEON or SSE2 of them.
 */
#ifndef HW_SEQUENCE_H
#define HW_SEQUENCE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kept.h"
#include "places.h"

enum { CHUNK = 64 };

/* ---- loops over 64 numbers below 2^31 ------------------------------------------------------------------------------
 */

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX2__)
#define HW_AVX2 __attribute__((target("avx2")))
#define HW_BY_PROCESSOR(name, ...)                                                                                     \
    (__builtin_cpu_supports("avx2") ? name##_avx2(__VA_ARGS__) : name##_plain(__VA_ARGS__))
#else
#define HW_BY_PROCESSOR(name, ...) name##_plain(__VA_ARGS__)
#endif

#if defined(__GNUC__)
#define HW_ALWAYS_INLINE inline __attribute__((always_inline))
#define HW_NOINLINE __attribute__((noinline))
#else
#define HW_ALWAYS_INLINE inline
#define HW_NOINLINE
#endif

/* Index of the first number from `least` to `most`; 64 where there is none. */
static HW_ALWAYS_INLINE uint32_t first_between_plain(const uint32_t *a, uint32_t least, uint32_t most)
{
    int32_t first = CHUNK;
    for (int32_t i = 0; i < CHUNK; i++) {
        const int32_t wanted = ((int32_t)a[i] >= (int32_t)least) & ((int32_t)a[i] <= (int32_t)most);
        const int32_t index = wanted ? i : CHUNK;
        first = index < first ? index : first;
    }
    return (uint32_t)first;
}

/* Which sets share an element with `wanted`, a bit for each. */
static HW_ALWAYS_INLINE uint64_t sharing_plain(const uint64_t *sets, uint64_t wanted)
{
    uint64_t sharing = 0;
    for (uint64_t i = 0; i < CHUNK; i++) {
        sharing |= (uint64_t)((sets[i] & wanted) != 0) << i;
    }
    return sharing;
}

/* The class of a size, four an octave from 16 bytes on, by the bits of a floating-point number: never falling. */
static HW_ALWAYS_INLINE uint32_t class_of(uint32_t size)
{
    const float number = (float)(int32_t)size;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    const int32_t octaves = (int32_t)(bits >> 21) - (int32_t)((127u + 4u) << 2);
    return octaves < 0 ? 0u : octaves > 63 ? 63u : (uint32_t)octaves;
}

/* The set of the classes of sizes that are not 0. */
static HW_ALWAYS_INLINE uint64_t classes_plain(const uint32_t *sizes)
{
    uint64_t classes = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        classes |= (uint64_t)(sizes[i] != 0) << class_of(sizes[i]);
    }
    return classes;
}

static HW_ALWAYS_INLINE uint32_t largest_plain(const uint32_t *a)
{
    int32_t largest = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        largest = (int32_t)a[i] > largest ? (int32_t)a[i] : largest;
    }
    return (uint32_t)largest;
}

static HW_ALWAYS_INLINE uint32_t sum_plain(const uint32_t *a)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        sum += a[i];
    }
    return sum;
}

/* The least excess over `size` of the numbers that are not below it; more than 2^31 where there is none. */
static HW_ALWAYS_INLINE uint32_t least_excess_plain(const uint32_t *a, uint32_t size)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t excess = a[i] - size;
        least = excess < least ? excess : least;
    }
    return least;
}

/* Of blocks by address and size, those that are higher and larger than this one, or lower and smaller. */
static HW_ALWAYS_INLINE uint32_t concordant_plain(const uint32_t *at, const uint32_t *size, uint32_t this_at,
                                                  uint32_t this_size)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const int32_t lower = (int32_t)at[i] < (int32_t)this_at;
        const int32_t smaller = (int32_t)size[i] < (int32_t)this_size;
        const int32_t higher = (int32_t)at[i] > (int32_t)this_at;
        const int32_t larger = (int32_t)size[i] > (int32_t)this_size;
        count += (uint32_t)((lower & smaller) | (higher & larger));
    }
    return count;
}

/* Of blocks by rising size and, where sizes are equal, by falling address: those ahead of this one. */
static HW_ALWAYS_INLINE uint32_t count_ahead_plain(const uint32_t *at, const uint32_t *size, uint32_t this_at,
                                                   uint32_t this_size)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const int32_t smaller = (int32_t)size[i] < (int32_t)this_size;
        const int32_t equal = size[i] == this_size;
        const int32_t higher = (int32_t)at[i] > (int32_t)this_at;
        count += (uint32_t)(smaller | (equal & higher));
    }
    return count;
}

#ifdef HW_AVX2
HW_AVX2 static uint32_t concordant_avx2(const uint32_t *at, const uint32_t *size, uint32_t this_at, uint32_t this_size)
{
    return concordant_plain(at, size, this_at, this_size);
}

HW_AVX2 static uint32_t count_ahead_avx2(const uint32_t *at, const uint32_t *size, uint32_t this_at, uint32_t this_size)
{
    return count_ahead_plain(at, size, this_at, this_size);
}

HW_AVX2 static uint32_t first_between_avx2(const uint32_t *a, uint32_t least, uint32_t most)
{
    return first_between_plain(a, least, most);
}

HW_AVX2 static uint64_t sharing_avx2(const uint64_t *sets, uint64_t wanted)
{
    return sharing_plain(sets, wanted);
}

HW_AVX2 static uint64_t classes_avx2(const uint32_t *sizes)
{
    return classes_plain(sizes);
}

HW_AVX2 static uint32_t largest_avx2(const uint32_t *a)
{
    return largest_plain(a);
}

HW_AVX2 static uint32_t sum_avx2(const uint32_t *a)
{
    return sum_plain(a);
}

HW_AVX2 static uint32_t least_excess_avx2(const uint32_t *a, uint32_t size)
{
    return least_excess_plain(a, size);
}
#endif

/* ---- chunks --------------------------------------------------------------------------------------------------------
 */

struct chunk {
    uint32_t at[CHUNK]; /* 0 behind the last entry, and so are sizes */
    uint32_t size[CHUNK];
};

struct sequence;

/* Chunks of sequences that have no entry in common, by number from 1 on, and the number of the chunk that holds an
 * address. */
struct chunks {
    struct chunk *chunk;
    struct sequence **owner; /* NULL: not in use */
    uint32_t *place;
    uint32_t *unused;
    uint32_t unused_count;
    uint32_t used;
    uint32_t room;
    uint32_t *number_at; /* by address >> shift; 0 where no chunk holds an address there */
    uint32_t shift;
    uint32_t highest; /* address that it ever held */
    size_t bytes;
    int failed; /* the system has no memory: what follows is not to be trusted */
};

struct sequence {
    struct chunks *chunks;
    uint32_t *number; /* these by place, with zeros behind the last one up to `room`, a multiple of 64 */
    uint32_t *count;
    uint32_t *largest;
    uint32_t *toll;    /* accesses of a walk past a chunk that it leaves as it is; 0: not known */
    uint64_t *classes; /* as a set */
    uint32_t *loose;   /* 1: largest and classes are more than there is */
    uint32_t places;
    uint32_t room;
    uint32_t total; /* entries */
};

/* Where an entry is: the chunk's place, and the entry's in the chunk. */
struct spot {
    uint32_t p;
    uint32_t i;
};

/* No two entries of sequences in `c` are nearer than `apart`, and none lies beyond `reach`. 0 without memory. */
static int chunks_open(struct chunks *c, uint32_t reach, uint32_t apart)
{
    memset(c, 0, sizeof *c);
    while (apart >> c->shift > 1u) {
        c->shift++;
    }
    c->used = 1;
    c->bytes = (((size_t)reach >> c->shift) + 1u) * sizeof *c->number_at;
    c->number_at = hw_take_kept(HW_KEPT_NUMBERS, c->bytes);
    return c->number_at != NULL;
}

/* Forgets which chunk holds the entries of one. */
static void forget_numbers(struct chunks *c, uint32_t number)
{
    for (uint32_t i = 0; i < CHUNK && c->chunk[number].at[i]; i++) {
        c->number_at[c->chunk[number].at[i] >> c->shift] = 0;
    }
}

static void chunks_close(struct chunks *c)
{
    if (c->number_at) {
        for (uint32_t number = 1; number < c->used; number++) {
            forget_numbers(c, number);
        }
        hw_give_back(HW_KEPT_NUMBERS, c->number_at, c->bytes, ((size_t)c->highest >> c->shift) * sizeof *c->number_at);
    }
    free(c->chunk);
    free(c->owner);
    free(c->place);
    free(c->unused);
}

/* Makes an array longer, with zeros; 0 without memory, and it is as it was. */
static int lengthen(void *array, size_t from, size_t to, size_t width)
{
    void *old;
    memcpy(&old, array, sizeof old);
    unsigned char *longer = realloc(old, to * width);
    if (longer == NULL) {
        return 0;
    }
    memset(longer + from * width, 0, (to - from) * width);
    memcpy(array, &longer, sizeof longer);
    return 1;
}

/* The number of an empty chunk; chunks_make_room() has been called. */
static uint32_t chunks_take(struct chunks *c)
{
    return c->unused_count ? c->unused[--c->unused_count] : c->used++;
}

static int chunks_make_room(struct chunks *c)
{
    if (c->unused_count || c->used < c->room) {
        return 1;
    }
    const uint32_t room = c->room ? 2u * c->room : 16u;
    if (!lengthen(&c->chunk, c->room, room, sizeof *c->chunk) ||
        !lengthen(&c->owner, c->room, room, sizeof *c->owner) ||
        !lengthen(&c->place, c->room, room, sizeof *c->place) ||
        !lengthen(&c->unused, c->room, room, sizeof *c->unused)) {
        c->failed = 1;
        return 0;
    }
    c->room = room;
    return 1;
}

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

/* An entry changes: what a walk pays for its chunk, and for the one ahead of the first entry, has to be found anew. */
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
        q->chunks->number_at[target->at[k] >> q->chunks->shift] = q->number[to];
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
    q->chunks->number_at[at >> q->chunks->shift] = q->number[p];
    q->chunks->highest = at > q->chunks->highest ? at : q->chunks->highest;
    q->count[p]++;
    q->total++;
    q->largest[p] = size > q->largest[p] ? size : q->largest[p];
    q->classes[p] |= size ? (uint64_t)1 << class_of(size) : 0u;
    forget_toll(q, spot);
}

/* Brings a chunk that has few entries left together with one beside it. */
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
    if (!shared && q->chunks->number_at[place] == q->number[spot.p]) {
        q->chunks->number_at[place] = 0;
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
    q->chunks->number_at[at >> q->chunks->shift] = q->number[spot.p];
    q->chunks->highest = at > q->chunks->highest ? at : q->chunks->highest;
    forget_toll(q, spot);
}

/* ---- looking -------------------------------------------------------------------------------------------------------
 */

/* The sequence that holds an entry with this address, and where; NULL where none does. */
static inline struct sequence *sequence_with(const struct chunks *c, uint32_t at, struct spot *spot)
{
    const uint32_t number = c->number_at[at >> c->shift];
    if (number == 0) {
        return NULL;
    }
    spot->i = HW_BY_PROCESSOR(first_between, c->chunk[number].at, at, at);
    spot->p = c->place[number];
    return spot->i < CHUNK ? c->owner[number] : NULL;
}

/* The sequence in which this address begins a chunk, and the chunk's place. */
static inline struct sequence *sequence_with_chunk_at(const struct chunks *c, uint32_t at, uint32_t *p)
{
    const uint32_t number = c->number_at[at >> c->shift];
    if (number == 0 || c->chunk[number].at[0] != at) {
        return NULL;
    }
    *p = c->place[number];
    return c->owner[number];
}

/* Fetches what tells which chunk holds an entry with this address. */
static HW_ALWAYS_INLINE void fetch_number(const struct chunks *c, uint32_t at)
{
#if defined(__GNUC__)
    if (c->number_at) {
        __builtin_prefetch(&c->number_at[at >> c->shift]);
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
