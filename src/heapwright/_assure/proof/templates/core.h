/* The core that generated text is made from, in a file of its own, and the recipe as its policy. */
#include "policy.h"

static const struct hw_policy POLICY = {{ policy }};

struct hw_heap *core_init(const struct hw_policy *policy, void *arena, size_t bytes);
void *core_malloc(const struct hw_policy *policy, struct hw_heap *heap, size_t size);
void *core_calloc(const struct hw_policy *policy, struct hw_heap *heap, size_t count, size_t size);
void *core_realloc(const struct hw_policy *policy, struct hw_heap *heap, void *pointer, size_t size);
void *core_aligned_alloc(const struct hw_policy *policy, struct hw_heap *heap, size_t alignment, size_t size);
void core_free(const struct hw_policy *policy, struct hw_heap *heap, void *pointer);
struct {{ prefix }}_statistics core_statistics(const struct hw_policy *policy, struct hw_heap *heap);
size_t core_largest_free(const struct hw_policy *policy, struct hw_heap *heap, uint32_t looks);
int core_check(const struct hw_policy *policy, struct hw_heap *heap);
