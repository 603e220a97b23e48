/* app_lua.c: app_heap as the memory of Lua. */
#include "app_lua.h"

/* LUAI_MAXALIGN: lua_Number, lua_Integer, pointers. */
_Static_assert(APP_ALIGNMENT >= 8, "Lua wants objects aligned to 8: take a recipe with that align");

void *app_lua_alloc(void *heap, void *pointer, size_t old_size, size_t size)
{
    (void)old_size; /* where there is no pointer, the kind of object */
    if (size == 0) {
        app_free(heap, pointer);
        return NULL;
    }
    return app_realloc(heap, pointer, size);
}
