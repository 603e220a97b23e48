/* largest.c: the largest free block that a heap states, compared with what malloc serves from a copy of it.
 *
 *     largest POLICY ARENA_BYTES ROUNDS SEED
 *
 * POLICY is a struct hw_policy. Prints for all states that a random program leaves: their number, in how many malloc
 * refused the stated size, in how many it served more; the bytes, in all, that the statistics state less before a flush
 * than after it; by how many bytes malloc served more at most, and the sums of the stated and of the served sizes.
 */
#include <string.h>

#include "random_program.h"

enum { OBJECTS = 300, STATES = 12, CALLS = 150, STEP = 48 };

static unsigned char *arena, *copy;
static void *objects[OBJECTS];

static int serves(uint32_t size)
{
    memcpy(copy, arena, arena_bytes);
    return hw_malloc(&policy, (struct hw_heap *)copy, size) != NULL;
}

/* A part of a random program: the last part of all but frees. */
static void run(struct hw_heap *heap, int frees)
{
    for (int i = 0; i < CALLS; i++) {
        void **object = &objects[below(OBJECTS)];
        if (*object) {
            hw_free(&policy, heap, *object);
            *object = NULL;
        } else if (!frees) {
            *object = hw_malloc(&policy, heap, 1u + (below(4) ? below(160) : below(2400)));
        }
    }
}

int main(int argc, char **argv)
{
    const int rounds = read_arguments(argc, argv);
    if (rounds < 0) {
        return 2;
    }
    arena = aligned_alloc(4096, arena_bytes);
    copy = aligned_alloc(4096, arena_bytes);
    unsigned states = 0, refused = 0, more = 0;
    unsigned long left_out = 0, stated_bytes = 0, served_bytes = 0, furthest = 0;
    for (int round = 0; round < rounds; round++) {
        struct hw_heap *heap = hw_init(&policy, arena, arena_bytes);
        if (heap == NULL) {
            return 3;
        }
        memset(objects, 0, sizeof objects);
        for (int part = 0; part < STATES; part++) {
            run(heap, part % 4 == 3);
            for (int i = 0; part + 1 == STATES && i < OBJECTS; i++) {
                hw_free(&policy, heap, objects[i]);
            }
            const uint32_t unflushed = hw_statistics(&policy, heap).largest_free;
            refused += unflushed != 0 && !serves(unflushed);
            hw_flush(&policy, heap);
            const uint32_t stated = hw_statistics(&policy, heap).largest_free;
            left_out += stated - unflushed;
            if (stated != hw_largest_free(&policy, heap, UINT32_MAX)) {
                return 4;
            }
            states++;
            refused += stated != 0 && !serves(stated);
            uint32_t served = stated;
            for (uint32_t size = stated + 1u; size < arena_bytes;
                 size += size < stated + STEP ? 1u : STEP + arena_bytes / 1024u) {
                served = serves(size) ? size : served;
            }
            more += served > stated;
            furthest = served - stated > furthest ? served - stated : furthest;
            stated_bytes += stated;
            served_bytes += served;
        }
    }
    printf("%u %u %u %lu %lu %lu %lu\n", states, refused, more, left_out, furthest, stated_bytes, served_bytes);
    return 0;
}
