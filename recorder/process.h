/* The state of a process that is recorded, and its clocks. */
#ifndef HEAPWRIGHT_PROCESS_H
#define HEAPWRIGHT_PROCESS_H

#include "allocator.h"
#include "raw_format.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define DIRECTORY_VARIABLE "HEAPWRIGHT_RECORD_DIR"
#define LIMIT_VARIABLE "HEAPWRIGHT_RECORD_LIMIT"

#define FIRST_CHUNK_RECORDS (RAW_FIRST_CHUNK_BYTES / sizeof(struct raw_record))
#define CHUNK_RECORDS (RAW_CHUNK_BYTES / sizeof(struct raw_record))
#define MAX_CHUNKS 65536u /* 4 G records, the limit of a trace's 32-bit ids */

enum { NEW, STARTING, RECORDING, OFF };

/* Lies in memory that the kernel zeroes in a forked child, so that a child finds the state NEW and starts a file of its
 * own after any kind of fork: atfork handlers miss raw clone calls and have no safe order among themselves. A vfork
 * child shares its parent's memory, heap and file, as it should. */
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

/* These survive a fork: a child learns from them what it inherited. */
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

#endif
