/* Calls whose last argument says where the object lies. */
#include "../drain.h"
#include "app_trace.h"
#include "heap_caps.h"

#ifndef KIND
#define KIND 0 /* of memory that has no room */
#endif

/* Another task's call while a realloc runs that has freed its memory already. */
void interrupted(void *freed);
void interrupted(void *freed)
{
    app_trace_allocated(freed, 11);
}

int main(void)
{
    void *a = heap_caps_malloc_base(24, 0);
    void *moved = heap_caps_realloc_base(a, 48, 1);
    heap_caps_free(a); /* the other task's */
    void *cleared = heap_caps_calloc_base(3, 5, 0);
    void *aligned = heap_caps_aligned_alloc_base(32, 64, 2);
    heap_caps_malloc_base(1000, KIND);
    heap_caps_free(aligned);
    heap_caps_free(moved);
    heap_caps_free(cleared);
    heap_caps_free(NULL);
    drain();
    return 0;
}
