/* generated_driver.c: replays a trace on a generated heap and says what became of it.
 *
 *     driver CALLS ARENA_BYTES METADATA_BYTES > first METADATA_BYTES of the arena
 *
 * CALLS is what heapwright.replay.call_records gives, behind the numbers of calls and of slots. Refused objects are
 * skipped, as a replay does. Every object is filled with a pattern that must be there when it is resized or freed.
 * On stderr: peak, requests refused, blocks in use, the checker's answer, and the number of broken objects.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "app_heap.h"

struct call {
    uint32_t op_and_slot; /* operation in the upper 2 bits: malloc, calloc, realloc, free */
    uint32_t size;
    uint32_t align; /* 0 is the heap's own */
};

struct object {
    unsigned char *bytes; /* NULL where it is not alive */
    uint32_t size;
};

static struct app_heap *heap;
static unsigned broken;

static unsigned char pattern(uint32_t slot, uint32_t i)
{
    return (unsigned char)(slot * 167u + (i ^ i >> 8) * 59u + 1u);
}

static void fill(const struct object *object, uint32_t slot, uint32_t from)
{
    for (uint32_t i = from; i < object->size; i++) {
        object->bytes[i] = pattern(slot, i);
    }
}

static void expect_pattern(const struct object *object, uint32_t slot, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (object->bytes[i] != pattern(slot, i)) {
            broken++;
            return;
        }
    }
}

static void resize(struct object *object, uint32_t slot, uint32_t size)
{
    if (object->bytes == NULL) {
        return;
    }
    unsigned char *bytes = app_realloc(heap, object->bytes, size);
    if (bytes) {
        const uint32_t kept = size < object->size ? size : object->size;
        object->bytes = bytes;
        object->size = size;
        expect_pattern(object, slot, kept);
        fill(object, slot, kept);
    }
}

static void perform(const struct call *call, struct object *objects)
{
    const uint32_t slot = call->op_and_slot & 0x3fffffffu;
    struct object *object = &objects[slot];
    switch (call->op_and_slot >> 30) {
    case 3u:
        if (object->bytes) {
            expect_pattern(object, slot, object->size);
        }
        app_free(heap, object->bytes);
        object->bytes = NULL;
        return;
    case 2u:
        resize(object, slot, call->size);
        return;
    default:
        object->bytes = call->align ? app_aligned_alloc(heap, call->align, call->size) : app_malloc(heap, call->size);
        object->size = call->size;
        if (object->bytes) {
            fill(object, slot, 0);
        }
    }
}

static void *required(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: driver CALLS ARENA_BYTES METADATA_BYTES\n", stderr);
        return 2;
    }
    FILE *file = required(fopen(argv[1], "rb"));
    uint32_t numbers[2]; /* calls, slots */
    if (fread(numbers, sizeof numbers, 1, file) != 1) {
        return 2;
    }
    struct call *calls = required(malloc((numbers[0] + 1u) * sizeof *calls));
    struct object *objects = required(calloc(numbers[1] + 1u, sizeof *objects));
    if (fread(calls, sizeof *calls, numbers[0], file) != numbers[0]) {
        return 2;
    }
    fclose(file);

    const size_t bytes = strtoull(argv[2], NULL, 10);
    size_t alignment = 4096; /* at least the arena's size: offsets are as aligned as addresses, whatever is asked for */
    while (alignment < bytes) {
        alignment *= 2u;
    }
    unsigned char *arena = required(aligned_alloc(alignment, alignment));
    heap = required(app_init(arena, bytes));
    for (uint32_t i = 0; i < numbers[0]; i++) {
        perform(&calls[i], objects);
    }
    const struct app_statistics told = app_statistics(heap);
    fprintf(stderr, "%lu %lu %lu %d %u\n", (unsigned long)told.peak, (unsigned long)told.refused,
            (unsigned long)told.used_blocks, app_check(heap), broken);
    fwrite(arena, 1, strtoull(argv[3], NULL, 10), stdout);
    free(arena);
    free(objects);
    free(calls);
    return 0;
}
