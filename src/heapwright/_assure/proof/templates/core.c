/* The core, to be called with any policy. */
#include "check.h"

struct hw_heap *core_init(const struct hw_policy *policy, void *arena, size_t bytes)
{
    return hw_init(policy, arena, bytes);
}

void *core_malloc(const struct hw_policy *policy, struct hw_heap *heap, size_t size)
{
    return hw_malloc(policy, heap, size);
}

void *core_calloc(const struct hw_policy *policy, struct hw_heap *heap, size_t count, size_t size)
{
    return hw_calloc(policy, heap, count, size);
}

void *core_realloc(const struct hw_policy *policy, struct hw_heap *heap, void *pointer, size_t size)
{
    return hw_realloc(policy, heap, pointer, size);
}

void *core_aligned_alloc(const struct hw_policy *policy, struct hw_heap *heap, size_t alignment, size_t size)
{
    return hw_aligned_alloc(policy, heap, alignment, size);
}

void core_free(const struct hw_policy *policy, struct hw_heap *heap, void *pointer)
{
    hw_free(policy, heap, pointer);
}

struct hw_statistics core_statistics(const struct hw_policy *policy, struct hw_heap *heap)
{
    return hw_statistics(policy, heap);
}

size_t core_largest_free(const struct hw_policy *policy, struct hw_heap *heap, uint32_t looks)
{
    return hw_largest_free(policy, heap, looks);
}

int core_check(const struct hw_policy *policy, struct hw_heap *heap)
{
    return hw_check(policy, heap);
}
