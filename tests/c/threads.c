/* threads.c: several threads on one generated heap, with the prefix app.
 *
 *     threads stress    each allocates, resizes and frees at random, and frees what others allocated
 *     threads forks     a hundred forks meanwhile; each child checks the heap and goes on
 *     threads resizes   one thread resizes and replaces a thousand objects, and the heap does not grow
 *     threads refusals  all is filled and freed, and half of it is served again, by each function that allocates
 *
 * After the last thread has ended nothing may be in use. Built with -fsanitize=thread, races are reported, too. CACHED
 * says that the heap has caches of threads, of at most CACHED bytes each.
 */
#include "app_heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, OBJECTS = 200, FORKS = 100, EXCHANGES = 64 };

#ifndef ARENA_BYTES
#define ARENA_BYTES (1 << 20)
#endif
static _Alignas(64) unsigned char arena[ARENA_BYTES];
static struct app_heap *heap;
static atomic_int stop;
static _Atomic(unsigned char *) exchanged[EXCHANGES]; /* objects on their way from one thread to another */

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "FAILED: %s\n", what);
        _exit(1);
    }
}

struct object {
    unsigned char *bytes;
    size_t size;
};

static void fill(unsigned char *bytes, size_t size)
{
    memset(bytes, (int)(size & 0xffu), size);
    if (size >= sizeof size) {
        memcpy(bytes, &size, sizeof size);
    }
}

static void release(unsigned char *bytes)
{
    size_t size;
    memcpy(&size, bytes, sizeof size);
    for (size_t i = sizeof size; i < size; i++) {
        expect(bytes[i] == (size & 0xffu), "an object keeps its bytes");
    }
    app_free(heap, bytes);
}

static size_t random_size(unsigned *seed)
{
    return sizeof(size_t) + (size_t)(rand_r(seed) % (rand_r(seed) % 8 ? 200 : 3000));
}

static void step(unsigned char **objects, unsigned *seed)
{
    unsigned char **mine = &objects[rand_r(seed) % OBJECTS];
    const size_t size = random_size(seed);
    if (*mine == NULL) {
        *mine = rand_r(seed) % 16 ? app_malloc(heap, size) : app_calloc(heap, 1, size);
    } else if (rand_r(seed) % 8 == 0) {
        unsigned char *moved = app_realloc(heap, *mine, size);
        if (moved == NULL) {
            return;
        }
        *mine = moved;
    } else if (rand_r(seed) % 4 == 0) {
        *mine = atomic_exchange(&exchanged[rand_r(seed) % EXCHANGES], *mine);
        return;
    } else {
        release(*mine);
        *mine = NULL;
        return;
    }
    if (*mine) {
        expect(app_usable_size(heap, *mine) >= size, "an object is large enough");
        fill(*mine, size);
    }
}

static void release_all(unsigned char **objects)
{
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i]) {
            release(objects[i]);
        }
    }
}

static void *run(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    unsigned char *objects[OBJECTS] = {0};
    for (int i = 0; i < 20000 || (argument != NULL && !atomic_load(&stop)); i++) {
        step(objects, &seed);
        if (i % 5000 == 0) {
            expect(app_check(heap) == 0, "the heap's invariants hold");
#ifdef CACHED
            expect(app_cached_bytes(heap) <= app_statistics(heap).peak, "caches and depot hold what the heap covered");
#endif
        }
    }
    release_all(objects);
    return NULL;
}

/* What a child does: check, allocate, and come to the same end as the parent. */
static void child(void)
{
    unsigned seed = 7;
    unsigned char *objects[OBJECTS] = {0};
    expect(app_check(heap) == 0, "the heap's invariants hold in a child");
    for (int i = 0; i < 2000; i++) {
        step(objects, &seed);
    }
    release_all(objects);
    expect(app_check(heap) == 0, "the heap's invariants hold in a child that allocated");
#ifdef CACHED
    app_release_thread(heap);
    expect(app_cached_bytes(heap) == 0, "caches of threads that are gone hold nothing");
#endif
    _exit(0);
}

