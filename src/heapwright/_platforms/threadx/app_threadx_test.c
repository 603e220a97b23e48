/* app_threadx_test.c: whether a pool serves threads, keeps their bytes, and wakes one that waits.
 *
 * It is an application: tx_application_define starts two threads. The last line, "app_threadx: ok" or FAILED, goes to
 * app_threadx_say(), which the board has.
 */
#include "app_threadx.h"
#include "app_tx_byte.h"

#include <string.h>

enum { ARENA = 32768, OBJECTS = 32, ROUNDS = 20000, STACK = 2048, TICKS = 5 };

void app_threadx_say(const char *line);

static _Alignas(APP_ARENA_ALIGNMENT) UCHAR arena[ARENA];
static app_pool pool;
static VOID *held;
static int failures;
static app_byte_pool waited;
static _Alignas(APP_ARENA_ALIGNMENT) UCHAR second_arena[ARENA / 2];
static TX_THREAD tester, giver, waiter;
static UCHAR tester_stack[STACK], giver_stack[STACK], waiter_stack[STACK];

static void expect(int holds, const char *what)
{
    if (!holds) {
        app_threadx_say(what);
        failures++;
    }
}

static void test_waiting(void)
{
    VOID *memory;
    expect(app_pool_allocate(&pool, &held, ARENA / 2, TX_NO_WAIT) == TX_SUCCESS, "half of the arena is served");
    expect(app_pool_allocate(&pool, &memory, ARENA / 2, TX_NO_WAIT) == TX_NO_MEMORY && memory == NULL,
           "what there is not is refused at once");
    expect(app_pool_allocate(&pool, &memory, ARENA / 2, TICKS) == TX_NO_MEMORY, "or after a while");
    expect(pool.waiting == 0, "no thread waits any more");
    tx_thread_resume(&giver);
    expect(app_pool_allocate(&pool, &memory, ARENA / 2, TX_WAIT_FOREVER) == TX_SUCCESS,
           "who waits gets what another releases");
    expect(app_pool_release(&pool, memory) == TX_SUCCESS, "memory is released");
    expect(app_pool_release(&pool, NULL) == TX_PTR_ERROR, "NULL is rejected");
}

/* A thread that is terminated no longer waits. */
static void wait_for_ever(ULONG unused)
{
    VOID *memory;
    (void)unused;
    app_byte_allocate(&waited, &memory, ARENA / 4, TX_WAIT_FOREVER);
}

static void test_terminated_waiter(void)
{
    TX_THREAD *first = NULL;
    ULONG waiting = 0;
    expect(app_byte_pool_create(&waited, "waited", second_arena, sizeof second_arena) == TX_SUCCESS,
           "a pool to wait for");
    VOID *most;
    expect(app_byte_allocate(&waited, &most, ARENA / 3, TX_NO_WAIT) == TX_SUCCESS, "most of it is taken");
    tx_thread_resume(&waiter);
    tx_thread_sleep(TICKS);
    app_byte_pool_info_get(&waited, NULL, NULL, NULL, &first, &waiting, NULL);
    expect(waiting == 1 && first == &waiter, "one thread waits");
    expect(app_byte_pool_prioritize(&waited) == TX_SUCCESS, "whose turn it is");
    tx_thread_terminate(&waiter);
    app_byte_pool_info_get(&waited, NULL, NULL, NULL, &first, &waiting, NULL);
    expect(waiting == 0 && first == NULL, "a thread that was terminated does not");
    expect(app_byte_release(most) == TX_SUCCESS, "its memory goes to others");
    expect(app_byte_allocate(&waited, &most, ARENA / 3, TX_WAIT_FOREVER) == TX_SUCCESS, "who ask later");
    app_byte_pool_delete(&waited);
}

/* What ThreadX's own calls return for the same arguments. */
static void test_errors(void)
{
    static app_pool none;
    VOID *memory = NULL;
    expect(app_pool_create(&pool, "again", arena, sizeof arena) == TX_POOL_ERROR, "a pool that exists");
    expect(app_pool_create(NULL, "none", arena, sizeof arena) == TX_POOL_ERROR, "no pool to create");
    expect(app_pool_create(&none, "none", NULL, sizeof arena) == TX_PTR_ERROR, "no memory");
    expect(app_pool_allocate(&none, &memory, 8, TX_NO_WAIT) == TX_POOL_ERROR, "a pool that was not created");
    expect(app_pool_allocate(NULL, &memory, 8, TX_NO_WAIT) == TX_POOL_ERROR, "no pool");
    expect(app_pool_allocate(&pool, NULL, 8, TX_NO_WAIT) == TX_PTR_ERROR, "nowhere to put the address");
    expect(app_pool_allocate(&pool, &memory, 0, TX_NO_WAIT) == TX_SIZE_ERROR, "0 bytes");
    expect(app_pool_allocate(&pool, &memory, ARENA, TX_WAIT_FOREVER) == TX_SIZE_ERROR, "more than the pool");
    expect(app_pool_release(&none, arena) == TX_POOL_ERROR, "a release into a pool that was not created");
    expect(app_pool_info_get(&none, NULL, NULL, NULL) == TX_POOL_ERROR, "the state of one");
    expect(app_pool_delete(&none) == TX_POOL_ERROR, "its deletion");
    expect(app_byte_pool_create(NULL, "none", arena, sizeof arena) == TX_POOL_ERROR, "no byte pool to create");
    expect(app_byte_allocate(NULL, &memory, 8, TX_NO_WAIT) == TX_POOL_ERROR, "no byte pool");
    expect(app_byte_pool_info_get(NULL, NULL, NULL, NULL, NULL, NULL, NULL) == TX_POOL_ERROR, "the state of none");
    expect(app_byte_pool_prioritize(NULL) == TX_POOL_ERROR, "the turn in none");
    expect(app_check(pool.heap) == 0 && app_statistics(pool.heap).used_blocks == 0, "the pool stays as it is");
}

