/* promises.c: what a heap of any recipe owes its caller, in states that a random program leaves.
 *
 *     promises POLICY ARENA_BYTES ROUNDS SEED
 *
 * POLICY is a struct hw_policy. Each round fills the heap until requests fail; then it frees single objects and
 * requests their size again, makes objects smaller, and makes requests that no heap can serve. Prints how often each
 * promise was put to the test and how often it was broken: a request was refused though a free block was large enough;
 * a freed object's size was refused; a resize to less failed, or lost bytes; an impossible request was served, or
 * changed the object; an object was misaligned. Exits with 4 if the checker finds damage.
 */
#include <string.h>

#include "random_program.h"

enum { OBJECTS = 600, TURNS = 120 };
enum { WALK_EVERY = 8 }; /* a walk looks through a list for each block: after each eighth refusal */

static struct {
    unsigned char *at;
    uint32_t size;
    int from_malloc; /* and not resized since */
} objects[OBJECTS];

static unsigned refused[2], again[2], smaller_size[2], impossible[2], aligned[2], refusals;

static void count(unsigned counts[2], int broken)
{
    counts[0]++;
    counts[1] += broken != 0;
}

static uint32_t random_size(void)
{
    return 1u + (below(4) ? below(200) : below(3000));
}

static int holds(const unsigned char *at, unsigned char value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (at[i] != value) {
            return 0;
        }
    }
    return 1;
}

/* Whether a free block is surely large enough for `size` bytes. */
static int has_room(struct hw_heap *heap, uint32_t size)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    while (hw_next_block(&policy, heap, &block)) {
        if (block.state == HW_BLOCK_FREE && block.size >= size + 48u) {
            return 1;
        }
    }
    return 0;
}

static void get(struct hw_heap *heap, int i, uint32_t size)
{
    objects[i].size = size;
    objects[i].at = hw_malloc(&policy, heap, size);
    objects[i].from_malloc = 1;
    if (objects[i].at) {
        memset(objects[i].at, i & 255, size);
        count(aligned, (uintptr_t)objects[i].at % policy.align != 0);
    } else if (refusals++ % WALK_EVERY == 0) {
        count(refused, has_room(heap, size));
    }
}

static void free_and_get(struct hw_heap *heap, int i)
{
    const int from_malloc = objects[i].from_malloc;
    hw_free(&policy, heap, objects[i].at);
    get(heap, i, objects[i].size);
    if (from_malloc) {
        count(again, objects[i].at == NULL);
    }
}

static void shrink(struct hw_heap *heap, int i)
{
    const uint32_t less = 1u + below(objects[i].size);
    unsigned char *resized = hw_realloc(&policy, heap, objects[i].at, less);
    count(smaller_size, resized == NULL || !holds(resized, (unsigned char)(i & 255), less));
    if (resized) {
        objects[i].at = resized;
        objects[i].size = less;
        objects[i].from_malloc = 0;
    }
}

static void ask_too_much(struct hw_heap *heap, int i)
{
    static const size_t sizes[] = {SIZE_MAX,           SIZE_MAX - 7u, SIZE_MAX - 63u, SIZE_MAX / 2u,
                                   SIZE_MAX / 2u + 9u, UINT32_MAX,    (size_t)1 << 31};
    const size_t size = below(2) ? sizes[below(7)] : (size_t)arena_bytes + below(9);
    count(impossible, hw_malloc(&policy, heap, size) != NULL || hw_calloc(&policy, heap, 1, size) != NULL ||
                          hw_calloc(&policy, heap, SIZE_MAX / 8u + 2u, 8) != NULL ||
                          hw_aligned_alloc(&policy, heap, 64, size) != NULL ||
                          hw_aligned_alloc(&policy, heap, 24, 8) != NULL ||
                          hw_realloc(&policy, heap, objects[i].at, size) != NULL ||
                          !holds(objects[i].at, (unsigned char)(i & 255), objects[i].size));
}

static void align(struct hw_heap *heap, int i)
{
    const size_t alignment = (size_t)8 << below(5);
    hw_free(&policy, heap, objects[i].at);
    objects[i].at = hw_aligned_alloc(&policy, heap, alignment, objects[i].size);
    if (objects[i].at) {
        objects[i].from_malloc = 0;
        memset(objects[i].at, i & 255, objects[i].size);
        count(aligned, (uintptr_t)objects[i].at % alignment != 0);
    } else {
        get(heap, i, objects[i].size);
    }
}

int main(int argc, char **argv)
{
    const int rounds = read_arguments(argc, argv);
    if (rounds < 0) {
        return 2;
    }
    unsigned char *arena = aligned_alloc(4096, arena_bytes);
    for (int round = 0; round < rounds; round++) {
        struct hw_heap *heap = hw_init(&policy, arena, arena_bytes);
        if (heap == NULL) {
            return 3;
        }
        const uint32_t size = below(2) ? random_size() : 0; /* 0: of many sizes */
        for (int i = 0; i < OBJECTS; i++) {
            get(heap, i, size ? size : random_size());
        }
        for (int turn = 0; turn < TURNS; turn++) {
            const int i = (int)below(OBJECTS);
            if (objects[i].at) {
                void (*const calls[])(struct hw_heap *, int) = {free_and_get, free_and_get, shrink, ask_too_much,
                                                                align};
                calls[below(5)](heap, i);
            }
        }
        if (hw_check(&policy, heap) != 0) {
            return 4;
        }
    }
    free(arena);
    printf("%u %u %u %u %u %u %u %u %u %u\n", refused[0], refused[1], again[0], again[1], smaller_size[0],
           smaller_size[1], impossible[0], impossible[1], aligned[0], aligned[1]);
    return 0;
}
