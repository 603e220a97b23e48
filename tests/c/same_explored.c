/* same_explored.c: the program of same_program.h on the heap as the explorer compiles it. */
#define HW_EXPLORE
#include "same_program.h"

uint32_t run_explored(const struct hw_policy *policy, void *arena, size_t bytes, struct hw_handle *handles,
                      uint32_t *trail);

uint32_t run_explored(const struct hw_policy *policy, void *arena, size_t bytes, struct hw_handle *handles,
                      uint32_t *trail)
{
    struct hw_heap heap;
    memset(&heap, 0, sizeof heap);
    heap.base = arena;
    return heap_init(policy, &heap, bytes) ? run_program(policy, &heap, handles, trail) : 0;
}