static void fork_often(void)
{
    for (int i = 0; i < FORKS; i++) {
        unsigned char *mine = app_malloc(heap, 100);
        const pid_t pid = fork();
        expect(pid >= 0, "fork");
        if (pid == 0) {
            alarm(20); /* a lock that is never released would be waited for */
            child();
        }
        app_free(heap, mine);
        int status = 0;
        expect(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child survives");
    }
}

/* Objects of up to 128 bytes, a third of them freed and asked for again, the others resized: what the heap covers
 * after 200,000 calls is what it covered after 20,000, but for an eighth. */
static void resize_often(void)
{
    static void *objects[1000];
    uint32_t state = 1, early = 0;
    for (int call = 0; call < 200000; call++) {
        state = state * 1664525u + 1013904223u;
        void **one = &objects[(state >> 8) % 1000u];
        state = state * 1664525u + 1013904223u;
        const size_t size = (state >> 8) % 128u + 1u;
        if ((state >> 24) % 3u == 0) {
            app_free(heap, *one);
            *one = app_malloc(heap, size);
        } else {
            *one = app_realloc(heap, *one, size);
        }
        expect(*one != NULL, "what was freed is served again");
        early = call == 20000 ? app_statistics(heap).peak : early;
    }
    const uint32_t late = app_statistics(heap).peak;
    printf("%lu bytes after 20,000 calls, %lu after 200,000\n", (unsigned long)early, (unsigned long)late);
    fflush(stdout);
    expect(late - early <= early / 8u, "the heap does not grow while as much is in use");
    for (int i = 0; i < 1000; i++) {
        app_free(heap, objects[i]);
    }
}

/* Takes all that there is in objects of `size` bytes, which are freed then. */
static void *fill_and_free(void *size)
{
    void *first = NULL;
    void **one;
    while ((one = app_malloc(heap, (size_t)(uintptr_t)size)) != NULL) {
        *one = first;
        first = one;
    }
    while (first) {
        one = first;
        first = *one;
        app_free(heap, one);
    }
    return NULL;
}

static void refuse(void)
{
    static const size_t sizes[] = {24, 100, 700, 1500};
    const size_t half = sizeof arena / 2u;
    for (int i = 0; i < 4 * 5; i++) {
        void *size = (void *)(uintptr_t)sizes[i % 4];
        void *served = NULL;
        (void)fill_and_free(size);
        const uint32_t refused = app_statistics(heap).refused;
        if (i / 4 == 0) {
            served = app_malloc(heap, half);
        } else if (i / 4 == 1) {
            served = app_calloc(heap, 2, half / 2u);
        } else if (i / 4 == 2) {
            served = app_realloc(heap, app_malloc(heap, 40), half);
        } else if (i / 4 == 3) {
            served = app_aligned_alloc(heap, 64, half);
        } else { /* freed by a thread that has ended */
            pthread_t thread;
            app_free(heap, app_malloc(heap, 3000));
            expect(pthread_create(&thread, NULL, fill_and_free, size) == 0, "pthread_create");
            expect(pthread_join(thread, NULL) == 0, "pthread_join");
            served = app_malloc(heap, half);
        }
        expect(served != NULL, "half of what was freed is served in one piece");
        expect(i / 4 == 4 || app_statistics(heap).refused == refused, "what is served in the end was not refused");
        app_free(heap, served);
    }
    expect(app_malloc(heap, 2u * half) == NULL, "what is not there is refused");
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    heap = app_init(arena, sizeof arena);
    expect(heap != NULL, "the arena is accepted");
    const int alone = argc > 1 && (strcmp(argv[1], "resizes") == 0 || strcmp(argv[1], "refusals") == 0);
    for (uintptr_t i = 0; i < THREADS && !alone; i++) {
        expect(pthread_create(&threads[i], NULL, run, (void *)(i + 1u)) == 0, "pthread_create");
    }
    if (argc > 1 && strcmp(argv[1], "forks") == 0) {
        fork_often();
    } else if (alone) {
        (strcmp(argv[1], "resizes") == 0 ? resize_often : refuse)();
    } else {
        (void)run(NULL);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS && !alone; i++) {
        expect(pthread_join(threads[i], NULL) == 0, "pthread_join");
    }
    for (int i = 0; i < EXCHANGES; i++) {
        unsigned char *left = atomic_load(&exchanged[i]);
        if (left) {
            release(left);
        }
    }
#ifdef CACHED
    app_release_thread(heap);
    expect(app_cached_bytes(heap) == 0, "threads that end give back their caches");
#endif
    expect(app_check(heap) == 0, "the heap's invariants hold at the end");
    const struct app_statistics stats = app_statistics(heap);
    expect(stats.used == 0 && stats.used_blocks == 0, "nothing is in use once all threads have ended");
    printf("peak %lu, refused %lu\n", (unsigned long)stats.peak, (unsigned long)stats.refused);
    return 0;
}
