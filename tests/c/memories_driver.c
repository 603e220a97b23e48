/* memories_driver.c: replays a trace on a generated heap in two memories, and prints where each object lies.
 *
 *     driver CALLS FAST_BYTES EXTERNAL_BYTES > two uint32_t a call
 *
 * CALLS is as in driver_calls.h. After each call: which memory has its object, 1 or 2, and its address there; both
 * 0 where it is not alive. Objects hold a pattern, which must be there when they are resized or freed. On stderr: the
 * checker's answer, and the number of broken objects.
 *
 * With BEHIND the second memory is all that is not the pools', where addresses mean nothing, EXTERNAL_BYTES is not
 * looked at, all is freed at the end, and on stderr is also how many requests the pools passed on.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "app_heap.h"
#include "driver_calls.h"

#ifdef BEHIND
static struct app_heap *heap;
#define HEAP heap
#else
static struct app_heap heap;
#define HEAP (&heap)
#endif
static unsigned char *memories[2];
static unsigned broken;

static unsigned char pattern(uint32_t slot, uint32_t i)
{
    return (unsigned char)(slot * 167u + i * 59u + 1u);
}

static void look_at(const struct object *object, uint32_t slot, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        broken += object->bytes[i] != pattern(slot, i);
    }
}

static void perform(const struct call *call, struct object *object, uint32_t slot)
{
    const uint32_t op = call->op_and_slot >> 30;
    if (op == 3u) {
        look_at(object, slot, object->bytes ? object->size : 0);
        app_free(HEAP, object->bytes);
        object->bytes = NULL;
        return;
    }
    if (op == 2u && object->bytes == NULL) {
        return;
    }
    unsigned char *bytes = op == 2u      ? app_realloc(HEAP, object->bytes, call->size)
                           : call->align ? app_aligned_alloc(HEAP, call->align, call->size)
                           : op == 1u    ? app_calloc(HEAP, 1, call->size)
                                         : app_malloc(HEAP, call->size);
    if (op != 2u) {
        object->bytes = NULL;
        object->size = 0;
    }
    if (bytes == NULL) {
        return;
    }
    object->bytes = bytes;
    look_at(object, slot, object->size < call->size ? object->size : call->size);
    object->size = call->size;
    for (uint32_t i = 0; i < call->size; i++) {
        bytes[i] = pattern(slot, i);
    }
}

static void tell(const struct object *object, const size_t *sizes)
{
    uint32_t stats[2] = {0, 0};
    for (uint32_t k = 0; k < 2u && object->bytes && stats[0] == 0; k++) {
        const uintptr_t at = (uintptr_t)object->bytes - (uintptr_t)memories[k];
        if (at < sizes[k]) {
            stats[0] = k + 1u;
            stats[1] = (uint32_t)at;
        }
    }
    fwrite(stats, sizeof stats, 1, stdout);
}

#ifdef BEHIND
static int begin(size_t *sizes)
{
    heap = app_init(memories[0], sizes[0]);
    free(memories[1]);
    memories[1] = NULL;
    sizes[1] = SIZE_MAX;
    return heap != NULL;
}

static void end(const struct calls *calls)
{
    fprintf(stderr, "%d %u %u\n", app_check(heap), broken, app_statistics(heap).refused);
    for (uint32_t slot = 0; slot < calls->slots; slot++) {
        app_free(heap, calls->objects[slot].bytes);
    }
}
#else
static int begin(const size_t *sizes)
{
    return app_init(&heap, memories[0], sizes[0], memories[1], sizes[1]);
}

static void end(const struct calls *calls)
{
    (void)calls;
    fprintf(stderr, "%d %u\n", app_check(&heap), broken);
}
#endif

static void *reserved(size_t bytes)
{
    const size_t alignment = alignment_for(bytes);
    return required(aligned_alloc(alignment, alignment));
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: driver CALLS FAST_BYTES EXTERNAL_BYTES\n", stderr);
        return 2;
    }
    const struct calls calls = read_calls(argv[1]);
    size_t sizes[2] = {strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10)};
    memories[0] = reserved(sizes[0]);
    memories[1] = reserved(sizes[1]);
    if (!begin(sizes)) {
        return 2;
    }
    for (uint32_t i = 0; i < calls.count; i++) {
        const uint32_t slot = calls.call[i].op_and_slot & 0x3fffffffu;
        perform(&calls.call[i], &calls.objects[slot], slot);
        tell(&calls.objects[slot], sizes);
    }
    end(&calls);
    free(memories[0]);
    free(memories[1]);
    forget_calls(calls);
    return 0;
}
