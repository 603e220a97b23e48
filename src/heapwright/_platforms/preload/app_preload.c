/* app_preload.c: app_heap as the malloc of unmodified programs (LD_PRELOAD), for Linux with glibc.
 *
 * The functions that glibc's manual (2.36, section "Replacing malloc") requires of a replacement, and others that newer
 * programs call. C++'s operators new and delete, the aligned ones included, end in them.
 *
 * app_heap.c is part of this file, so that malloc is one function and not two. app_preload_threads.h includes it, and
 * has what each thread keeps. One mutex guards the heap; where the
 * heap has caches of threads (APP_CACHES), most calls find what they need in their thread's, and take none. A signal
 * handler may interrupt a thread in a call; what the handler asks for then comes from `spare`, and what it gives back
 * waits for the thread's next call. A handler may call malloc, although POSIX does not promise that.
 */
#define _GNU_SOURCE
#include "app_preload_threads.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>

/* ---- what programs call -------------------------------------------------------------------------------------------
 */

static void *reported(void *memory)
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
    return reported(entered == SPARE ? spare_alloc(APP_ALIGNMENT, size) : NULL);
}

static NOINLINE void *malloc_beyond(size_t size)
{
    const int entered = enter();
    if (entered != ENTERED) {
        return malloc_outside(entered, size);
    }
    note_freed(0); /* what was freed just before the last pass waits for this one */
    void *memory = app_malloc(heap, size);
    mine.served += memory != NULL;
    leave_beyond();
    return reported(memory);
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
        return reported(NULL);
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
    const size_t bytes = app_usable_size(heap, pointer);
    app_free(heap, pointer);
    note_freed(bytes);
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

static NOINLINE void *resized(void *pointer, size_t size)
{
    if (size == 0) {
        free(pointer);
        return NULL;
    }
    if (!is_ours(pointer) || enter() != ENTERED) {
        return moved(pointer, size);
    }
    void *memory = app_realloc(heap, pointer, size);
    leave();
    return reported(memory);
}

/* As glibc's: a size of 0 frees. */
EXPORT void *realloc(void *pointer, size_t size)
{
    return pointer == NULL ? malloc(size) : resized(pointer, size);
}

EXPORT void *reallocarray(void *pointer, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return reported(NULL);
    }
    return realloc(pointer, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return reported(aligned(alignment, size));
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
    return reported(rounded < alignment ? NULL : aligned(rounded, size));
}

EXPORT void *valloc(size_t size)
{
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return size > SIZE_MAX - page ? reported(NULL) : memalign(page, size ? (size + page - 1) / page * page : page);
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

/* ---- the malloc interface -----------------------------------------------------------------------------------------
 */

/* All blocks and no more: what the heap has not reached yet takes no memory, and nothing is mapped apart. Zeros in a
 * signal handler that has interrupted a call. O(blocks), as the quick lists are flushed first. */
EXPORT struct mallinfo2 mallinfo2(void)
{
    struct mallinfo2 info = {0};
    if (enter() != ENTERED) {
        return info;
    }
    struct app_block block = {0, 0, 0, 0, 0};
    (void)lock();
    const sig_atomic_t held = mine.holds;
    mine.holds = 1; /* nothing may change during a walk */
    app_flush(heap);
    while (app_next_block(heap, &block)) {
        const int is_used = block.state == APP_BLOCK_USED;
        info.arena += block.size;
        info.uordblks += is_used ? block.size : 0;
        info.fordblks += is_used ? 0 : block.size;
        info.ordblks += !is_used;
    }
    mine.holds = held;
    unlock();
    leave();
    return info;
}

/* The same in ints, which the heap's 4 GB may wrap: why glibc has the other one. */
EXPORT struct mallinfo mallinfo(void)
{
    const struct mallinfo2 wide = mallinfo2();
    struct mallinfo info = {0};
    info.arena = (int)wide.arena;
    info.ordblks = (int)wide.ordblks;
    info.uordblks = (int)wide.uordblks;
    info.fordblks = (int)wide.fordblks;
    return info;
}

EXPORT void malloc_stats(void)
{
    const struct mallinfo2 info = mallinfo2();
    fprintf(stderr, "system bytes     = %10zu\nin use bytes     = %10zu\n", info.arena, info.uordblks);
}

/* The totals of glibc's document, which it has at its end. */
EXPORT int malloc_info(int options, FILE *stream)
{
    if (options != 0) {
        return EINVAL;
    }
    const struct mallinfo2 info = mallinfo2();
    const int printed = fprintf(stream,
                                "<malloc version=\"1\">\n<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
                                "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n",
                                info.ordblks, info.fordblks, info.arena);
    return printed < 0 ? -1 : 0;
}

/* Gives free pages back to the kernel; 1 if there were any. O(blocks). */
EXPORT int malloc_trim(size_t pad)
{
    (void)pad;
    if (enter() != ENTERED) {
        return 0;
    }
    const size_t bytes = give_back_free();
    leave();
    return bytes != 0;
}

/* Nothing can be set. */
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
