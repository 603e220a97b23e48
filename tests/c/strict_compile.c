/* Every function of the core, compiled with the strictest warnings: once as firmware sees it, once as the explorer. */
#include "check.h"

int strict_compile(const struct hw_policy *p, struct hw_heap *h, void *memory);

int strict_compile(const struct hw_policy *p, struct hw_heap *h, void *memory)
{
#ifndef HW_EXPLORE
    h = hw_init(p, memory, 4096);
#else
    (void)heap_init(p, h, 4096);
#endif
    void *a = hw_malloc(p, h, 1);
    void *b = hw_calloc(p, h, 1, 1);
    a = hw_realloc(p, h, a, 2);
    a = hw_realloc_low(p, h, a, 3);
    hw_free(p, h, hw_malloc_low(p, h, 1));
    hw_free(p, h, hw_aligned_alloc(p, h, 64, 1));
    hw_free(p, h, b);
    hw_free(p, h, memory);
    void *reference = NULL;
    (void)hw_handle_alloc(p, h, &reference, 1);
    (void)hw_handle_realloc(p, h, &reference, hw_handle_usable_size(p, h, &reference));
    a = hw_handle_pointer(p, h, &reference) ? a : NULL;
    hw_handle_free(p, h, &reference);
    hw_reset_least_free(p, h);
    (void)(hw_counters(p, h).free + hw_usage(p, h).peak + hw_largest_free(p, h, 1) + (size_t)hw_owns(p, h, a));
    return (int)hw_usable_size(p, h, a) + (int)hw_block_bytes(p, h, a) + (int)hw_statistics(p, h).used + hw_check(p, h);
}
