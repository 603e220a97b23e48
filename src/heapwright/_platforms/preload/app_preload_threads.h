/* app_preload_threads.h: the heap of app_preload.c, the mutex that guards it, and what each thread keeps.
 *
 * A call enters and leaves. One that finds its thread in another, which a signal interrupted, is served from `spare`,
 * and what it frees waits until the thread's next call.
 */
#ifndef APP_PRELOAD_THREADS_H
#define APP_PRELOAD_THREADS_H

#include "app_heap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Address space that the heap may grow into. Only pages that it has touched take memory. */
#ifndef APP_RESERVE_BYTES
#define APP_RESERVE_BYTES ((size_t)0xffffffff)
#endif

/* For signal handlers that interrupt malloc; never used twice. */
#ifndef APP_SPARE_BYTES
#define APP_SPARE_BYTES ((size_t)1 << 20)
#endif

/* Bytes freed after which free pages are given back to the kernel; 0: never. */
#ifndef APP_TRIM_BYTES
#define APP_TRIM_BYTES ((size_t)8 << 20)
#endif

/* Smallest free block of which pages are given back: to take them again costs a fault a page. */
#ifndef APP_TRIM_BLOCK
#define APP_TRIM_BLOCK ((size_t)16 << 10)
#endif

enum { LINE = 64, PAGE = 4096, LEAST_RESERVE = 1 << 20 };

#define EXPORT __attribute__((visibility("default")))
#define COLD __attribute__((cold, noinline))
#define NOINLINE __attribute__((noinline))
#define FLAT __attribute__((flatten))

/* What a thread does: nothing, and it has a cache; nothing, and its next call has more to do than a cache can; a call.
 */
enum { OUTSIDE, BEYOND, INSIDE };

/* What all calls read, and what those that have to wait write, in lines of their own. */
static _Alignas(LINE) struct app_heap *heap;
static size_t heap_bytes;
static _Alignas(LINE) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static size_t served, freed; /* calls of threads that have ended */
static pthread_key_t ends;   /* its destructor runs at a thread's end */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Alignas(PAGE) unsigned char spare[APP_SPARE_BYTES];
static atomic_size_t spare_used;

/* ---- the heap -----------------------------------------------------------------------------------------------------
 */

static uintptr_t lock(void);
static void unlock(void);
#ifdef APP_CACHES
static inline struct app_thread *my_cache(void);
#endif

#define APP_LOCK(heap) ((void)(heap), lock())
#define APP_UNLOCK(heap, key) ((void)(heap), (void)(key), unlock())
#define APP_THREAD(heap) ((void)(heap), my_cache())
#include "app_heap.c"

struct mine {
    volatile sig_atomic_t state, next_state; /* now, and after the call that it is in */
    volatile sig_atomic_t holds;             /* the mutex, for longer than a call of the heap */
    int has_begun;
    size_t served, freed; /* calls */
#ifdef APP_CACHES
    struct app_thread cache;
#endif
    _Atomic(void *) deferred;    /* blocks to be freed, linked through their first bytes */
    struct mine *next, **before; /* threads that have called */
};

static __thread struct mine mine = {.state = BEYOND, .next_state = BEYOND};
static struct mine *threads; /* all live threads */

static uintptr_t lock(void)
{
    if (!mine.holds) {
        pthread_mutex_lock(&mutex);
    }
    return 0;
}

static void unlock(void)
{
    if (!mine.holds) {
        pthread_mutex_unlock(&mutex);
    }
}

#ifdef APP_CACHES
static inline struct app_thread *my_cache(void)
{
    return &mine.cache;
}

/* Where the thread has a cache, it is its heap's. */
static inline struct app_heap *my_heap(void)
{
    return mine.cache.heap;
}

static int has_cache(void)
{
    return mine.cache.heap == heap;
}
#else /* each call of a heap without caches takes the mutex */
static inline struct app_heap *my_heap(void)
{
    return heap;
}

static int has_cache(void)
{
    return 0;
}

static inline void *app_take_cached(struct app_heap *own, size_t size)
{
    (void)own;
    (void)size;
    return NULL;
}

static inline int app_keep_cached(struct app_heap *own, void *pointer)
{
    (void)own;
    (void)pointer;
    return 0;
}
#endif

/* Reserves what there is, as a limit (ulimit -v) or a strict kernel may not grant it all. */
static void make_heap(void)
{
    const int before = errno;
    for (size_t bytes = APP_RESERVE_BYTES & ~(size_t)(PAGE - 1); bytes >= LEAST_RESERVE && heap == NULL; bytes /= 2) {
        bytes &= ~(size_t)(PAGE - 1);
        void *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena != MAP_FAILED) {
            heap = app_init(arena, bytes);
            heap_bytes = bytes;
        }
    }
    errno = before;
}

