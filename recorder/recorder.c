/* Heapwright's recorder: preloaded into an unmodified program, it writes down every heap call.
 *
 * Each thread writes to a run of records that is its own, so threads do not disturb each other; what orders the events
 * of all are their ticks (see there). Two rules make the file a valid history of the heap, whatever the threads do:
 *   - a free takes its ticks before the block is released, an allocation after the block was obtained; so the ticks
 *     of a free always come before those of the call that hands the same address out again;
 *   - a realloc does both: it writes one record before (the old block is in nobody's hands from here on) and one after.
 *
 * The file is a shared mapping: what was recorded is in the kernel's hands at once and outlives SIGKILL and exec.
 * The recorder never calls malloc, keeps no file descriptor open (programs close descriptors they do not know), grows
 * the file also where its path leads nowhere (programs drop privileges and change their root) and leaves errno alone.
 */
#define _GNU_SOURCE
#include "raw_format.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FAST static inline __attribute__((always_inline))
#define SLOW static __attribute__((noinline, cold))
#ifdef HEAPWRIGHT_SITES
#define SITES 1u
/* Where the exported function was called; where C++'s operators were, if they called it. */
#define CALLER called_at(__builtin_return_address(0))
#else
#define SITES 0u
#define CALLER NULL
#endif
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define DIRECTORY_VARIABLE "HEAPWRIGHT_RECORD_DIR"
#define LIMIT_VARIABLE "HEAPWRIGHT_RECORD_LIMIT"

/* ------------------------------------------------- the real allocator ------------------------------------------ */

struct allocator {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};

#ifdef HEAPWRIGHT_WRAP
/* Linked into a program, with ld's --wrap: what is called malloc there is ours, and the linker knows the real ones. */
#define NAME(function) __wrap_##function
#define REAL(result, function, parameters)                                                                             \
    result NAME(function) parameters;                                                                                  \
    extern result __real_##function parameters
REAL(void *, malloc, (size_t));
REAL(void *, calloc, (size_t, size_t));
REAL(void *, realloc, (void *, size_t));
void *NAME(reallocarray)(void *, size_t, size_t);
REAL(void, free, (void *));
REAL(void *, aligned_alloc, (size_t, size_t));
REAL(int, posix_memalign, (void **, size_t, size_t));
REAL(void *, memalign, (size_t, size_t)) __attribute__((weak)); /* not every C library has these three */
REAL(void *, valloc, (size_t)) __attribute__((weak));
REAL(void *, pvalloc, (size_t)) __attribute__((weak));

static const struct allocator real = {__real_malloc,   __real_calloc,        __real_realloc,
                                      __real_free,     __real_aligned_alloc, __real_posix_memalign,
                                      __real_memalign, __real_valloc,        __real_pvalloc};

FAST bool resolved(void)
{
    return true;
}
#else
#define NAME(function) function

static struct allocator real;

enum { UNRESOLVED, RESOLVING, RESOLVED };
static _Atomic(int) resolution;

