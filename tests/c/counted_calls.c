/* counted_calls.c: replays a trace on a generated heap whose loads and stores are counted.
 *
 *     counted CALLS ARENA_BYTES
 *
 * CALLS is as in driver_calls.h. The heap is compiled with a counter in each function that loads or stores metadata,
 * and one in the function that copies payload. Failed requests are skipped, as a replay does. Prints one line of
 * numbers: for malloc (with calloc), realloc and free, the accesses of all calls and those of the worst call; the
 * accesses of the copies; the failed requests; and the footprint after a tenth of the calls and at the end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "app_heap.h"
#include "driver_calls.h"

unsigned long counted_accesses, counted_copied; /* the heap adds to them: accesses, and words copied */

enum { MALLOC, REALLOC, FREE, KINDS };

static unsigned long total[KINDS], worst[KINDS], failed;

static void perform(struct app_heap *heap, const struct call *call, struct object *objects)
{
    struct object *object = &objects[call->op_and_slot & 0x3fffffffu];
    const unsigned op = call->op_and_slot >> 30;
    const int kind = op == 3u ? FREE : op == 2u ? REALLOC : MALLOC;
    if (kind != MALLOC && object->bytes == NULL) {
        return;
    }
    counted_accesses = 0;
    if (kind == FREE) {
        app_free(heap, object->bytes);
        object->bytes = NULL;
    } else if (kind == REALLOC) {
        unsigned char *bytes = app_realloc(heap, object->bytes, call->size);
        failed += bytes == NULL;
        object->bytes = bytes ? bytes : object->bytes;
    } else {
        object->bytes = call->align ? app_aligned_alloc(heap, call->align, call->size)
                        : op == 1u  ? app_calloc(heap, 1, call->size)
                                    : app_malloc(heap, call->size);
        failed += object->bytes == NULL;
    }
    total[kind] += counted_accesses;
    worst[kind] = counted_accesses > worst[kind] ? counted_accesses : worst[kind];
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: counted CALLS ARENA_BYTES\n", stderr);
        return 2;
    }
    const struct calls calls = read_calls(argv[1]);
    const size_t bytes = strtoull(argv[2], NULL, 10);
    const size_t alignment = alignment_for(bytes);
    unsigned char *arena = required(aligned_alloc(alignment, alignment));
    struct app_heap *heap = required(app_init(arena, bytes));
    unsigned long early = 0;
    for (uint32_t i = 0; i < calls.count; i++) {
        perform(heap, &calls.call[i], calls.objects);
        if (i + 1u == calls.count / 10u) {
            early = app_usage(heap).peak;
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%lu %lu ", total[kind], worst[kind]);
    }
    printf("%lu %lu %lu %lu\n", 2u * counted_copied, failed, early, (unsigned long)app_usage(heap).peak);
    free(arena);
    forget_calls(calls);
    return 0;
}
