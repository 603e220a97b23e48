/* app_lua.h: app_heap as the memory of Lua. */
#ifndef APP_LUA_H
#define APP_LUA_H

#include "app_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A lua_Alloc; its ud is the heap: lua_newstate(app_lua_alloc, app_init(arena, bytes)). */
void *app_lua_alloc(void *heap, void *pointer, size_t old_size, size_t size);

#ifdef __cplusplus
}
#endif

#endif