/* The counters and the walk must agree. */
static void test_info(void)
{
    ULONG available = 0, least = 0, largest = 0, all = 0;
    VOID *memory;
    expect(app_pool_info_get(&pool, &all, NULL, NULL) == TX_SUCCESS, "free bytes are returned");
    expect(app_pool_allocate(&pool, &memory, 1000, TX_NO_WAIT) == TX_SUCCESS, "there is room");
    expect(app_pool_info_get(&pool, &available, &least, &largest) == TX_SUCCESS, "a pool reports its state");
    expect(all - available >= 1000 && app_statistics(pool.heap).largest_free == largest, "free bytes and the walk");
    app_pool_release(&pool, memory);
    app_pool_info_get(&pool, &available, &least, NULL);
    expect(available == all && least < available, "the least that was ever free");
}

static void give_later(ULONG unused)
{
    (void)unused;
    tx_thread_sleep(2 * TICKS);
    app_pool_release(&pool, held);
}

static void test_random_calls(void)
{
    static UCHAR *objects[OBJECTS];
    static ULONG sizes[OBJECTS];
    ULONG state = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        state = (state * 1664525u + 1013904223u) & 0xffffffffu;
        const unsigned i = (state >> 8) % OBJECTS;
        for (ULONG k = 0; k < sizes[i]; k++) {
            if (objects[i][k] != (UCHAR)i) {
                expect(0, "an object keeps its bytes");
                break;
            }
        }
        if (objects[i] != NULL) {
            app_pool_release(&pool, objects[i]);
        }
        VOID *memory;
        sizes[i] = 1u + (state >> 16) % 200u;
        expect(app_pool_allocate(&pool, &memory, sizes[i], TX_NO_WAIT) == TX_SUCCESS, "there is room");
        expect((uintptr_t)memory % APP_ALIGNMENT == 0, "an object is aligned");
        objects[i] = memory;
        memset(memory, (int)i, sizes[i]);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i] != NULL) {
            app_pool_release(&pool, objects[i]);
        }
    }
    expect(app_check(pool.heap) == 0 && app_statistics(pool.heap).used_blocks == 0, "all is given back");
}

/* ThreadX's own names. */
static void test_byte_pools(void)
{
    static TX_BYTE_POOL one, two;
    static _Alignas(APP_ARENA_ALIGNMENT) UCHAR first[ARENA / 2], second[ARENA / 2];
    ULONG available = 0, all = 0, fragments = 0, waiting = 1;
    CHAR *name = NULL;
    TX_BYTE_POOL *next = NULL;
    VOID *memory = NULL, *other = NULL;
    expect(tx_byte_pool_create(&one, "one", first, sizeof first) == TX_SUCCESS, "a byte pool is made");
    expect(tx_byte_pool_create(&two, "two", second, sizeof second) == TX_SUCCESS, "and another");
    expect(tx_byte_allocate(&one, &memory, 1000, TX_NO_WAIT) == TX_SUCCESS, "memory of the first");
    expect(tx_byte_allocate(&two, &other, 1000, TX_NO_WAIT) == TX_SUCCESS, "and of the second");
    expect((UCHAR *)memory > first && (UCHAR *)memory < first + sizeof first, "lies in the first");
    tx_byte_pool_info_get(&two, &name, &available, &fragments, NULL, &waiting, &next);
    expect(name[0] == 't' && available < ARENA / 2 - 1000 && fragments == 1 && waiting == 0,
           "a pool reports its state");
    expect(tx_byte_release(memory) == TX_SUCCESS && tx_byte_release(other) == TX_SUCCESS, "each finds its pool");
    expect(tx_byte_release(&failures) == TX_PTR_ERROR && tx_byte_release(NULL) == TX_PTR_ERROR, "or none");
    tx_byte_pool_info_get(&two, NULL, &all, NULL, NULL, NULL, NULL);
    expect(all >= available + 1000 && app_statistics(one.pool.heap).used_blocks == 0, "all is given back");
    expect(tx_byte_pool_prioritize(&two) == TX_SUCCESS, "whose turn it is");
    expect(tx_byte_pool_delete(&two) == TX_SUCCESS && tx_byte_pool_delete(&two) == TX_POOL_ERROR, "it is deleted");
    expect(tx_byte_release(other) == TX_PTR_ERROR, "and its memory belongs to no pool");
    tx_byte_pool_delete(&one);
}

static void run(ULONG unused)
{
    (void)unused;
    test_byte_pools();
    test_waiting();
    test_terminated_waiter();
    test_errors();
    test_info();
    test_random_calls();
    expect(app_pool_delete(&pool) == TX_SUCCESS, "the pool is deleted");
    app_threadx_say(failures ? "app_threadx: FAILED" : "app_threadx: ok");
}

void tx_application_define(void *unused)
{
    (void)unused;
    expect(app_pool_create(&pool, "small", arena, 8) == TX_SIZE_ERROR, "an arena that is too small is rejected");
    expect(app_pool_create(&pool, "pool", arena, sizeof arena) == TX_SUCCESS, "a pool is made");
    tx_thread_create(&giver, "giver", give_later, 0, giver_stack, STACK, 5, 5, TX_NO_TIME_SLICE, TX_DONT_START);
    tx_thread_create(&waiter, "waiter", wait_for_ever, 0, waiter_stack, STACK, 3, 3, TX_NO_TIME_SLICE, TX_DONT_START);
    tx_thread_create(&tester, "tester", run, 0, tester_stack, STACK, 4, 4, TX_NO_TIME_SLICE, TX_AUTO_START);
}
