/* The file of a recording: made, grown and mapped a chunk at a time. */
#ifndef HEAPWRIGHT_FILE_H
#define HEAPWRIGHT_FILE_H

#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

/* Reserve disk blocks for a part of the file and map it. Without the reservation the kernel would report a full
 * disk as SIGBUS: the program would die of being recorded. */
static void *map_part(const int file, const uint64_t at, const size_t bytes)
{
    int failed = EINTR;
    while (failed == EINTR) {
        failed = posix_fallocate(file, (off_t)at, (off_t)bytes);
    }
    if (failed != 0) {
        errno = failed;
        return NULL;
    }
    void *const part = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)at);
    return part == MAP_FAILED ? NULL : part;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Where the path leads nowhere any more, or there is no descriptor to be had: a mapping stretched from its old length 0
 * is a second one of the same file. It is unlocked first, for of a locked one the kernel would read all. Kernels before
 * 5.14 cannot reserve by address; there a full disk is found out too late. */
static void *map_without_path(struct raw_header *const header, const uint64_t at, const size_t bytes)
{
    (void)munlock(header, sizeof *header);
    unsigned char *const whole = mremap(header, 0, (size_t)(at + bytes), MREMAP_MAYMOVE);
    if (whole == MAP_FAILED) {
        return NULL;
    }
    (void)munmap(whole, (size_t)at);
    if (madvise(whole + at, bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
        const int error = errno == EFAULT ? ENOSPC : errno;
        (void)munmap(whole + at, bytes);
        errno = error;
        return NULL;
    }
    return whole + at;
}

/* Makes the file longer, as far as file system and the program's limits let it (beyond the limit waits SIGXFSZ).
 * Returns its length, which was `extent`. */
static uint64_t stretch(const int file, const uint64_t extent, uint64_t wanted)
{
    const uint64_t longest = RAW_RECORDS_AT + RAW_FIRST_CHUNK_BYTES + (uint64_t)(MAX_CHUNKS - 1) * RAW_CHUNK_BYTES;
    struct rlimit limit;
    wanted = wanted < longest ? wanted : longest;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < wanted) {
        wanted = limit.rlim_cur;
    }
    while (wanted > extent && ftruncate(file, (off_t)wanted) != 0) {
        wanted = extent + (wanted - extent) / 2;
    }
    return wanted > extent ? wanted : extent;
}

/* While there is a path the file is kept this much longer than what is in it, for when there will be none. */
#define AHEAD_BYTES (64u * RAW_CHUNK_BYTES)

static void *map_further(struct state *const state, const uint64_t at, const size_t bytes)
{
    const int file = open(state->path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && state->extent < at + bytes + AHEAD_BYTES / 2) {
        state->extent = stretch(file, state->extent, 2 * (at + bytes) + AHEAD_BYTES);
    }
    if (at + bytes > state->extent) {
        (void)(file >= 0 && close(file));
        errno = EFBIG;
        return NULL;
    }
    if (file < 0) {
        return map_without_path(state->header, at, bytes);
    }
    void *const part = map_part(file, at, bytes);
    const int error = errno;
    (void)close(file);
    errno = error;
    if (part != NULL) {
        (void)madvise(part, bytes, MADV_POPULATE_WRITE); /* at once, which takes less than page after page */
    }
    return part;
}

/* An exec keeps the process id, so one process may need several files. */
static int create_file(struct state *const state)
{
    int file = -1;
    for (int image = 0; file < 0; image++) {
        (void)snprintf(image_name, sizeof image_name, "%d.%d.raw", (int)getpid(), image);
        const int length = snprintf(state->path, sizeof state->path, "%s/%s", directory, image_name);
        if (length < 0 || (size_t)length >= sizeof state->path) {
            return -1;
        }
        file = open(state->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0 && errno != EEXIST) {
            return -1;
        }
    }
    return file;
}

static void copy_text(char *const to, const size_t size, const char *const from)
{
    if (from != NULL) {
        const size_t length = strnlen(from, size - 1);
        memcpy(to, from, length);
        to[length] = '\0';
    }
}

static void write_header(struct raw_header *const header, const char *const forked_from)
{
    header->pointer_bytes = (uint32_t)sizeof(void *);
    header->record_bytes = (uint32_t)sizeof(struct raw_record);
    header->pid = (uint32_t)getpid();
    header->limit = call_limit;
    header->forked_ticks = forking_ticks > me.latest_ticks ? forking_ticks : me.latest_ticks;
    header->started_ticks = read_clocks(&header->started_ns);
    copy_text(header->forked_from, sizeof header->forked_from, forked_from);
    copy_text(header->called, sizeof header->called, title);
    copy_text(header->title, sizeof header->title, title);
    (void)!readlink("/proc/self/exe", header->program, sizeof header->program - 1);
    memcpy(header->magic, RAW_MAGIC, sizeof header->magic);
}

static bool open_recording(struct state *const state)
{
    const char *const wanted = directory[0] == '\0' ? getenv(DIRECTORY_VARIABLE) : NULL;
    if (wanted != NULL && strlen(wanted) < sizeof directory) {
        memcpy(directory, wanted, strlen(wanted) + 1);
        by_counter = has_counter();
        const char *const most = getenv(LIMIT_VARIABLE);
        call_limit = most == NULL ? 0 : strtoull(most, NULL, 10);
    }
    if (directory[0] == '\0') {
        return false;
    }
    char forked_from[sizeof image_name];
    memcpy(forked_from, image_name, sizeof forked_from);
    if (title == NULL) {
        title = program_invocation_name;
    }
    const int file = create_file(state);
    if (file < 0) {
        image_name[0] = '\0';
        return false;
    }
    state->extent = stretch(file, 0, AHEAD_BYTES);
    struct raw_header *const header =
        state->extent < RAW_RECORDS_AT ? NULL : map_part(file, 0, SITES != 0 ? RAW_RECORDS_AT : sizeof *header);
    (void)close(file);
    if (header == NULL) {
        (void)unlink(state->path);
        image_name[0] = '\0';
        return false;
    }
    write_header(header, forked_from);
    state->header = header;
    me.module = NULL;
    state->generation = atomic_fetch_add(&generations, 1) + 1;
    atomic_store(&next_place, 0);
    atomic_store(&me.cursor, FULL);
    return true;
}

