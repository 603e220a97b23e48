/* chunks.h: where sequences keep their entries, 64 at a time; see sequence.h. */
#ifndef HW_CHUNKS_H
#define HW_CHUNKS_H

#include <stdlib.h>
#include <string.h>
#include "kept.h"
#include "lanes.h"

struct chunk {
    uint32_t at[CHUNK]; /* 0 behind the last entry, and so are sizes */
    uint32_t size[CHUNK];
};

struct sequence;

enum { LEAF_LOG2 = 7, LEAF = 1 << LEAF_LOG2 };

/* Chunks of sequences that have no entry in common, by number from 1 on, and the number of the chunk that holds an
 * address. A leaf has these for 128 places side by side, so that what is touched lies close together however far apart
 * blocks are; leaf 0 says that there is none. */
struct chunks {
    struct chunk *chunk;
    struct sequence **owner; /* NULL: not in use */
    uint32_t *place;
    uint32_t *unused;
    uint32_t unused_count;
    uint32_t used;
    uint32_t room;
    uint32_t *leaf_of;   /* by address >> shift >> LEAF_LOG2 */
    uint32_t *region_of; /* the place of a leaf in there */
    uint32_t *numbers;   /* of all leaves; 0 where no chunk holds an address there */
    uint32_t leaves;
    uint32_t regions;
    uint32_t shift;
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

static size_t number_bytes(const struct chunks *c)
{
    return ((size_t)c->regions + (c->regions + 1u) + ((size_t)c->regions + 1u) * LEAF) * sizeof *c->numbers;
}

/* No two entries of sequences in `c` are nearer than `apart`, and none lies beyond `reach`. 0 without memory. */
static int chunks_open(struct chunks *c, uint32_t reach, uint32_t apart)
{
    memset(c, 0, sizeof *c);
    while (apart >> c->shift > 1u) {
        c->shift++;
    }
    c->used = 1;
    c->leaves = 1;
    c->regions = (reach >> c->shift >> LEAF_LOG2) + 1u;
    c->leaf_of = hw_take_kept(HW_KEPT_NUMBERS, number_bytes(c));
    if (c->leaf_of == NULL) {
        return 0;
    }
    c->region_of = c->leaf_of + c->regions;
    c->numbers = c->region_of + c->regions + 1u;
    return 1;
}

/* Where the number of the chunk stands that holds an address. */
static inline uint32_t *number_at(const struct chunks *c, uint32_t at)
{
    const uint32_t place = at >> c->shift;
    return &c->numbers[(size_t)c->leaf_of[place >> LEAF_LOG2] * LEAF + place % LEAF];
}

static HW_NOINLINE void open_leaf(struct chunks *c, uint32_t region)
{
    c->region_of[c->leaves] = region;
    c->leaf_of[region] = c->leaves++;
}

static inline void note_number(struct chunks *c, uint32_t at, uint32_t number)
{
    const uint32_t region = at >> c->shift >> LEAF_LOG2;
    if (c->leaf_of[region] == 0) {
        open_leaf(c, region);
    }
    *number_at(c, at) = number;
}

/* Forgets which chunk holds the entries of one. */
static void forget_numbers(struct chunks *c, uint32_t number)
{
    for (uint32_t i = 0; i < CHUNK && c->chunk[number].at[i]; i++) {
        *number_at(c, c->chunk[number].at[i]) = 0;
    }
}

static void chunks_close(struct chunks *c)
{
    if (c->leaf_of) {
        for (uint32_t number = 1; number < c->used; number++) {
            forget_numbers(c, number);
        }
        for (uint32_t leaf = 1; leaf < c->leaves; leaf++) {
            c->leaf_of[c->region_of[leaf]] = 0;
            c->region_of[leaf] = 0;
        }
        const size_t used = ((size_t)c->regions + c->leaves * (LEAF + 1u)) * sizeof *c->numbers;
        hw_give_back(HW_KEPT_NUMBERS, c->leaf_of, number_bytes(c), used);
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

#endif
