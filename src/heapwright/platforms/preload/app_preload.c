/* app_preload.c: app_heap as the malloc of programs that are not compiled anew (LD_PRELOAD), for Linux with glibc.
 *
 * These are the functions that glibc's manual (2.36, section "Replacing malloc") asks of a replacement, and those that
 * newer programs call besides. C++'s operators new and delete, the aligned ones included, end in them.
 *
 * app_heap.c is part of this file, so that malloc is one function and not two. One mutex guards the heap; where the
 * heap has caches of threads (APP_CACHES), most calls find what they need in their thread's, and take none. A signal
 * handler may interrupt a thread in a call; what the handler asks for then comes from `spare`, and what it gives back
 * waits for the thread's next call. A handler may call malloc, although POSIX does not promise that.
 */
#define _GNU_SOURCE
#include "app_heap.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space that the heap may grow into. Only pages that it has touched take memory. */
#ifndef APP_RESERVE_BYTES
#define APP_RESERVE_BYTES ((size_t)0xffffffff)
#endif

/* For signal handlers that interrupt malloc; never used twice. */
#ifndef APP_SPARE_BYTES
#define APP_SPARE_BYTES ((size_t)1 << 20)
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
static pthread_key_t ends;   /* its destructor is told of a thread's end */
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
static struct mine *threads; /* those that live */

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

/* Blocks that the dynamic loader made for itself before it knew this malloc are nobody's: they are left alone. */
static int is_ours(const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)heap < heap_bytes;
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

/* ---- what programs call -------------------------------------------------------------------------------------------
 */

static void *told(void *memory)
{
    if (memory == NULL) {
        errno = ENOMEM;
    }
    return memory;
}

static int is_power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* For an alignment that is a power of two. */
static void *aligned(size_t alignment, size_t size)
{
    if (alignment < APP_ALIGNMENT) {
        alignment = APP_ALIGNMENT;
    }
    const int entered = enter();
    if (entered != ENTERED) {
        return entered == SPARE ? spare_alloc(alignment, size) : NULL;
    }
    void *memory = app_aligned_alloc(heap, alignment, size);
    mine.served += memory != NULL;
    leave();
    return memory;
}

static COLD void *malloc_outside(int entered, size_t size)
{
    return told(entered == SPARE ? spare_alloc(APP_ALIGNMENT, size) : NULL);
}

static NOINLINE void *malloc_beyond(size_t size)
{
    const int entered = enter();
    if (entered != ENTERED) {
        return malloc_outside(entered, size);
    }
    void *memory = app_malloc(heap, size);
    mine.served += memory != NULL;
    leave_beyond();
    return told(memory);
}

EXPORT FLAT void *malloc(size_t size)
{
    if (__builtin_expect(mine.state == OUTSIDE, 1)) {
        mine.state = INSIDE;
        void *memory = app_take_cached(my_heap(), size);
        leave();
        if (__builtin_expect(memory != NULL, 1)) {
            mine.served++;
            return memory;
        }
    }
    return malloc_beyond(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return told(NULL);
    }
    void *memory = malloc(bytes);
    return memory && !is_spare(memory) ? memset(memory, 0, bytes) : memory; /* the spare's is zero: used once only */
}

static NOINLINE void free_beyond(void *pointer)
{
    if (enter() != ENTERED) {
        defer(pointer);
        return;
    }
    mine.freed++;
    app_free(heap, pointer);
    leave_beyond();
}

EXPORT FLAT void free(void *pointer)
{
    if (__builtin_expect(!is_ours(pointer), 0)) {
        return; /* NULL, too */
    }
    if (__builtin_expect(mine.state == OUTSIDE, 1)) {
        mine.state = INSIDE;
        const int kept = app_keep_cached(my_heap(), pointer);
        leave();
        if (__builtin_expect(kept, 1)) {
            mine.freed++;
            return;
        }
    }
    free_beyond(pointer);
}

EXPORT size_t malloc_usable_size(void *pointer)
{
    if (is_spare(pointer)) {
        return spare_size(pointer);
    }
    if (!is_ours(pointer)) {
        return 0;
    }
    const int entered = enter();
    const size_t bytes = app_usable_size(heap, pointer);
    if (entered == ENTERED) {
        leave();
    }
    return bytes;
}

static void *moved(void *pointer, size_t size)
{
    void *memory = malloc(size);
    if (memory != NULL) {
        const size_t had = malloc_usable_size(pointer);
        memcpy(memory, pointer, had < size ? had : size);
        free(pointer);
    }
    return memory;
}

