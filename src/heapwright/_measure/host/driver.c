/* driver.c: replays a trace as fast as it can, for CPU time.
 *
 *     driver CALLS PASSES [ARENA_BYTES [POLICY]]
 *
 * CALLS is what heapwright._measure.host.calls writes: number of calls and slots, then one record a call, and weights,
 * which are not needed here. Each pass prints the nanoseconds of CPU time that the calls took. Between passes the heap
 * is initialised again (generated code, DRIVE_GENERATED; the core with its policy read at run time, DRIVE_POLICY), or
 * everything is freed (the C library's heap, or the one preloaded in its place). Calls of refused objects are skipped,
 * as a replay does. With -DTOUCH each object is written once, as a program would; with -DTELL the heap's peak and
 * number of refused requests after the last pass follow. With -DDRIVE_HANDLES=N generated code is one that moves
 * objects; their references, N pointers each, lie ahead of the arena. With -DTICKS a pass prints no line but, as
 * uint32, the ticks of the processor's time-stamp counter in each call. With -DTHREADS=N, N threads make all calls
 * at the same time, each for objects of its own, on the one heap; the nanoseconds are those of one thread on average.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(DRIVE_HANDLES)
#include "timed_heap.h"
static struct timed_heap *heap;
#define STATISTICS() timed_statistics(heap)
static void **references; /* the end of all references, and the start of the arena */
#define REFERENCE(slot) (references - ((slot) + 1u) * DRIVE_HANDLES)
#define POINTER(slot) timed_handle_pointer(heap, REFERENCE(slot))
#define RESET(arena, bytes) (references = (void **)(arena), heap = timed_init(arena, bytes))
#define MALLOC(slot, n) (timed_handle_alloc(heap, REFERENCE(slot), n) ? POINTER(slot) : NULL)
#define REALLOC(slot, p, n) (timed_handle_realloc(heap, REFERENCE(slot), n) ? POINTER(slot) : NULL)
#define ALIGNED(slot, a, n) ((a) <= TIMED_ALIGNMENT ? MALLOC(slot, n) : NULL)
#define FREE(slot, p) timed_handle_free(heap, REFERENCE(slot))
#elif defined(DRIVE_GENERATED)
#include "timed_heap.h"
static struct timed_heap *heap;
#define RESET(arena, bytes) (heap = timed_init(arena, bytes))
#define MALLOC(slot, n) timed_malloc(heap, n)
#define REALLOC(slot, p, n) timed_realloc(heap, p, n)
#define ALIGNED(slot, a, n) timed_aligned_alloc(heap, a, n)
#define FREE(slot, p) timed_free(heap, p)
#define STATISTICS() timed_statistics(heap)
#elif defined(DRIVE_POLICY)
#include "check.h"
static struct hw_policy policy;
static struct hw_heap *heap;
#define RESET(arena, bytes) (heap = hw_init(&policy, arena, bytes))
#define MALLOC(slot, n) hw_malloc(&policy, heap, n)
#define REALLOC(slot, p, n) hw_realloc(&policy, heap, p, n)
#define ALIGNED(slot, a, n) hw_aligned_alloc(&policy, heap, a, n)
#define FREE(slot, p) hw_free(&policy, heap, p)
#define STATISTICS() hw_statistics(&policy, heap)
#else
static int heap = 1;
#define RESET(arena, bytes) ((void)(arena), (void)(bytes))
#define MALLOC(slot, n) malloc(n)
#define REALLOC(slot, p, n) realloc(p, n)
#define ALIGNED(slot, a, n) aligned_alloc(a, n)
#define FREE(slot, p) free(p)
#endif

struct call {
    uint32_t op_and_slot; /* operation in the upper 2 bits: malloc, calloc, realloc, free */
    uint32_t size;
    uint32_t align;
};

static void *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    *bytes = (size_t)ftell(file);
    rewind(file);
    void *content = mmap(NULL, *bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (content == MAP_FAILED || fread(content, 1, *bytes, file) != *bytes) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return content;
}

/* An arena aligned to a power of two of at least its size, so that aligned requests find the addresses of a replay, and
 * `front` bytes ahead of it, a multiple of a page. */
static void *reserve(size_t front, size_t bytes)
{
    size_t alignment = 4096;
    while (alignment < bytes) {
        alignment *= 2u;
    }
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char *memory = mmap(NULL, front + bytes + alignment, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) {
        perror("arena");
        exit(1);
    }
    memory += front;
    return memory + (alignment - (uintptr_t)memory % alignment) % alignment;
}

#ifdef THREADS
#define CPU_CLOCK CLOCK_THREAD_CPUTIME_ID
#else
#define CPU_CLOCK CLOCK_PROCESS_CPUTIME_ID
#endif

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CPU_CLOCK, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

#ifdef TICKS
#include <x86intrin.h>

static uint32_t *ticks_of_calls;

/* The fences keep calls from being reordered around the counter. */
static uint64_t ticks(void)
{
    _mm_lfence();
    const uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
}

static void count_ticks(uint32_t call, uint64_t start)
{
    ticks_of_calls[call] = (uint32_t)(ticks() - start);
}

