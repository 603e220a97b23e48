/* app_trace_ring.h: the ring of app_trace.h; included once, by the platform's file, which defines
 *
 * APP_TRACE_ENTER(), APP_TRACE_LEAVE()   around each access: what keeps other threads and interrupts out
 * APP_TRACE_TICKS()                      a counter of 32 bits, where there is one,
 * APP_TRACE_TICKS_PER_SECOND             and its frequency
 * APP_TRACE_ARENA                        bytes of the heap, where they are known
 * APP_TRACE_THREAD()                     32 bits that tell threads apart, where there are several
 */
#include "app_trace.h"

#ifndef APP_TRACE_TICKS
#define APP_TRACE_TICKS() 0u
#define APP_TRACE_TICKS_PER_SECOND 0u
#endif
#ifndef APP_TRACE_ARENA
#define APP_TRACE_ARENA 0u
#endif
#ifdef __GNUC__
#define TRACE_SELDOM __attribute__((noinline, cold)) /* keeps its registers out of what is called often */
#else
#define TRACE_SELDOM
#endif
#ifndef APP_TRACE_THREAD
#define APP_TRACE_THREAD() 0u
#endif

_Static_assert(sizeof(void *) <= 4, "records have room for addresses of 32 bits");
_Static_assert((APP_TRACE_RECORDS & (APP_TRACE_RECORDS - 1)) == 0 && APP_TRACE_RECORDS >= 16,
               "APP_TRACE_RECORDS must be a power of two, 16 or more");

/* A record is a word, and one of kind (2 bits), ticks since the record before (10) and size (20). */
enum { TRACE_MALLOC, TRACE_CALLOC, TRACE_OTHER, TRACE_WIDE };
/* The "size" of a record of TRACE_OTHER. After TRACE_RESIZED comes a TRACE_MALLOC of what the object is now. Where
 * calls are missing, four records say how many, how many of them were mallocs or callocs, of how many bytes, how many
 * frees. */
enum { TRACE_FREED, TRACE_RESIZING, TRACE_RESIZED, TRACE_THREAD, TRACE_LOST, TRACE_LOST_END = TRACE_LOST + 4 };

enum {
    TRACE_TICK_BITS = 10,
    TRACE_SIZE_BITS = 20,
    TRACE_MOST = 9 /* records of one call of a function here, and of what is lost after it */
};
#define TRACE_NOBODY 0xffffffffu /* the thread of the last record where that tells of lost calls */

struct app_trace_ring app_trace_ring = {0x48577472u, APP_TRACE_RECORDS, APP_TRACE_TICKS_PER_SECOND, 0, 0, 0, 0, 0,
                                        {{0}}};

static void trace_put(uint32_t word, uint32_t rest)
{
    uint32_t *record = app_trace_ring.record[app_trace_ring.end++ % APP_TRACE_RECORDS];
    record[0] = word;
    record[1] = rest;
}

/* Records, with a record before it of what has no room in one: 22 more bits of ticks, 10 of size. */
static void trace_note(uint32_t word, uint32_t kind, uint32_t size)
{
    const uint32_t now = APP_TRACE_TICKS();
    const uint32_t ticks = now - app_trace_ring.now;
    const uint32_t more_ticks = ticks >> TRACE_TICK_BITS, more_size = size >> TRACE_SIZE_BITS;
    app_trace_ring.now = now;
    if ((more_ticks | more_size) != 0) {
        trace_put(more_ticks << TRACE_TICK_BITS | (more_size & ((1u << TRACE_TICK_BITS) - 1u)), TRACE_WIDE);
    }
    trace_put(word, kind | (ticks & ((1u << TRACE_TICK_BITS) - 1u)) << 2 | size << (32 - TRACE_SIZE_BITS));
}

#if !APP_TRACE_NEWEST

static uint32_t trace_largest[4][2]; /* of the mallocs that the last records count: where they lie, their bytes */

static uint32_t *trace_mark(uint32_t number)
{
    return app_trace_ring.record[(app_trace_ring.end - 4u + number) % APP_TRACE_RECORDS];
}

/* Of those that are missing a large object is freed: takes it back; 0 where it is not known. */
static int trace_take_back(uint32_t word)
{
    for (uint32_t k = 0; k < 4; k++) {
        if (trace_largest[k][0] == word) {
            trace_mark(1)[0]--;
            trace_mark(2)[0] -= trace_largest[k][1];
            trace_largest[k][0] = trace_largest[k][1] = 0;
            return 1;
        }
    }
    return 0;
}

/* There is no room for a call: the last four records count it. Returns 0. */
TRACE_SELDOM static int trace_lose(uint32_t word, uint32_t kind, uint32_t size)
{
    app_trace_ring.lost++;
    if (app_trace_ring.thread != TRACE_NOBODY) {
        app_trace_ring.thread = TRACE_NOBODY;
        app_trace_ring.end += 4;
        for (uint32_t k = 0; k < 4; k++) {
            trace_mark(k)[0] = 0;
            trace_mark(k)[1] = TRACE_OTHER | (TRACE_LOST + k) << (32 - TRACE_SIZE_BITS);
            trace_largest[k][0] = trace_largest[k][1] = 0;
        }
    }
    trace_mark(0)[0]++;
    if (kind != TRACE_OTHER) {
        uint32_t least = 0;
        for (uint32_t k = 1; k < 4; k++) {
            least = trace_largest[k][1] < trace_largest[least][1] ? k : least;
        }
        if (size > trace_largest[least][1]) {
            trace_largest[least][0] = word;
            trace_largest[least][1] = size;
        }
        trace_mark(1)[0]++;
        trace_mark(2)[0] += size;
    } else if (size == TRACE_FREED && !trace_take_back(word)) {
        trace_mark(3)[0]++;
    }
    return 0;
}

