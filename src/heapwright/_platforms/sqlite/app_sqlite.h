/* app_sqlite.h: app_heap as the memory of SQLite. */
#ifndef APP_SQLITE_H
#define APP_SQLITE_H

#include "app_heap.h"

#include <sqlite3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lets SQLite allocate from the `bytes` bytes at `arena`, aligned to APP_ARENA_ALIGNMENT, and from nowhere else. To be
 * called before any other function of SQLite, or after sqlite3_shutdown(). Returns what sqlite3_config() returns; for
 * an arena that is too small, sqlite3_initialize() or sqlite3_open() returns SQLITE_NOMEM. */
int app_sqlite_config(void *arena, size_t bytes);

/* For app_statistics() and app_check(), while SQLite does nothing. NULL before sqlite3_initialize() and after
 * sqlite3_shutdown(). */
struct app_heap *app_sqlite_heap(void);

#ifdef __cplusplus
}
#endif

#endif
