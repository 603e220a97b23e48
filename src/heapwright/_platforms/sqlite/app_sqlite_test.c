/* app_sqlite_test.c: whether SQLite allocates from app_heap alone, and finds its data whole under 120,000 statements.
 *
 * With a recipe of threads = "cached" compile it with -DAPP_TEST_CACHED. It wants 8 MiB. Where there is a main already,
 * compile it with -Dmain=app_sqlite_test and call that, before any other call of SQLite.
 */
#include "app_sqlite.h"

#include <stdio.h>
#include <string.h>

enum { ARENA = 8 << 20, STATEMENTS = 120000, KEYS = 4000, COMMIT_EVERY = 500 };

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[ARENA];
static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        failures++;
    }
}

/* The first column of a statement's only row. */
static sqlite3_int64 number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    sqlite3_int64 found = -1;
    expect(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK, sql);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        found = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return found;
}

static int is_whole(sqlite3 *db)
{
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(db, "pragma integrity_check", -1, &statement, NULL);
    const int whole =
        sqlite3_step(statement) == SQLITE_ROW && strcmp("ok", (const char *)sqlite3_column_text(statement, 0)) == 0;
    sqlite3_finalize(statement);
    return whole && app_check(app_sqlite_heap()) == 0;
}

/* Inserts, updates and deletes rows; the expected contents are counted separately. */
static void run_statements(sqlite3 *db)
{
    static unsigned char lengths[KEYS]; /* of each key's text; 0: not there */
    sqlite3_stmt *put, *drop, *get;
    sqlite3_prepare_v2(db, "insert or replace into t values (?, printf('%.*c', ?, 'x'))", -1, &put, NULL);
    sqlite3_prepare_v2(db, "delete from t where k = ?", -1, &drop, NULL);
    sqlite3_prepare_v2(db, "select length(v) from t where k = ?", -1, &get, NULL);
    sqlite3_stmt *const statements[] = {put, put, drop, get};
    unsigned state = 1;
    int wrong = 0;
    for (unsigned i = 0; i < STATEMENTS; i++) {
        state = state * 1664525u + 1013904223u;
        const unsigned key = (state >> 8) % KEYS, kind = state >> 30;
        sqlite3_stmt *statement = statements[kind];
        if (i % COMMIT_EVERY == 0) {
            wrong += sqlite3_exec(db, i ? "commit; begin" : "begin", NULL, NULL, NULL) != SQLITE_OK;
        }
        sqlite3_bind_int(statement, 1, (int)key);
        if (statement == put) {
            lengths[key] = (unsigned char)(1u + (state >> 20) % 255u);
            sqlite3_bind_int(statement, 2, lengths[key]);
        } else if (statement == drop) {
            lengths[key] = 0;
        }
        const int row = sqlite3_step(statement) == SQLITE_ROW;
        wrong += statement == get && (row ? sqlite3_column_int(statement, 0) : 0) != lengths[key];
        wrong += sqlite3_reset(statement) != SQLITE_OK;
    }
    wrong += sqlite3_exec(db, "commit", NULL, NULL, NULL) != SQLITE_OK;
    sqlite3_finalize(put);
    sqlite3_finalize(drop);
    sqlite3_finalize(get);
    sqlite3_int64 rows = 0, bytes = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        rows += lengths[i] != 0;
        bytes += lengths[i];
    }
    expect(wrong == 0, "every statement does what it says");
    expect(number(db, "select count(*) from t") == rows, "no row is lost");
    expect(number(db, "select sum(length(v)) from t") == bytes, "no text is lost");
}

/* A request that does not fit returns an error, and the heap stays usable. */
static void run_out(sqlite3 *db)
{
    sqlite3_soft_heap_limit64(0);
    const int rc = sqlite3_exec(db, "create table big as select zeroblob(50000000) as b", NULL, NULL, NULL);
    expect(rc == SQLITE_NOMEM && app_statistics(app_sqlite_heap()).refused > 0, "SQLite gets an out-of-memory error");
}

static sqlite3 *opened(void)
{
    sqlite3 *db = NULL;
    expect(sqlite3_open(":memory:", &db) == SQLITE_OK, "SQLite opens a database");
    expect(app_sqlite_heap() && app_statistics(app_sqlite_heap()).used_blocks > 0, "SQLite allocates from the heap");
    sqlite3_exec(db, "create table t(k integer primary key, v text); create index tv on t(v)", NULL, NULL, NULL);
    return db;
}

int main(void)
{
    expect(app_sqlite_config(arena, 64) == SQLITE_OK && sqlite3_initialize() == SQLITE_NOMEM,
           "an arena that is too small is rejected");
    sqlite3_shutdown();
    expect(app_sqlite_config(arena, sizeof arena) == SQLITE_OK, "SQLite takes the methods");
    sqlite3 *db = opened();
    run_statements(db);
    run_out(db);
    expect(is_whole(db), "the database and the heap are whole");
    sqlite3_close(db);
#ifdef APP_TEST_CACHED
    app_release_thread(app_sqlite_heap());
#endif
    expect(sqlite3_memory_used() == 0 && app_statistics(app_sqlite_heap()).used_blocks == 0, "all is given back");
    sqlite3_shutdown();
    expect(app_sqlite_heap() == NULL, "sqlite3_shutdown ends the heap");
    db = opened();
    expect(is_whole(db), "it restarts");
    sqlite3_close(db);
    printf("app_sqlite: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
