/* generated_addresses.c: replays a trace on a generated heap, and prints where its objects lie.
 *
 *     driver CALLS ARENA_BYTES
 *
 * CALLS is as in driver_calls.h. Refused objects are skipped, as a replay does. On stdout: for each call the sum of the
 * distances of all live objects from the arena's first byte, modulo 2^32, as 4 bytes.
 */
#include "app_heap.h"
#include "driver_calls.h"

static unsigned char *arena;
static uint32_t sum;

static void place(struct object *object, unsigned char *bytes)
{
    sum -= object->bytes ? (uint32_t)(object->bytes - arena) : 0;
    object->bytes = bytes;
    sum += bytes ? (uint32_t)(bytes - arena) : 0;
}

static void perform(struct app_heap *heap, const struct call *call, struct object *object)
{
    const uint32_t operation = call->op_and_slot >> 30;
    if (operation >= 2u && object->bytes == NULL) {
        return;
    }
    if (operation == 3u) {
        app_free(heap, object->bytes);
        place(object, NULL);
    } else if (operation == 2u) {
        unsigned char *bytes = app_realloc(heap, object->bytes, call->size);
        place(object, bytes ? bytes : object->bytes);
    } else {
        place(object, call->align ? app_aligned_alloc(heap, call->align, call->size) : app_malloc(heap, call->size));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        return 2;
    }
    const size_t bytes = strtoul(argv[2], NULL, 0);
    const size_t alignment = alignment_for(bytes);
    const struct calls calls = read_calls(argv[1]);
    arena = required(aligned_alloc(alignment, (bytes + alignment - 1u) & ~(alignment - 1u)));
    struct app_heap *heap = required(app_init(arena, bytes));
    for (uint32_t i = 0; i < calls.count; i++) {
        perform(heap, &calls.call[i], &calls.objects[calls.call[i].op_and_slot & 0x3fffffffu]);
        fwrite(&sum, sizeof sum, 1, stdout);
    }
    const int broken = app_check(heap);
    forget_calls(calls);
    free(arena);
    return broken;
}
