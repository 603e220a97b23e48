/* generated_driver.c: replays a trace on a generated heap and says what became of it.
 *
 *     driver CALLS ARENA_BYTES METADATA_BYTES > first METADATA_BYTES of the arena
 *
 * CALLS is as in driver_calls.h. Refused objects are skipped, as a replay does. Every object is filled with a pattern
 * that must be there when it is resized or freed. With -DHANDLE_WORDS=N objects move, and references to them, N
 * pointers each, lie ahead of the arena. With -DRESERVE alignment 1 means low priority; with -DSITES the top byte of an
 * alignment is the class of call sites, and each call's object is printed on the first stdout line as its address in
 * the arena, 0 where there is none. On stderr: peak, requests refused, blocks in use, the checker's answer, and the
 * number of broken objects. The file that the environment's FIELD names gets the block of the heap.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app_heap.h"
#include "driver_calls.h"

static struct app_heap *heap;
static unsigned broken;
static unsigned looked, short_of_largest; /* queries of the largest free block; not found in 4 looks */
#ifdef COUNTERS
static struct app_counters counted_at_start;
static uint32_t least_free = UINT32_MAX;
#endif
static unsigned long unaligned; /* requests that the interface has no function for */

#ifdef HANDLE_WORDS
static void **references; /* the end of all references, and the start of the arena */
#define REFERENCE(slot) (references - ((slot) + 1u) * HANDLE_WORDS)
#define POINTER(slot, bytes) app_handle_pointer(heap, REFERENCE(slot))
#define MALLOC(slot, n) (app_handle_alloc(heap, REFERENCE(slot), n) ? POINTER(slot, NULL) : NULL)
#define REALLOC(slot, bytes, n) (app_handle_realloc(heap, REFERENCE(slot), n) ? POINTER(slot, bytes) : NULL)
#define ALIGNED(slot, a, n) ((a) <= APP_ALIGNMENT ? MALLOC(slot, n) : (unaligned++, NULL))
#define FREE(slot, bytes) app_handle_free(heap, REFERENCE(slot))
#else
#define HANDLE_WORDS 0u
#define POINTER(slot, bytes) (bytes)
#define MALLOC(slot, n) app_malloc(heap, n)
#ifdef RESERVE
#define REALLOC(slot, bytes, n) (call->align == 1u ? app_realloc_low(heap, bytes, n) : app_realloc(heap, bytes, n))
#define ALIGNED(slot, a, n) ((a) == 1u ? app_malloc_low(heap, n) : app_aligned_alloc(heap, a, n))
#else
#define REALLOC(slot, bytes, n) app_realloc(heap, bytes, n)
#ifdef SITES
#define ALIGNED(slot, a, n)                                                                                            \
    (((a) & 0xffffffu)              ? app_aligned_alloc(heap, (a) & 0xffffffu, n)                                      \
     : call->op_and_slot >> 30 == 1 ? app_calloc_at(heap, (a) >> 24, 1, n)                                             \
                                    : app_malloc_at(heap, (a) >> 24, n))
#else
#define ALIGNED(slot, a, n) app_aligned_alloc(heap, a, n)
#endif
#endif
#define FREE(slot, bytes) app_free(heap, bytes)
#endif

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

static void resize(struct object *object, uint32_t slot, const struct call *call)
{
    const uint32_t size = call->size;
    if (object->bytes == NULL) {
        return;
    }
    unsigned char *bytes = REALLOC(slot, object->bytes, size);
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
            object->bytes = POINTER(slot, object->bytes);
            expect_pattern(object, slot, object->size);
        }
        FREE(slot, object->bytes);
        object->bytes = NULL;
        return;
    case 2u:
        resize(object, slot, call);
        return;
    default:
        object->bytes = call->align ? ALIGNED(slot, call->align, call->size) : MALLOC(slot, call->size);
        object->size = call->size;
        if (object->bytes) {
            fill(object, slot, 0);
        }
    }
}

/* What is reported without a walk has to be what the walk finds. */
static void expect_walk(void)
{
    const struct app_statistics stats = app_statistics(heap);
    const size_t few = app_largest_free(heap, 4);
    broken += app_largest_free(heap, UINT32_MAX) > stats.largest_free || few > stats.largest_free;
    short_of_largest += few != stats.largest_free;
    looked++;
#ifdef COUNTERS
    const struct app_counters counted = app_counters(heap);
    const struct app_counters start = counted_at_start;
    broken += start.free - counted.free != stats.used || counted.refused != stats.refused;
    broken += counted.mallocs - counted.frees != stats.used_blocks || counted.least_free > counted.free;
    least_free = counted.free < least_free ? counted.free : least_free;
    broken += counted.least_free > least_free;
#endif
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: driver CALLS ARENA_BYTES METADATA_BYTES\n", stderr);
        return 2;
    }
    const struct calls calls = read_calls(argv[1]);
    const size_t bytes = strtoull(argv[2], NULL, 10);
    const size_t alignment = alignment_for(bytes);
    const size_t front = ((calls.slots + 1u) * HANDLE_WORDS * sizeof(void *) + alignment - 1u) / alignment * alignment;
    unsigned char *memory = required(aligned_alloc(alignment, front + alignment));
    memset(memory, 0, front); /* what is refused stays NULL */
    unsigned char *arena = memory + front;
#if HANDLE_WORDS
    references = (void **)(void *)arena;
#endif
    heap = required(app_init(arena, bytes));
#ifdef COUNTERS
    counted_at_start = app_counters(heap);
#endif
    for (uint32_t i = 0; i < calls.count; i++) {
        perform(&calls.call[i], calls.objects);
#ifdef SITES
        const unsigned char *bytes = calls.objects[calls.call[i].op_and_slot & 0x3fffffffu].bytes;
        printf("%lu%c", bytes ? (unsigned long)(bytes - arena) : 0ul, i + 1u == calls.count ? '\n' : ' ');
#endif
        if (i % (calls.count / 64u + 1u) == 0 || i + 1u == calls.count) {
            expect_walk();
        }
    }
    const struct app_statistics stats = app_statistics(heap);
    if (getenv("FIELD")) {
        struct app_field field = {0};
        app_field(heap, &field);
        FILE *file = required(fopen(getenv("FIELD"), "wb"));
        fwrite(&field, sizeof field, 1, file);
        fclose(file);
    }
    if (getenv("LOOKS")) {
        printf("%u %u\n", looked, short_of_largest);
    }
    fprintf(stderr, "%lu %lu %lu %d %u\n", (unsigned long)stats.peak, stats.refused + unaligned,
            (unsigned long)stats.used_blocks, app_check(heap), broken);
    fwrite(arena, 1, strtoull(argv[3], NULL, 10), stdout);
    free(memory);
    forget_calls(calls);
    return 0;
}
