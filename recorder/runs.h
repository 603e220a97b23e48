/* Runs of records: who writes where, and what a record says. */
#ifndef HEAPWRIGHT_RUNS_H
#define HEAPWRIGHT_RUNS_H

#include "file.h"

#include <link.h>

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

/* `count` adjacent records of the thread's run, or NULL if it has no room for them. */
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

/* The cost is measured once in this many long runs of a thread: twice in its first, once of these to warm the cache. */
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

/* Creates a file even for a program that never allocates: so "no calls" and "the recorder was not loaded" differ. */
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

#endif