static int is_spare(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)spare < sizeof spare;
}

/* The dynamic loader's own blocks, from before it knew this malloc, belong to no heap: frees of them are ignored. */
static int is_ours(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)heap < heap_bytes;
}

/* ---- memory given back --------------------------------------------------------------------------------------------
 *
 * Whole pages of large free blocks, and what lies above the blocks, go back to the kernel, which gives them out again
 * as zeros when they are written to. A pass looks at all blocks, under the mutex. It begins when APP_TRIM_BYTES were
 * freed since the last one, not within a tenth of a second, and not within twenty times what the last one took; at a
 * thread's end when an eighth of the heap was freed, too, not within four times that.
 */

enum {
    EDGE = 64, /* bytes at both ends of a free block that may hold its header, links and tags */
    REST = 20, /* times what a pass took */
    END_SHARE = 8,
    LEAST_REST_NS = 100000000
};

static atomic_size_t freed_bytes; /* since the last pass, about */
static _Atomic(int64_t) last_pass_ns, pass_took_ns;

static int64_t now_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Gives back the whole pages between two offsets of the arena; returns their bytes. */
static size_t give_back(size_t from, size_t to)
{
    const uintptr_t first = ((uintptr_t)heap + from + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    const uintptr_t end = ((uintptr_t)heap + to) & ~(uintptr_t)(PAGE - 1);
    if (end <= first || madvise((void *)first, end - first, MADV_DONTNEED) != 0) {
        return 0;
    }
    return end - first;
}

/* The large free blocks. Under the mutex. */
static size_t give_back_blocks(void)
{
    size_t bytes = 0;
    struct app_block block = {0, 0, 0, 0, 0};
    while (app_next_block(heap, &block)) {
        if (block.state == APP_BLOCK_FREE && block.size >= APP_TRIM_BLOCK) {
            bytes += give_back((size_t)block.offset + EDGE, (size_t)block.offset + block.size - EDGE);
        }
    }
    return bytes;
}

/* One pass; returns the bytes given back, pages that were not in memory included. */
static size_t give_back_free(void)
{
    const int before = errno;
    const sig_atomic_t held = mine.holds;
    (void)lock();
    const int64_t start = now_ns();
    mine.holds = 1; /* nothing may change meanwhile */
    atomic_store(&freed_bytes, 0);
#ifdef APP_CACHES
    while (app_depot_yield(heap)) { /* what threads share keeps the free blocks around it apart */
    }
#endif
    app_flush(heap); /* so do quick lists; and the walk would search one for each used block */
    size_t bytes = give_back_blocks();
#if defined(APP_TOP_AT) && defined(APP_HIGH_AT)
    bytes += give_back((size_t)app_load4(heap, APP_TOP_AT) + EDGE, app_load4(heap, APP_HIGH_AT));
#endif
    const int64_t end = now_ns();
    atomic_store(&pass_took_ns, end - start);
    atomic_store(&last_pass_ns, end);
    mine.holds = held;
    unlock();
    errno = before;
    return bytes;
}

/* A pass, unless another thread begins one or the last one is not long enough ago. */
static COLD void give_back_after(int64_t times, int64_t least)
{
    int64_t last = atomic_load(&last_pass_ns);
    const int64_t rest = times * atomic_load(&pass_took_ns);
    const int64_t now = now_ns();
    if (now - last >= (rest > least ? rest : least) && atomic_compare_exchange_strong(&last_pass_ns, &last, now)) {
        (void)give_back_free();
    }
}

/* After a free of that many bytes that went to the heap. */
static inline void note_freed(size_t bytes)
{
    if (APP_TRIM_BYTES != 0 &&
        atomic_fetch_add_explicit(&freed_bytes, bytes, memory_order_relaxed) + bytes >= APP_TRIM_BYTES) {
        give_back_after(REST, LEAST_REST_NS);
    }
}

/* At a thread's end, when its cache was given back. */
static void end_freeing(void)
{
    size_t most = APP_TRIM_BYTES;
#ifdef APP_HIGH_AT
    if (most < app_load4(heap, APP_HIGH_AT) / END_SHARE) {
        most = app_load4(heap, APP_HIGH_AT) / END_SHARE;
    }
#endif
    if (APP_TRIM_BYTES != 0 && atomic_load(&freed_bytes) >= most) {
        give_back_after(0, 0);
    }
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

static COLD void free_deferred(void)
{
    mine.next_state = BEYOND;
    void *block = atomic_exchange(&mine.deferred, NULL);
    while (block != NULL) {
        void *next;
        memcpy(&next, block, sizeof next);
        app_free(heap, block);
        mine.freed++;
        block = next;
    }
}

/* Under the mutex. */
static void forget(struct mine *thread)
{
    served += thread->served;
    freed += thread->freed;
    thread->served = thread->freed = 0;
    if (thread->before != NULL) {
        *thread->before = thread->next;
        if (thread->next != NULL) {
            thread->next->before = thread->before;
        }
        thread->before = NULL;
    }
}

/* The calls that a thread makes while it ends, for the C library, have no cache. */
static void thread_ends(void *thread)
{
    mine.state = INSIDE;
    free_deferred();
#ifdef APP_CACHES
    static unsigned char nowhere;
    app_release_thread(heap);
    mine.cache.heap = (struct app_heap *)(void *)&nowhere;
    mine.next_state = BEYOND;
#endif
    end_freeing();
    (void)lock();
    forget(thread);
    unlock();
    mine.state = mine.next_state;
}

static void begin_threads(void)
{
    pthread_key_create(&ends, thread_ends);
}

/* A thread's first call: 0 where there is no heap. */
static COLD int thread_begins(void)
{
    (void)lock();
    if (heap == NULL) {
        make_heap();
    }
    const int is_there = heap != NULL;
    if (is_there) {
        mine.next = threads;
        mine.before = &threads;
        if (threads != NULL) {
            threads->before = &mine.next;
        }
        threads = &mine;
    }
    unlock();
    if (is_there) {
        pthread_once(&once, begin_threads);
        pthread_setspecific(ends, &mine);
        mine.has_begun = 1;
    }
    return is_there;
}

enum { REFUSED = -1, SPARE, ENTERED };

static COLD int enter_beyond(void)
{
    if (mine.state == INSIDE) {
        return SPARE;
    }
    mine.state = INSIDE;
    if (!mine.has_begun && !thread_begins()) {
        mine.state = BEYOND;
        return REFUSED;
    }
    free_deferred();
    return ENTERED;
}

/* Begins a call: SPARE where this thread is in one already, which a signal handler has interrupted; REFUSED where there
 * is no heap. */
static inline int enter(void)
{
    if (__builtin_expect(mine.state != OUTSIDE, 0)) {
        return enter_beyond();
    }
    mine.state = INSIDE;
    return ENTERED;
}

static inline void leave(void)
{
    mine.state = mine.next_state;
}

/* After a call of the heap under the mutex, by which the thread may have got a cache. */
static void leave_beyond(void)
{
    if (has_cache() && atomic_load_explicit(&mine.deferred, memory_order_relaxed) == NULL) {
        mine.next_state = OUTSIDE;
    }
    leave();
}

static void *spare_alloc(size_t alignment, size_t size)
{
    if (size >= sizeof spare || alignment >= sizeof spare) {
        return NULL;
    }
    const size_t most = sizeof(size_t) + alignment + size;
    const size_t at = atomic_fetch_add(&spare_used, most);
    if (at >= sizeof spare || most > sizeof spare - at) {
        return NULL;
    }
    const uintptr_t payload = ((uintptr_t)spare + at + sizeof(size_t) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    memcpy((void *)(payload - sizeof(size_t)), &size, sizeof size);
    return (void *)payload;
}

static size_t spare_size(const void *pointer)
{
    size_t size;
    memcpy(&size, (const unsigned char *)pointer - sizeof size, sizeof size);
    return size;
}

/* In a signal handler that has interrupted a call. */
static COLD void defer(void *pointer)
{
    if (app_usable_size(heap, pointer) < sizeof(void *)) {
        return; /* no room for a link: lost */
    }
    void *next = atomic_load(&mine.deferred);
    do {
        memcpy(pointer, &next, sizeof next);
    } while (!atomic_compare_exchange_weak(&mine.deferred, &next, pointer));
    mine.next_state = BEYOND;
}

/* Between these two the thread that forks holds the mutex, so that the child's heap is whole. */
static void before_fork(void)
{
    if (mine.state != INSIDE) {
        (void)lock();
        mine.holds = 1;
    }
}

static void after_fork(void)
{
    if (mine.holds) {
        mine.holds = 0;
        unlock();
    }
}

/* The other threads are gone. */
static void after_fork_in_child(void)
{
    if (!mine.holds) {
        return;
    }
    for (struct mine *thread = threads, *next; thread != NULL; thread = next) {
        next = thread->next;
        if (thread != &mine) {
            forget(thread);
        }
    }
#ifdef APP_CACHES
    if (heap != NULL) {
        app_after_fork(heap);
    }
#endif
    after_fork();
}

#endif
