/* app_sqlite.c: app_heap as the memory of SQLite.
 *
 * SQLite makes one call at a time, as long as SQLITE_CONFIG_MEMSTATUS is on; where it is off, the recipe's threads must
 * be "lock" or "cached". As with SQLite's own memsys5, sqlite3_initialize() makes the heap.
 */
#include "app_sqlite.h"

_Static_assert(APP_ALIGNMENT >= 8, "SQLite wants objects aligned to 8: take a recipe with that align");

static void *arena;
static size_t arena_bytes;
static struct app_heap *heap;

static void *allocate(int bytes)
{
    return app_malloc(heap, (size_t)bytes);
}

static void release(void *pointer)
{
    app_free(heap, pointer);
}

static void *resize(void *pointer, int bytes)
{
    return app_realloc(heap, pointer, (size_t)bytes);
}

static int usable(void *pointer)
{
    return (int)app_usable_size(heap, pointer);
}

static int round_up(int bytes)
{
    return (int)(((unsigned)bytes + 7u) & ~7u);
}

static int begin(void *unused)
{
    (void)unused;
    heap = app_init(arena, arena_bytes);
    return heap ? SQLITE_OK : SQLITE_NOMEM;
}

static void end(void *unused)
{
    (void)unused;
    heap = NULL;
}

int app_sqlite_config(void *memory, size_t bytes)
{
    static const sqlite3_mem_methods methods = {allocate, release, resize, usable, round_up, begin, end, NULL};
    arena = memory;
    arena_bytes = bytes;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
}

struct app_heap *app_sqlite_heap(void)
{
    return heap;
}