/* dlsym gives an object pointer; ISO C has no cast from there to a function pointer. */
static void look_up(void *function, const char *const name)
{
    void *const symbol = dlsym(RTLD_NEXT, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* False while the real functions are being looked up. dlsym itself may ask for memory, so nobody may wait here: who
 * comes meanwhile, this thread or another, is served from the bootstrap buffer. */
SLOW bool resolve(void)
{
    int expected = UNRESOLVED;
    if (!atomic_compare_exchange_strong(&resolution, &expected, RESOLVING)) {
        return expected == RESOLVED;
    }
    look_up(&real.malloc, "malloc");
    look_up(&real.calloc, "calloc");
    look_up(&real.realloc, "realloc");
    look_up(&real.free, "free");
    look_up(&real.aligned_alloc, "aligned_alloc");
    look_up(&real.posix_memalign, "posix_memalign");
    look_up(&real.memalign, "memalign");
    look_up(&real.valloc, "valloc");
    look_up(&real.pvalloc, "pvalloc");
    atomic_store_explicit(&resolution, RESOLVED, memory_order_release);
    return true;
}

FAST bool resolved(void)
{
    return LIKELY(atomic_load_explicit(&resolution, memory_order_acquire) == RESOLVED) || resolve();
}
#endif

/* ------------------------------------------------- the bootstrap buffer ---------------------------------------- */

#define BOOTSTRAP_ALIGN 16u

/* Never reused, hence always zero when it is handed out: calloc needs no memset. */
static alignas(BOOTSTRAP_ALIGN) unsigned char bootstrap[65536];
static _Atomic(size_t) bootstrap_used;

static void *bootstrap_allocate(const size_t size)
{
    if (size > sizeof bootstrap) {
        errno = ENOMEM;
        return NULL;
    }
    const size_t rounded = (size + BOOTSTRAP_ALIGN - 1) & ~(size_t)(BOOTSTRAP_ALIGN - 1);
    const size_t start = atomic_fetch_add(&bootstrap_used, BOOTSTRAP_ALIGN + rounded);
    if (start + BOOTSTRAP_ALIGN + rounded > sizeof bootstrap) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(bootstrap + start, &size, sizeof size);
    return bootstrap + start + BOOTSTRAP_ALIGN;
}

static bool in_bootstrap(const void *const pointer)
{
    const uintptr_t address = (uintptr_t)pointer;
    return address >= (uintptr_t)bootstrap && address < (uintptr_t)bootstrap + sizeof bootstrap;
}

static void *leave_bootstrap(const void *const old, const size_t size)
{
    size_t old_size = 0;
    memcpy(&old_size, (const unsigned char *)old - BOOTSTRAP_ALIGN, sizeof old_size);
    void *const fresh = NAME(malloc)(size);
    if (fresh != NULL) {
        memcpy(fresh, old, old_size < size ? old_size : size);
    }
    return fresh;
}

/* ------------------------------------------------- the state of a process -------------------------------------- */

#define FIRST_CHUNK_RECORDS (RAW_FIRST_CHUNK_BYTES / sizeof(struct raw_record))
#define CHUNK_RECORDS (RAW_CHUNK_BYTES / sizeof(struct raw_record))
#define MAX_CHUNKS 65536u /* 4 G records, what the 32-bit ids of a trace can tell apart */

enum { NEW, STARTING, RECORDING, OFF };

/* Lives in memory that the kernel empties in a forked child, so that a child finds itself NEW and starts a file of
 * its own, whichever way it was forked: atfork handlers miss raw clone calls and have no safe order among themselves.
 * A vfork child shares its parent's memory, heap and file, as it should. */
struct state {
    _Atomic(int) status;
    _Atomic(int) growing; /* lock */
    _Atomic(uint32_t) threads;
    uint32_t generation;
    uint64_t extent;         /* length of the file */
    _Atomic(uint64_t) calls; /* in runs that are done; counted where they are limited */
    struct raw_header *header;
    char path[PATH_MAX];
    _Atomic(struct raw_record *) chunks[MAX_CHUNKS];
};

static _Atomic(struct state *) the_state;
static _Atomic(uint32_t) generations; /* survives a fork, so a child's generation differs from its parent's */
static char directory[PATH_MAX - 64]; /* kept here because programs clear their environment */
static uint64_t call_limit;           /* of calls; 0 where there is none */

/* These survive a fork, too: what they are in a child tells what it inherited. */
static uint64_t forking_ticks;
static char image_name[48];

static _Atomic(uint64_t) next_place; /* of the records that are in no run yet */

/* Of argv[0]: programs that write a title write it there, and set the C library's pointer to a copy. */
static const char *title;

/* Where a thread's next record goes, and to how many more its run has room, in one word: the address, in units of a
 * record, above 11 bits that hold FULL and that number. A signal handler may come between any two instructions, and
 * write records of its own: one instruction takes the place and moves the word on. Places asked for in vain make the
 * lower part less than FULL, which is large enough for any depth of handlers. */
#define CURSOR_BITS 11
#define FULL 1024u
#define LONGEST_RUN 1024u

/* Initial-exec: the general model allocates a thread's block on first use, with malloc. */
static _Thread_local struct {
    _Atomic(uint64_t) cursor;
    uint64_t latest_ticks;
    uint32_t generation;
    uint32_t number;
    uint32_t run;             /* length of the latest one, as wanted */
    uint32_t records;         /* in it */
    struct raw_record *begin; /* of it */
    uint32_t long_runs;
    const void *operator_caller;     /* of C++'s operators, on their way to malloc or free */
    const struct raw_module *module; /* of the latest site */
    bool inside; /* in the real allocator: what it calls under our names is not the program's call */
} me __attribute__((tls_model("initial-exec"))) = {.cursor = FULL};

static uint64_t clock_ns(const clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ticks order the events of all threads. Where the kernel itself trusts the processors' time stamp counters, which
 * agree among all cores then, they are those; else nanoseconds, raised where two would be equal. */
static bool by_counter;
static alignas(64) _Atomic(uint64_t) last_tick;

#if defined __x86_64__ && !defined HEAPWRIGHT_NO_COUNTER
static bool has_counter(void)
{
    int allowed = 0;
    char clock[4] = "";
    if (prctl(PR_GET_TSC, &allowed) != 0 || allowed != PR_TSC_ENABLE) {
        return false;
    }
    const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    const bool is_counter = read(file, clock, sizeof clock) == sizeof clock && memcmp(clock, "tsc\n", 4) == 0;
    (void)close(file);
    return is_counter;
}

/* Fenced, the counter is read after all that comes before, such as the loads that brought a block from another thread:
 * the processor would read it ahead. It stores nothing before it has read it, so no block is released too early. */
FAST uint64_t counter(const bool fenced)
{
    if (fenced) {
        __asm__ volatile("lfence" ::: "memory");
    }
    const uint64_t count = __builtin_ia32_rdtsc();
    __asm__ volatile("" ::: "memory");
    return count;
}
#else
static bool has_counter(void)
{
    return false;
}

FAST uint64_t counter(const bool fenced)
{
    (void)fenced;
    return 0;
}
#endif

static uint64_t next_tick(void)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t last = atomic_load_explicit(&last_tick, memory_order_relaxed);
    uint64_t tick = 0;
    do {
        tick = now > last ? now : last + 1;
    } while (
        !atomic_compare_exchange_weak_explicit(&last_tick, &last, tick, memory_order_relaxed, memory_order_relaxed));
    return tick;
}

FAST uint64_t ticks(const bool fenced)
{
    return by_counter ? counter(fenced) : next_tick();
}

/* Both clocks at once, as nearly as may be: the thread can be interrupted between them. */
static uint64_t read_clocks(uint64_t *const ns)
{
    uint64_t before = 0;
    uint64_t after = 0;
    for (int i = 0; i < 5 && (i == 0 || after - before > 1000); i++) {
        before = ticks(true);
        *ns = clock_ns(CLOCK_MONOTONIC);
        after = ticks(true);
    }
    return after;
}

static void note_fork(void)
{
    forking_ticks = ticks(true);
}

static void forget_in_child(void)
{
    struct state *const state = atomic_load(&the_state);
    (void)madvise(state, sizeof *state, MADV_DONTNEED);
}

static struct state *map_state(void)
{
    struct state *const fresh =
        mmap(NULL, sizeof *fresh, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) {
        return NULL;
    }
    const bool wiped = madvise(fresh, sizeof *fresh, MADV_WIPEONFORK) == 0;
    struct state *expected = NULL;
    if (!atomic_compare_exchange_strong(&the_state, &expected, fresh)) {
        (void)munmap(fresh, sizeof *fresh);
        return expected;
    }
    if (!wiped) {
        (void)pthread_atfork(NULL, NULL, forget_in_child);
    }
    return fresh;
}

/* ------------------------------------------------- the file ---------------------------------------------------- */

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

static void *map_further(struct state *const state, const uint64_t at, const size_t bytes)
{
    if (at + bytes > state->extent) {
        errno = EFBIG;
        return NULL;
    }
    const int file = open(state->path, O_RDWR | O_CLOEXEC);
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

/* As long as it may become, or as long as file system and the program's limits let it (beyond the limit waits SIGXFSZ).
 */
static uint64_t stretch(const int file)
{
    uint64_t extent = RAW_RECORDS_AT + RAW_FIRST_CHUNK_BYTES + (uint64_t)(MAX_CHUNKS - 1) * RAW_CHUNK_BYTES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < extent) {
        extent = limit.rlim_cur;
    }
    while (extent > RAW_RECORDS_AT && ftruncate(file, (off_t)extent) != 0) {
        extent /= 2;
    }
    return extent;
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
    state->extent = stretch(file);
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

/* ------------------------------------------------- runs of records -------------------------------------------- */

/* Adds to the thread's cursor in one instruction: whole for its signal handlers, which is all that it must be. */
FAST uint64_t advance(const uint64_t by)
{
#ifdef __x86_64__
    uint64_t before = by;
    __asm__ volatile("xaddq %0, %1" : "+r"(before), "+m"(*(uint64_t *)&me.cursor) : : "memory", "cc");
    return before;
#else
    return atomic_fetch_add_explicit(&me.cursor, by, memory_order_relaxed);
#endif
}

/* So many adjacent records of the thread's run, or NULL where it has no room for them. */
FAST struct raw_record *claim(const unsigned count)
{
    const uint64_t cursor = advance(count * ((UINT64_C(1) << CURSOR_BITS) - 1));
    if ((cursor & ((1u << CURSOR_BITS) - 1)) < FULL + count) {
        return NULL;
    }
    return (struct raw_record *)(uintptr_t)((cursor >> CURSOR_BITS) * sizeof(struct raw_record));
}

FAST void write_record(struct raw_record *const at, const uint64_t what, const uint64_t more)
{
    at->more = more;
    atomic_store_explicit(&at->what, what, memory_order_release);
}

static void write_clock(const struct state *const state, struct raw_record *const at)
{
    uint64_t now = 0;
    me.latest_ticks = read_clocks(&now);
    write_record(at, (now - state->header->started_ns) << 8 | RAW_CLOCK, me.latest_ticks);
}

/* Threads that make a few calls are many: their first run is short. The first thread's is not. */
static uint32_t next_length(void)
{
    if (me.run == 0) {
        return me.number == 0 ? LONGEST_RUN : RAW_LEAST_RUN;
    }
    return me.run < LONGEST_RUN / 4 ? me.run * 4 : LONGEST_RUN;
}

/* The place of a new run; it is as long as wanted or ends where its chunk does. */
static uint64_t reserve(uint32_t *const length)
{
    const uint32_t wanted = *length;
    uint64_t at = atomic_load(&next_place);
    do {
        const uint64_t beyond = at - FIRST_CHUNK_RECORDS;
        const uint64_t room =
            at < FIRST_CHUNK_RECORDS ? FIRST_CHUNK_RECORDS - at : CHUNK_RECORDS - beyond % CHUNK_RECORDS;
        *length = room < wanted ? (uint32_t)room : wanted;
    } while (!atomic_compare_exchange_weak(&next_place, &at, at + *length));
    return at;
}

static unsigned log2_up(const size_t align)
{
    return align <= 1 ? 0
                      : (unsigned)(sizeof(unsigned long long) * CHAR_BIT) -
                            (unsigned)__builtin_clzll((unsigned long long)align - 1);
}

/* Counts the calls of the run that is done; more than the limit end the recording. */
static bool is_over(struct state *const state)
{
    const unsigned calls =
        1u << RAW_MALLOC | 1u << RAW_CALLOC | 1u << RAW_FREE | 1u << RAW_REALLOC_END | 1u << RAW_REALLOC_FREED;
    uint64_t done = 0;
    for (uint32_t i = 0; i < me.records; i++) {
        done += calls >> (atomic_load_explicit(&me.begin[i].what, memory_order_relaxed) & 7) & 1;
    }
    me.records = 0;
    if (atomic_fetch_add(&state->calls, done) + done < call_limit) {
        return false;
    }
    atomic_store(&state->status, OFF);
    return true;
}

/* The length of the run that the thread has now; 0 where it can have none. */
static uint32_t begin_run(struct state *const state)
{
    if (me.generation != state->generation) {
        me.generation = state->generation;
        me.number = atomic_fetch_add(&state->threads, 1);
        me.run = 0;
        me.long_runs = 0;
    } else if (call_limit != 0 && is_over(state)) {
        return 0;
    }
    uint32_t length = me.run = next_length();
    struct raw_record *const base = place(state, reserve(&length));
    if (base == NULL) {
        return 0;
    }
    me.begin = base;
    me.records = length;
    write_clock(state, base + 1);
    write_record(base, (uint64_t)me.number << 8 | RAW_RUN, 0);
    const uint64_t address = (uintptr_t)(base + 2) / sizeof *base;
    atomic_store_explicit(&me.cursor, address << CURSOR_BITS | (FULL + length - 2), memory_order_relaxed);
    return length;
}

FAST void write_call(struct raw_record *const at, const uint64_t what, const size_t size, const uint64_t now)
{
    me.latest_ticks = now;
    write_record(at, what, now << 32 | (size < RAW_HUGE ? size : RAW_HUGE));
}

/* The thread's own clock is a call of the kernel, which takes longer than many records: so empty ones are written, as
 * the real ones are, until its error does not count. What the clock takes by itself is taken off. */
static uint64_t measured_cost(const bool several)
{
    const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < RAW_MEASURED; i++) {
        const uint64_t now = ticks(several);
        struct raw_record *const at = claim(1);
        if (at != NULL) {
            write_call(at, RAW_EMPTY, 0, now);
        }
    }
    const uint64_t middle = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t clock = clock_ns(CLOCK_THREAD_CPUTIME_ID) - middle;
    return middle - begin > clock ? (middle - begin - clock) / RAW_MEASURED : 0;
}

/* The cost is measured in every so many long runs of a thread: twice in its first, once to have all in the cache. */
#define RUNS_A_SAMPLE 4u

static void sample_cost(const struct state *const state, const uint32_t length)
{
    const bool several = atomic_load_explicit(&state->threads, memory_order_relaxed) > 1;
    if (length != LONGEST_RUN || me.long_runs++ % RUNS_A_SAMPLE != 0) {
        return;
    }
    if (me.long_runs == 1) {
        (void)measured_cost(several);
    }
    const uint64_t cost = measured_cost(several);
    struct raw_record *const at = claim(1);
    if (at != NULL) {
        write_record(at, cost << 8 | RAW_COST, 0);
    }
}

/* Records after a clock, or in a new run, which begins with one. */
SLOW struct raw_record *claim_slowly(struct state *const state, const unsigned count)
{
    const struct calm calm = calm_begin();
    struct raw_record *at = claim(1 + count);
    if (at != NULL) {
        write_clock(state, at);
        at++;
    } else {
        const uint32_t length = begin_run(state);
        if (length != 0) {
            sample_cost(state, length);
            at = claim(count);
        }
    }
    calm_end(&calm);
    return at;
}

#ifdef HEAPWRIGHT_SITES
FAST const void *called_at(const void *const caller)
{
    const void *const operator_caller = me.operator_caller;
    me.operator_caller = NULL;
    return operator_caller != NULL ? operator_caller : caller;
}

static bool is_in(const struct raw_module *const module, const void *const site)
{
    return (uintptr_t)site < atomic_load_explicit(&module->end, memory_order_acquire) &&
           (uintptr_t)site >= module->begin;
}

/* The module that holds a site, or the first empty one where it is not known; NULL where there is neither. */
static struct raw_module *find_module(const struct state *const state, const void *const site)
{
    struct raw_module *const modules = (struct raw_module *)((unsigned char *)state->header + RAW_MODULES_AT);
    for (unsigned i = 0; i < RAW_MODULES; i++) {
        if (is_in(&modules[i], site) || atomic_load_explicit(&modules[i].end, memory_order_relaxed) == 0) {
            return &modules[i];
        }
    }
    return NULL;
}

SLOW void note_module(struct state *const state, const void *const site)
{
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 35)
    struct dl_find_object found; /* unlike dladdr it takes no lock */
    const struct calm calm = calm_begin();
    while (atomic_exchange_explicit(&state->growing, 1, memory_order_acquire) != 0) {
        (void)sched_yield();
    }
    struct raw_module *const module = find_module(state, site);
    if (module != NULL && module->end == 0 && _dl_find_object((void *)(uintptr_t)site, &found) == 0) {
        const char *const name = found.dlfo_link_map->l_name;
        copy_text(module->path, sizeof module->path, name[0] == '\0' ? state->header->program : name);
        module->bias = found.dlfo_link_map->l_addr;
        module->begin = (uintptr_t)found.dlfo_map_start;
        atomic_store_explicit(&module->end, (uintptr_t)found.dlfo_map_end, memory_order_release);
    }
    atomic_store_explicit(&state->growing, 0, memory_order_release);
    calm_end(&calm);
#else
    (void)state;
    (void)site;
#endif
}

static void write_site(struct state *const state, struct raw_record *const at, const void *const site)
{
    if (me.module == NULL || !is_in(me.module, site)) {
        me.module = find_module(state, site);
        if (me.module != NULL && !is_in(me.module, site)) {
            note_module(state, site);
        }
    }
    write_record(at, RAW_SITE, (uintptr_t)site);
}
#else
FAST void write_site(struct state *const state, struct raw_record *const at, const void *const site)
{
    (void)state;
    (void)at;
    (void)site;
}
#endif

FAST void record(const enum raw_kind kind, const void *const pointer, const size_t size, const size_t align,
                 const void *const site)
{
    struct state *const state = recording();
    if (state == NULL) {
        return;
    }
    const unsigned count = 1 + SITES + (align != 0);
    const bool fenced = atomic_load_explicit(&state->threads, memory_order_relaxed) > 1;
    uint64_t now = ticks(fenced);
    struct raw_record *at = LIKELY(now - me.latest_ticks <= RAW_LONGEST_GAP) ? claim(count) : NULL;
    if (!LIKELY(at != NULL)) {
        at = claim_slowly(state, count);
        if (at == NULL) {
            return;
        }
        now = ticks(true);
    }
    if (SITES != 0) {
        write_site(state, at++, site);
    }
    if (align != 0) {
        write_record(at++, (uint64_t)log2_up(align) << 8 | RAW_ALIGN, 0);
    }
    write_call(at, ((uint64_t)(uintptr_t)pointer & ~UINT64_C(7)) | (uint64_t)kind, size, now);
}

/* A file even for a program that never allocates: it tells "no calls" from "the recorder was not loaded". */
__attribute__((constructor)) static void load(void)
{
    (void)resolved();
    (void)recording();
    (void)pthread_atfork(note_fork, NULL, NULL);
}

__attribute__((destructor)) static void unload(void)
{
    struct state *const state = recording();
    if (state != NULL) {
        note_progress(state->header);
    }
}

/* ------------------------------------------------- the calls --------------------------------------------------- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

FAST void *allocated(void *const pointer, const enum raw_kind kind, const size_t size, const size_t align,
                     const void *const site)
{
    me.inside = false;
    if (pointer != NULL) {
        record(kind, pointer, size, align, site);
    }
    return pointer;
}

FAST void *malloc_at(const size_t size, const void *const site)
{
    if (!resolved()) {
        return bootstrap_allocate(size);
    }
    if (me.inside) {
        return real.malloc(size);
    }
    me.inside = true;
    return allocated(real.malloc(size), RAW_MALLOC, size, 0, site);
}

EXPORT void *NAME(malloc)(const size_t size)
{
    return malloc_at(size, CALLER);
}

EXPORT void *NAME(calloc)(const size_t count, const size_t size)
{
    const void *const site = CALLER;
    if (!resolved()) {
        return size != 0 && count > sizeof bootstrap / size ? bootstrap_allocate(SIZE_MAX)
                                                            : bootstrap_allocate(count * size);
    }
    if (me.inside) {
        return real.calloc(count, size);
    }
    me.inside = true;
    return allocated(real.calloc(count, size), RAW_CALLOC, count * size, 0, site);
}

FAST void free_at(void *const pointer, const void *const site)
{
    if (pointer == NULL || in_bootstrap(pointer) || !resolved()) {
        return;
    }
    if (me.inside) {
        real.free(pointer);
        return;
    }
    record(RAW_FREE, pointer, 0, 0, site);
    me.inside = true;
    real.free(pointer);
    me.inside = false;
}

EXPORT void NAME(free)(void *const pointer)
{
    free_at(pointer, CALLER);
}

/* C23; declared here because the headers of most systems do not yet. */
EXPORT void NAME(free_sized)(void *pointer, size_t size);
EXPORT void NAME(free_aligned_sized)(void *pointer, size_t align, size_t size);

void NAME(free_sized)(void *const pointer, const size_t size)
{
    (void)size;
    free_at(pointer, CALLER);
}

void NAME(free_aligned_sized)(void *const pointer, const size_t align, const size_t size)
{
    (void)align;
    (void)size;
    free_at(pointer, CALLER);
}

FAST void *realloc_at(void *const old, const size_t size, const void *const site)
{
    if (old == NULL) {
        return malloc_at(size, site);
    }
    if (in_bootstrap(old)) {
        return leave_bootstrap(old, size);
    }
    if (!resolved()) {
        errno = ENOMEM;
        return NULL;
    }
    if (me.inside) {
        return real.realloc(old, size);
    }
    record(RAW_REALLOC_BEGIN, old, size, 0, site);
    me.inside = true;
    void *const fresh = real.realloc(old, size);
    me.inside = false;
    if (fresh != NULL) {
        record(RAW_REALLOC_END, fresh, size, 0, site);
    } else {
        record(size == 0 ? RAW_REALLOC_FREED : RAW_REALLOC_FAILED, old, size, 0, site);
    }
    return fresh;
}

EXPORT void *NAME(realloc)(void *const old, const size_t size)
{
    return realloc_at(old, size, CALLER);
}

EXPORT void *NAME(reallocarray)(void *const old, const size_t count, const size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc_at(old, count * size, CALLER);
}

static void *unsupported(void)
{
    errno = ENOMEM;
    return NULL;
}

EXPORT void *NAME(aligned_alloc)(const size_t align, const size_t size)
{
    if (!resolved() || real.aligned_alloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.aligned_alloc(align, size);
    }
    me.inside = true;
    return allocated(real.aligned_alloc(align, size), RAW_MALLOC, size, align, CALLER);
}

EXPORT void *NAME(memalign)(const size_t align, const size_t size)
{
    if (!resolved() || real.memalign == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.memalign(align, size);
    }
    me.inside = true;
    return allocated(real.memalign(align, size), RAW_MALLOC, size, align, CALLER);
}

EXPORT int NAME(posix_memalign)(void **const out, const size_t align, const size_t size)
{
    if (!resolved() || real.posix_memalign == NULL) {
        return ENOMEM;
    }
    if (me.inside) {
        return real.posix_memalign(out, align, size);
    }
    me.inside = true;
    const int failed = real.posix_memalign(out, align, size);
    (void)allocated(failed == 0 ? *out : NULL, RAW_MALLOC, size, align, CALLER);
    return failed;
}

EXPORT void *NAME(valloc)(const size_t size)
{
    if (!resolved() || real.valloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.valloc(size);
    }
    me.inside = true;
    return allocated(real.valloc(size), RAW_MALLOC, size, page_size(), CALLER);
}

EXPORT void *NAME(pvalloc)(const size_t size)
{
    if (!resolved() || real.pvalloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.pvalloc(size);
    }
    me.inside = true;
    return allocated(real.pvalloc(size), RAW_MALLOC, size, page_size(), CALLER);
}

/* ------------------------------------------------- C++'s operators -------------------------------------------- */

#if defined HEAPWRIGHT_SITES && defined __LP64__
/* They lie between a C++ program and malloc, which would see one site for all of it. A library that was loaded for
 * itself alone is not searched after ours: then they are looked for where they come from. */
static void *real_operator(_Atomic(void *) *const known, const char *const name)
{
    void *found = atomic_load_explicit(known, memory_order_acquire);
    if (found == NULL) {
        const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
        found = dlsym(RTLD_NEXT, name);
        for (unsigned i = 0; found == NULL && i < 2; i++) {
            void *const library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
            found = library == NULL ? NULL : dlsym(library, name);
        }
        if (found == NULL) {
            abort(); /* who calls it has none, and would not have started without ours */
        }
        atomic_store_explicit(known, found, memory_order_release);
    }
    return found;
}

#define OPERATOR(symbol, result, parameters, arguments, keep)                                                          \
    EXPORT result symbol parameters;                                                                                   \
    EXPORT result symbol parameters                                                                                    \
    {                                                                                                                  \
        static _Atomic(void *) known;                                                                                  \
        result(*real_one) parameters = NULL;                                                                           \
        void *const found = real_operator(&known, #symbol);                                                            \
        memcpy((void *)&real_one, &found, sizeof found);                                                               \
        if (me.operator_caller == NULL) { /* else one of them calls another */                                         \
            me.operator_caller = __builtin_return_address(0);                                                          \
        }                                                                                                              \
        keep real_one arguments;                                                                                       \
        me.operator_caller = NULL;
#define NEW(symbol, parameters, arguments)                                                                             \
    OPERATOR(symbol, void *, parameters, arguments, void *const block =)                                               \
    return block;                                                                                                      \
    }
#define DELETE(symbol, parameters, arguments)                                                                          \
    OPERATOR(symbol, void, parameters, arguments, )                                                                    \
    }

NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnamSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), (size, align, tag))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), (size, align, tag))
DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
#endif
