/* app_preload.c: app_heap as the malloc of programs that are not compiled anew (LD_PRELOAD), for Linux with glibc.
 *
 * These are the functions that glibc's manual (2.36, section "Replacing malloc") asks of a replacement, and those that
 * newer programs call besides. C++'s operators new and delete, the aligned ones included, end in them.
 *
 * One mutex guards the heap. A signal handler may interrupt a thread that holds it; what the handler asks for then
 * comes from `spare`, and what it gives back waits for the next call. A handler may call malloc, although POSIX does
 * not promise that.
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

enum { PAGE = 4096, LEAST_RESERVE = 1 << 20 };

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct app_heap *heap;
static size_t heap_bytes;
static size_t served, freed; /* calls */

/* Of this thread: whether it is in a call, and whether it holds the mutex because it forks. */
static __thread volatile sig_atomic_t inside, forking;

static _Atomic(void *) deferred; /* blocks to be freed, linked through their first bytes */
static _Alignas(PAGE) unsigned char spare[APP_SPARE_BYTES];
static atomic_size_t spare_used;

/* ---- the arena ----------------------------------------------------------------------------------------------------
 */

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

/* ---- one call at a time -------------------------------------------------------------------------------------------
 */

static void free_deferred(void)
{
    void *block = atomic_exchange(&deferred, NULL);
    while (block != NULL) {
        void *next;
        memcpy(&next, block, sizeof next);
        app_free(heap, block);
        freed++;
        block = next;
    }
}

/* Takes the heap; 0 where this thread is in a call already, which a signal handler has interrupted. */
static int enter(void)
{
    if (inside) {
        return 0;
    }
    inside = 1;
    if (!forking) {
        pthread_mutex_lock(&mutex);
    }
    if (heap == NULL) {
        make_heap();
    }
    if (atomic_load_explicit(&deferred, memory_order_relaxed) != NULL) {
        free_deferred();
    }
    return 1;
}

static void leave(void)
{
    if (!forking) {
        pthread_mutex_unlock(&mutex);
    }
    inside = 0;
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

static void defer(void *pointer)
{
    if (app_usable_size(heap, pointer) < sizeof(void *)) {
        return; /* no room for a link: lost */
    }
    void *next = atomic_load(&deferred);
    do {
        memcpy(pointer, &next, sizeof next);
    } while (!atomic_compare_exchange_weak(&deferred, &next, pointer));
}

/* Between these two the thread that forks holds the mutex, so that the child's heap is whole. Handlers of others may
 * allocate meanwhile. */
static void before_fork(void)
{
    if (!inside) {
        pthread_mutex_lock(&mutex);
        forking = 1;
    }
}

static void after_fork(void)
{
    if (forking) {
        forking = 0;
        pthread_mutex_unlock(&mutex);
    }
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
    if (!enter()) {
        return spare_alloc(alignment, size);
    }
    void *memory = heap ? app_aligned_alloc(heap, alignment, size) : NULL;
    served += memory != NULL;
    leave();
    return memory;
}

EXPORT void *malloc(size_t size)
{
    if (!enter()) {
        return told(spare_alloc(APP_ALIGNMENT, size));
    }
    void *memory = heap ? app_malloc(heap, size) : NULL;
    served += memory != NULL;
    leave();
    return told(memory);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return told(NULL);
    }
    if (!enter()) {
        return told(spare_alloc(APP_ALIGNMENT, bytes)); /* zero: used once only */
    }
    void *memory = heap ? app_malloc(heap, bytes) : NULL;
    served += memory != NULL;
    leave();
    return memory ? memset(memory, 0, bytes) : told(NULL);
}

EXPORT void free(void *pointer)
{
    if (!is_ours(pointer)) {
        return; /* NULL, too */
    }
    if (!enter()) {
        defer(pointer);
        return;
    }
    app_free(heap, pointer);
    freed++;
    leave();
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
    if (entered) {
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
    if (!is_ours(pointer) || !enter()) {
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
    if (!enter()) {
        return told;
    }
    struct app_block block = {0, 0, 0, 0, 0};
    while (heap && app_next_block(heap, &block)) {
        const int is_used = block.state == APP_BLOCK_USED;
        told.arena += block.size;
        told.uordblks += is_used ? block.size : 0;
        told.fordblks += is_used ? 0 : block.size;
        told.ordblks += !is_used;
    }
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
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* With APP_HEAP_TELL=FILE in the environment each process adds a line to FILE when it ends. */
__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("APP_HEAP_TELL");
    if (path == NULL || !enter()) {
        return;
    }
    struct app_statistics now = {0, 0, 0, 0, 0, 0, 0};
    if (heap) {
        now = app_statistics(heap);
    }
    char line[256];
    const int length = snprintf(
        line, sizeof line, "%s[%ld]: %zu served, %zu freed, %u refused, %u bytes at most, %u in %u blocks left\n",
        program_invocation_short_name, (long)getpid(), served, freed, now.refused, now.peak, now.used, now.used_blocks);
    leave();
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        (void)!write(file, line, length < (int)sizeof line ? (size_t)length : sizeof line - 1);
        close(file);
    }
}