/* As glibc's: a size of 0 frees. */
EXPORT void *realloc(void *pointer, size_t size)
{
    if (pointer == NULL) {
        return malloc(size);
    }
    if (size == 0) {
        free(pointer);
        return NULL;
    }
    if (!is_ours(pointer) || enter() != ENTERED) {
        return moved(pointer, size);
    }
    void *memory = app_realloc(heap, pointer, size);
    leave();
    return told(memory);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return told(NULL);
    }
    return realloc(pointer, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return told(aligned(alignment, size));
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *) != 0) {
        return EINVAL;
    }
    void *found = aligned(alignment, size);
    if (found == NULL) {
        return ENOMEM;
    }
    *memory = found;
    return 0;
}

/* As glibc's: an alignment is rounded up to a power of two. */
EXPORT void *memalign(size_t alignment, size_t size)
{
    size_t rounded = APP_ALIGNMENT;
    while (rounded < alignment && rounded <= SIZE_MAX / 2) {
        rounded *= 2;
    }
    return told(rounded < alignment ? NULL : aligned(rounded, size));
}

EXPORT void *valloc(size_t size)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > SIZE_MAX - page ? told(NULL) : memalign(page, size ? (size + page - 1) / page * page : page);
}

/* C23 */
EXPORT void free_sized(void *pointer, size_t size)
{
    (void)size;
    free(pointer);
}

EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size)
{
    (void)alignment;
    (void)size;
    free(pointer);
}

/* ---- what programs ask of the heap --------------------------------------------------------------------------------
 */

/* All blocks and no more: what the heap has not reached yet takes no memory, and nothing is mapped apart. Zeros in a
 * signal handler that has interrupted a call. O(blocks). */
EXPORT struct mallinfo2 mallinfo2(void)
{
    struct mallinfo2 told = {0};
    if (enter() != ENTERED) {
        return told;
    }
    struct app_block block = {0, 0, 0, 0, 0};
    (void)lock();
    const sig_atomic_t held = mine.holds;
    mine.holds = 1; /* nothing may change during a walk */
    while (app_next_block(heap, &block)) {
        const int is_used = block.state == APP_BLOCK_USED;
        told.arena += block.size;
        told.uordblks += is_used ? block.size : 0;
        told.fordblks += is_used ? 0 : block.size;
        told.ordblks += !is_used;
    }
    mine.holds = held;
    unlock();
    leave();
    return told;
}

/* The same in ints, which the heap's 4 GB may wrap: why glibc has the other one. */
EXPORT struct mallinfo mallinfo(void)
{
    const struct mallinfo2 wide = mallinfo2();
    struct mallinfo told = {0};
    told.arena = (int)wide.arena;
    told.ordblks = (int)wide.ordblks;
    told.uordblks = (int)wide.uordblks;
    told.fordblks = (int)wide.fordblks;
    return told;
}

EXPORT void malloc_stats(void)
{
    const struct mallinfo2 told = mallinfo2();
    fprintf(stderr, "system bytes     = %10zu\nin use bytes     = %10zu\n", told.arena, told.uordblks);
}

/* The totals of glibc's document, which it has at its end. */
EXPORT int malloc_info(int options, FILE *stream)
{
    if (options != 0) {
        return EINVAL;
    }
    const struct mallinfo2 told = mallinfo2();
    const int printed = fprintf(stream,
                                "<malloc version=\"1\">\n<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
                                "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n",
                                told.ordblks, told.fordblks, told.arena);
    return printed < 0 ? -1 : 0;
}

/* Nothing was given back to the system, and nothing can be set. */
EXPORT int malloc_trim(size_t pad)
{
    (void)pad;
    return 0;
}

EXPORT int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 0;
}

/* ---- start and end ------------------------------------------------------------------------------------------------
 */

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* With APP_HEAP_TELL=FILE in the environment each process adds a line to FILE when it ends. */
__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("APP_HEAP_TELL");
    if (path == NULL || enter() == SPARE) {
        return;
    }
    struct app_statistics now = {0, 0, 0, 0, 0, 0, 0};
    if (heap) {
        now = app_statistics(heap);
    }
    (void)lock();
    size_t told_served = served, told_freed = freed;
    for (const struct mine *thread = threads; thread != NULL; thread = thread->next) {
        told_served += thread->served;
        told_freed += thread->freed;
    }
    unlock();
    char line[256];
    const int length = snprintf(line, sizeof line,
                                "%s[%ld]: %zu served, %zu freed, %u refused, %u bytes at most, %u in %u blocks left\n",
                                program_invocation_short_name, (long)getpid(), told_served, told_freed, now.refused,
                                now.peak, now.used, now.used_blocks);
    leave();
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        (void)!write(file, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
        close(file);
    }
}
