/* eva.c: any program of mallocs, callocs, reallocs and frees of four objects, and requests that are too large, for
   Frama-C's Eva. */
#include <stdint.h>

#include "__fc_builtin.h"
#include "app_heap.h"

enum { OBJECTS = 4, LARGEST = 300 };

static unsigned long long arena[1024]; /* Frama-C knows no _Alignas */

int main(void)
{
    void *objects[OBJECTS] = {0};
    struct app_heap *heap = app_init(arena, sizeof arena);
    if (heap == 0 || app_init(0, 0) != 0 || app_calloc(heap, SIZE_MAX, 2) != 0) {
        return 1;
    }
    while (Frama_C_interval(0, 1)) {
        void **object = &objects[Frama_C_interval(0, OBJECTS - 1)];
        const size_t size = (size_t)Frama_C_interval(0, LARGEST);
        if (*object == 0) {
            *object = Frama_C_interval(0, 1) ? app_realloc(heap, *object, size) : app_calloc(heap, size, 2);
        } else if (Frama_C_interval(0, 1)) {
            void *moved = app_realloc(heap, *object, Frama_C_interval(0, 1) ? size : SIZE_MAX / 2);
            *object = moved != 0 ? moved : *object;
        } else {
            app_free(heap, *object);
            *object = 0;
        }
    }
    return 0;
}