#endif

/* Whether there is room for one call, and a record of its thread where that is another than before. */
static int trace_begin(uint32_t word, uint32_t kind, uint32_t size)
{
    if (APP_TRACE_RECORDS - (app_trace_ring.end - app_trace_ring.begin) < TRACE_MOST) {
#if APP_TRACE_NEWEST
        (void)word;
        (void)kind;
        (void)size;
        app_trace_ring.lost++;
        app_trace_ring.begin = app_trace_ring.end + TRACE_MOST - APP_TRACE_RECORDS;
#else
        return trace_lose(word, kind, size);
#endif
    }
    const uint32_t thread = APP_TRACE_THREAD();
    if (thread != app_trace_ring.thread) {
        app_trace_ring.thread = thread;
        trace_put(thread, TRACE_OTHER | (uint32_t)TRACE_THREAD << (32 - TRACE_SIZE_BITS));
    }
    return 1;
}

static void trace_call(const void *pointer, uint32_t kind, uint32_t size)
{
    const uint32_t word = (uint32_t)(uintptr_t)pointer;
    APP_TRACE_ENTER();
    if (trace_begin(word, kind, size)) {
        trace_note(word, kind, size);
    }
    APP_TRACE_LEAVE();
}

void app_trace_allocated(const void *pointer, size_t size)
{
    if (pointer != NULL) {
        trace_call(pointer, TRACE_MALLOC, (uint32_t)size);
    }
}

void app_trace_cleared(const void *pointer, size_t size)
{
    if (pointer != NULL) {
        trace_call(pointer, TRACE_CALLOC, (uint32_t)size);
    }
}

void app_trace_freed(const void *pointer)
{
    if (pointer != NULL) {
        trace_call(pointer, TRACE_OTHER, TRACE_FREED);
    }
}

void app_trace_resizing(const void *from)
{
    if (from != NULL) {
        trace_call(from, TRACE_OTHER, TRACE_RESIZING);
    }
}

void app_trace_resized(const void *from, const void *pointer, size_t size)
{
    if (from == NULL) {
        app_trace_allocated(pointer, size);
        return;
    }
    APP_TRACE_ENTER();
    if (trace_begin(0, TRACE_OTHER, TRACE_RESIZED)) {
        trace_note((uint32_t)(uintptr_t)from, TRACE_OTHER, TRACE_RESIZED);
        trace_note((uint32_t)(uintptr_t)pointer, TRACE_MALLOC, (uint32_t)size);
    }
    APP_TRACE_LEAVE();
}

#include "app_trace_lines.h"

#if APP_TRACE_NEWEST
static uint32_t trace_marked; /* of the calls that were lost, how many were handed out as such */
#endif

/* Takes the oldest call out, with all its records; 0 where there is none. */
static int trace_take(struct trace_call *call)
{
    int found = 0;
    uint32_t more = 0;
    call->kind = call->word = call->size = call->ticks = call->from = 0;
    call->lost[0] = call->lost[1] = call->lost[2] = call->lost[3] = 0;
    APP_TRACE_ENTER();
#if APP_TRACE_NEWEST
    if (trace_marked != app_trace_ring.lost) { /* before the oldest */
        call->kind = TRACE_OTHER;
        call->size = TRACE_LOST;
        call->lost[0] = app_trace_ring.lost - trace_marked;
        trace_marked = app_trace_ring.lost;
        found = 1;
    }
#endif
    while (!found && app_trace_ring.begin != app_trace_ring.end) {
        const uint32_t *oldest = app_trace_ring.record[app_trace_ring.begin++ % APP_TRACE_RECORDS];
        const uint32_t low = (1u << TRACE_TICK_BITS) - 1u;
        call->kind = oldest[1] & 3u;
        if (call->kind == TRACE_WIDE) {
            call->ticks += oldest[0] & ~low;
            more = (oldest[0] & low) << TRACE_SIZE_BITS;
            continue;
        }
        call->word = oldest[0];
        call->size = oldest[1] >> (32 - TRACE_SIZE_BITS) | more;
        call->ticks += oldest[1] >> 2 & low;
        more = 0;
        found = 1;
        if (call->kind == TRACE_OTHER && call->size == TRACE_RESIZED) {
            call->from = call->word;
            found = 0;
        } else if (call->kind == TRACE_OTHER && call->size >= TRACE_LOST) {
            call->lost[call->size - TRACE_LOST] = call->word;
            found = call->size + 1u == TRACE_LOST_END;
        }
    }
    APP_TRACE_LEAVE();
    return found;
}

uint32_t app_trace_drain_some(void (*line)(const char *text), uint32_t calls)
{
    struct trace_call call;
    if (trace_told.lines % LINE_HEADER_EVERY == 0 && app_trace_ring.begin != app_trace_ring.end) {
        line_header(line);
    }
    while (calls-- > 0 && trace_take(&call)) {
        line_code(&call, line);
    }
    line_end(line);
    return app_trace_ring.end - app_trace_ring.begin;
}

void app_trace_drain(void (*line)(const char *text))
{
    while (app_trace_drain_some(line, LINE_CODES) != 0) {
    }
    if (trace_told.lost != app_trace_ring.lost) {
        line_header(line);
    }
}
