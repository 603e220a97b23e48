/* app_lua_test.c: whether Lua allocates from app_heap alone, keeps its objects, and recovers where memory is out.
 *
 * With a recipe of threads = "cached" compile it with -DAPP_TEST_CACHED. It wants 4 MiB. Where there is a main already,
 * compile it with -Dmain=app_lua_test and call that.
 */
#include "app_lua.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

enum { ARENA = 4 << 20 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

/* Strings, tables that grow, closures, coroutines and userdata (files), kept a while and checked as they go. */
static const char load[] =
    "local kept, sum = {}, 0\n"
    "for i = 1, 60000 do\n"
    "  local slot = (i * 7919) % 1500 + 1\n"
    "  local old = kept[slot]\n"
    "  if old then assert(old.name == 'object ' .. old.i and #old.list == old.i % 13 and old.get() == old.i) end\n"
    "  local object = {i = i, name = 'object ' .. i, list = {}}\n"
    "  for k = 1, i % 13 do object.list[k] = k end\n"
    "  object.get = function() return object.i end\n"
    "  kept[slot] = object\n"
    "  if i % 100 == 0 then\n"
    "    local run = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end)\n"
    "    assert(run(i) == i + 1 and run(3) == 6)\n"
    "    sum = sum + #table.concat(object.list, string.rep('-', i % 997))\n"
    "  end\n"
    "end\n"
    "return sum\n";

static const char too_much[] = "local t = {} for i = 1, 1000 do t[i] = string.rep('x', 10000) .. i end\n";

static unsigned long calls;

static void *counted(void *heap, void *pointer, size_t old_size, size_t size)
{
    calls++;
    return app_lua_alloc(heap, pointer, old_size, size);
}

static void run(lua_State *state, struct app_heap *heap)
{
    luaL_openlibs(state);
    expect(luaL_dostring(state, load) == LUA_OK, lua_gettop(state) ? lua_tostring(state, -1) : "the load runs");
    expect(calls >= 100000, "the load makes 100,000 calls");
    expect(app_check(heap) == 0, "the heap is whole after the load");
    lua_settop(state, 0);
    expect(luaL_loadstring(state, too_much) == LUA_OK && lua_pcall(state, 0, 0, 0) == LUA_ERRMEM,
           "Lua gets an out-of-memory error");
    lua_settop(state, 0);
    lua_gc(state, LUA_GCCOLLECT);
    expect(luaL_dostring(state, load) == LUA_OK, "and goes on");
    const size_t reported = (size_t)lua_gc(state, LUA_GCCOUNT) * 1024;
    expect(app_statistics(heap).used >= reported && reported > 0, "what Lua counts is in the heap");
}

int main(void)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    lua_State *state = lua_newstate(counted, heap);
    expect(state != NULL, "Lua makes a state");
    if (state) {
        run(state, heap);
        lua_close(state);
    }
#ifdef APP_TEST_CACHED
    app_release_thread(heap);
#endif
    expect(app_check(heap) == 0 && app_statistics(heap).used_blocks == 0, "all is given back");
    printf("app_lua: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
