/* driver_calls.h: the calls that a driver of a generated heap replays.
 *
 * A file of them is what heapwright._traces.calls.call_records gives, behind the numbers of calls and of slots.
 */
#ifndef DRIVER_CALLS_H
#define DRIVER_CALLS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct call {
    uint32_t op_and_slot; /* operation in the upper 2 bits: malloc, calloc, realloc, free */
    uint32_t size;
    uint32_t align; /* 0 is the heap's own */
};

struct object {
    unsigned char *bytes; /* NULL where it is not alive */
    uint32_t size;
};

struct calls {
    uint32_t count, slots;
    struct call *call;
    struct object *objects; /* one a slot, none alive */
};

static void *required(void *memory)
{
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

static struct calls read_calls(const char *path)
{
    FILE *file = required(fopen(path, "rb"));
    uint32_t numbers[2]; /* calls, slots */
    if (fread(numbers, sizeof numbers, 1, file) != 1) {
        exit(2);
    }
    const struct calls calls = {
        .count = numbers[0],
        .slots = numbers[1],
        .call = required(malloc((numbers[0] + 1u) * sizeof(struct call))),
        .objects = required(calloc(numbers[1] + 1u, sizeof(struct object))),
    };
    if (fread(calls.call, sizeof(struct call), calls.count, file) != calls.count) {
        exit(2);
    }
    fclose(file);
    return calls;
}

static void forget_calls(struct calls calls)
{
    free(calls.objects);
    free(calls.call);
}

/* To what a memory is aligned so that offsets are as aligned as addresses, for any request: its size or more. */
static size_t alignment_for(size_t bytes)
{
    size_t alignment = 4096;
    while (alignment < bytes) {
        alignment *= 2u;
    }
    return alignment;
}

#endif
