/* Calls of two heaps, of which APP_TRACE_HEAP may choose one. */
#include <zephyr/sys/sys_heap.h>

#include "../drain.h"

struct sys_heap first, second;

int main(void)
{
    void *a = sys_heap_alloc(&first, 24);
    void *b = sys_heap_aligned_alloc(&first, 64, 128);
    void *other = sys_heap_noalign_alloc(&second, 0, 7);
    a = sys_heap_realloc(&first, a, 3000);
    a = sys_heap_aligned_realloc(&first, a, 0, 16);
    sys_heap_realloc(&first, a, ~(size_t)0);
    sys_heap_free(&second, other);
    sys_heap_free(&first, b);
    sys_heap_free(&first, NULL);
    sys_heap_free(&first, a);
    drain();
    return 0;
}