/* Takes from each call what counting alone takes at least. */
static void print_pass(uint32_t count, int64_t nanoseconds)
{
    (void)nanoseconds;
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 1000; i++) {
        const uint64_t start = ticks();
        const uint32_t empty = (uint32_t)(ticks() - start);
        least = empty < least ? empty : least;
    }
    for (uint32_t i = 0; i < count; i++) {
        ticks_of_calls[i] -= ticks_of_calls[i] < least ? ticks_of_calls[i] : least;
    }
    fwrite(ticks_of_calls, sizeof *ticks_of_calls, count, stdout);
}
#else
static uint64_t ticks(void)
{
    return 0;
}

static void count_ticks(uint32_t call, uint64_t start)
{
    (void)call;
    (void)start;
}

static void print_pass(uint32_t count, int64_t nanoseconds)
{
    (void)count;
    printf("%lld\n", (long long)nanoseconds);
}
#endif

static void touch(unsigned char *bytes, uint32_t size)
{
#ifdef TOUCH
    if (bytes) {
        memset(bytes, 1, size);
    }
#else
    (void)bytes;
    (void)size;
#endif
}

static void replay(const struct call *calls, uint32_t count, unsigned char **objects)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = calls[i].op_and_slot & 0x3fffffffu;
        const uint32_t op = calls[i].op_and_slot >> 30;
        const uint64_t start = ticks();
        if (op == 3u) {
            FREE(slot, objects[slot]);
            objects[slot] = NULL;
        } else if (op == 2u) {
            unsigned char *moved = objects[slot] ? REALLOC(slot, objects[slot], calls[i].size) : NULL;
            objects[slot] = moved ? moved : objects[slot];
        } else {
            objects[slot] = calls[i].align ? ALIGNED(slot, calls[i].align, calls[i].size) : MALLOC(slot, calls[i].size);
            touch(objects[slot], calls[i].size);
        }
        count_ticks(i, start);
    }
}

#ifdef THREADS
#include <pthread.h>

struct share {
    const struct call *calls;
    uint32_t count;
    unsigned char **objects;
    pthread_barrier_t *start;
    int64_t nanoseconds;
};

static void *replay_share(void *share)
{
    struct share *mine = share;
    pthread_barrier_wait(mine->start);
    const int64_t start = now();
    replay(mine->calls, mine->count, mine->objects);
    mine->nanoseconds = now() - start;
    return NULL;
}

/* `objects` has `slots` places for each thread. */
static int64_t replay_all(const struct call *calls, uint32_t count, unsigned char **objects, uint32_t slots)
{
    struct share shares[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        shares[i] = (struct share){calls, count, objects + i * (size_t)slots, &start, 0};
        if (i > 0 && pthread_create(&threads[i], NULL, replay_share, &shares[i]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
    (void)replay_share(&shares[0]);
    int64_t sum = shares[0].nanoseconds;
    for (uint32_t i = 1; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += shares[i].nanoseconds;
    }
    pthread_barrier_destroy(&start);
    return sum / THREADS;
}
#else
#define THREADS 1
static int64_t replay_all(const struct call *calls, uint32_t count, unsigned char **objects, uint32_t slots)
{
    (void)slots;
    const int64_t start = now();
    replay(calls, count, objects);
    return now() - start;
}
#endif

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: driver CALLS PASSES [ARENA_BYTES [POLICY]]\n");
        return 2;
    }
    size_t bytes;
    const uint32_t *numbers = read_file(argv[1], &bytes);
    const uint32_t count = numbers[0];
    const uint32_t slots = numbers[1];
    const size_t arena_bytes = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
#ifdef DRIVE_HANDLES
    const size_t front = ((slots + 1u) * DRIVE_HANDLES * sizeof(void *) + 4095u) / 4096u * 4096u;
#else
    const size_t front = 0;
#endif
    unsigned char *arena = arena_bytes ? reserve(front, arena_bytes) : NULL;
#ifdef DRIVE_POLICY
    size_t policy_bytes;
    memcpy(&policy, read_file(argv[4], &policy_bytes), sizeof policy);
#endif
    unsigned char **objects = mmap(NULL, (slots * (size_t)THREADS + 1u) * sizeof *objects, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef TICKS
    ticks_of_calls = calloc(count + 1u, sizeof *ticks_of_calls);
#endif
    for (int pass = atoi(argv[2]); pass >= 0; pass--) {
        if (front) {
            memset(arena - front, 0, front); /* what is refused stays NULL */
        }
        RESET(arena, arena_bytes);
        if (!heap) {
            fprintf(stderr, "the arena is too small\n");
            return 1;
        }
        const int64_t nanoseconds = replay_all((const struct call *)(numbers + 2), count, objects, slots);
        if (pass != atoi(argv[2])) { /* the first pass only warms up */
            print_pass(count, nanoseconds);
        }
        for (size_t slot = 0; slot < slots * (size_t)THREADS; slot++) {
            if (arena == NULL) {
                FREE(slot, objects[slot]);
            }
            objects[slot] = NULL;
        }
    }
#ifdef TELL
    printf("%lu %lu\n", (unsigned long)STATISTICS().peak, (unsigned long)STATISTICS().refused);
#endif
    return 0;
}