/* What slow paths put aside. Opening a file is a cancellation point and signal handlers may jump out of anything:
 * either would leave a lock taken for ever. */
struct calm {
    sigset_t signals;
    int cancel;
    int error;
};

static struct calm calm_begin(void)
{
    struct calm calm = {.error = errno};
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &calm.signals);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &calm.cancel);
    return calm;
}

static void calm_end(const struct calm *const calm)
{
    int ignored = 0;
    (void)pthread_setcancelstate(calm->cancel, &ignored);
    (void)pthread_sigmask(SIG_SETMASK, &calm->signals, NULL);
    errno = calm->error;
}

/* The state of this process if it records, else NULL. Runs on the first call after start, fork or exec. */
SLOW struct state *start(void)
{
    if (environ == NULL) {
        return NULL; /* the dynamic linker allocates before the C library is ready to open files */
    }
    struct state *state = atomic_load(&the_state);
    if (state == NULL && (state = map_state()) == NULL) {
        return NULL;
    }
    const struct calm calm = calm_begin();
    int expected = NEW;
    if (atomic_compare_exchange_strong(&state->status, &expected, STARTING)) {
        expected = open_recording(state) ? RECORDING : OFF;
        atomic_store_explicit(&state->status, expected, memory_order_release);
    }
    calm_end(&calm);
    return expected == RECORDING ? state : NULL;
}

FAST struct state *recording(void)
{
    struct state *const state = atomic_load_explicit(&the_state, memory_order_acquire);
    if (state != NULL) {
        const int status = atomic_load_explicit(&state->status, memory_order_acquire);
        if (LIKELY(status == RECORDING)) {
            return state;
        }
        if (status != NEW) {
            return NULL;
        }
    }
    return start();
}

static uint64_t chunk_at(const uint64_t chunk)
{
    return RAW_RECORDS_AT + (chunk == 0 ? 0 : RAW_FIRST_CHUNK_BYTES + (chunk - 1) * RAW_CHUNK_BYTES);
}

static void note_progress(struct raw_header *const header)
{
    uint64_t now = 0;
    header->noted_ticks = read_clocks(&now);
    header->noted_ns = now - header->started_ns;
    atomic_store_explicit(&header->processor_ns, clock_ns(CLOCK_PROCESS_CPUTIME_ID), memory_order_relaxed);
    copy_text(header->title, sizeof header->title, title);
}

/* In memory; of older ones the pages that a slow thread still writes to come back by themselves. */
#define CHUNKS_KEPT 8u

static struct raw_record *map_chunk(struct state *const state, const uint64_t chunk)
{
    const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t at = chunk_at(chunk);
    const size_t bytes = chunk == 0 ? RAW_FIRST_CHUNK_BYTES : RAW_CHUNK_BYTES;
    struct raw_record *const part = map_further(state, at, bytes);
    struct raw_header *const header = state->header;
    if (part != NULL && chunk > CHUNKS_KEPT) { /* full, and safe in the file: off the program's books */
        struct raw_record *const full = atomic_load(&state->chunks[chunk - CHUNKS_KEPT]);
        (void)(full != NULL && madvise(full, RAW_CHUNK_BYTES, MADV_DONTNEED));
    }
    if (part == NULL) {
        header->stopped = errno;
        atomic_store(&state->status, OFF);
    } else if (atomic_load(&header->end) < at + bytes) {
        atomic_store(&header->end, at + bytes);
    }
    note_progress(header);
    atomic_fetch_add(&header->growing_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    return part;
}

static struct raw_record *grow(struct state *const state, const uint64_t chunk)
{
    const struct calm calm = calm_begin();
    while (atomic_exchange_explicit(&state->growing, 1, memory_order_acquire) != 0) {
        (void)sched_yield();
    }
    struct raw_record *base = atomic_load_explicit(&state->chunks[chunk], memory_order_relaxed);
    if (base == NULL && atomic_load(&state->status) == RECORDING) {
        base = map_chunk(state, chunk);
        atomic_store_explicit(&state->chunks[chunk], base, memory_order_release);
    }
    atomic_store_explicit(&state->growing, 0, memory_order_release);
    calm_end(&calm);
    return base;
}

static struct raw_record *place(struct state *const state, const uint64_t index)
{
    const bool in_first = index < FIRST_CHUNK_RECORDS;
    const uint64_t beyond = index - FIRST_CHUNK_RECORDS;
    const uint64_t chunk = in_first ? 0 : 1 + beyond / CHUNK_RECORDS;
    if (chunk >= MAX_CHUNKS) {
        state->header->stopped = EFBIG;
        atomic_store(&state->status, OFF);
        return NULL;
    }
    struct raw_record *base = atomic_load_explicit(&state->chunks[chunk], memory_order_acquire);
    if (base == NULL && (base = grow(state, chunk)) == NULL) {
        return NULL;
    }
    return base + (in_first ? index : beyond % CHUNK_RECORDS);
}

#endif
