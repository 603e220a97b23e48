/* app_trace_ring.h: the ring of app_trace.h; included once, by the platform's file, which defines
 *
 * APP_TRACE_ENTER(), APP_TRACE_LEAVE()   around each access: what keeps other threads and interrupts out
 * APP_TRACE_TICKS()                      a counter of 32 bits, where there is one,
 * APP_TRACE_TICKS_PER_SECOND             and its frequency
 * APP_TRACE_ARENA                        bytes of the heap, where they are known
 * APP_TRACE_THREAD()                     32 bits that identify the thread, if there are several
 * APP_TRACE_CALLER()                     what called the heap, other than the caller of the platform's function
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
_Static_assert((APP_TRACE_OBJECTS & (APP_TRACE_OBJECTS - 1)) == 0 && APP_TRACE_OBJECTS >= 8,
               "APP_TRACE_OBJECTS must be a power of two, 8 or more");
_Static_assert((APP_TRACE_RECORDS & (APP_TRACE_RECORDS - 1)) == 0 && APP_TRACE_RECORDS >= 16,
               "APP_TRACE_RECORDS must be a power of two, 16 or more");

/* A record is a word, and one of kind (2 bits), ticks since the record before (10) and size (20). The word of a
 * malloc or calloc is an address, or 0: the request failed. */
enum { TRACE_MALLOC, TRACE_CALLOC, TRACE_OTHER, TRACE_WIDE };
/* The lowest four bits of the "size" of a record of TRACE_OTHER; above them is the size of the object that is freed or
 * resized, as far as it is known. After TRACE_RESIZED comes a TRACE_MALLOC of what the object is now. The malloc of
 * what TRACE_STRAY frees was lost. Where calls are missing, six records say how many; how many more objects live, of
 * those whose mallocs were lost, and how many more bytes; how many others were freed, and their bytes; and how far the
 * live bytes rose in between. */
enum {
    TRACE_FREED,
    TRACE_RESIZING,
    TRACE_RESIZED,
    TRACE_THREAD,
    TRACE_LOST = 8,
    TRACE_LOST_END = TRACE_LOST + 6,
    TRACE_STRAY = TRACE_LOST_END,
    TRACE_SITE
};

enum {
    TRACE_TICK_BITS = 10,
    TRACE_SIZE_BITS = 20,
    TRACE_MOST = 12 /* records of one call of a function here, and of what is lost after it */
};
#define TRACE_CROWDED 0x80000000u /* with the number of missing calls: some objects had no room in the table */
#define TRACE_NOBODY 0xffffffffu  /* the thread of the last record if that one reports lost calls */

struct app_trace_ring app_trace_ring = {0x48577472u, APP_TRACE_RECORDS, APP_TRACE_TICKS_PER_SECOND, 0, 0, 0, 0, 0,
                                        {{0}}};

/* The live objects, found by address: open addressing with linear probing. `known` is the size << 2, with a
 * bit for a malloc that was lost, and one that is always set. */
static struct {
    uint32_t place, known;
} trace_object[APP_TRACE_OBJECTS];
static uint32_t trace_objects;  /* that have a place there */
static uint32_t trace_homeless; /* objects that found none */

static uint32_t trace_home(uint32_t place)
{
    return (place * 0x9e3779b1u >> 12) % APP_TRACE_OBJECTS;
}

/* Where the object is, or would be put. */
static uint32_t trace_find(uint32_t place)
{
    uint32_t at = trace_home(place);
    while (trace_object[at].place != place && trace_object[at].place != 0) {
        at = (at + 1) % APP_TRACE_OBJECTS;
    }
    return at;
}

/* `at` is what trace_find() says. */
static void trace_know(uint32_t at, uint32_t place, uint32_t known)
{
    if (trace_object[at].place == 0) {
        if (trace_objects >= APP_TRACE_OBJECTS / 8 * 7) {
            trace_homeless++;
            return;
        }
        trace_objects++;
    }
    trace_object[at].place = place;
    trace_object[at].known = known;
}

/* What is known of an object, and no longer; 0 where nothing is. Those behind it move up (Knuth 6.4, algorithm R). */
static uint32_t trace_forget(uint32_t place)
{
    uint32_t hole = trace_find(place), at = hole;
    const uint32_t known = trace_object[hole].known;
    if (known == 0) {
        return 0;
    }
    for (;;) {
        at = (at + 1) % APP_TRACE_OBJECTS;
        if (trace_object[at].place == 0) {
            break;
        }
        if ((at - trace_home(trace_object[at].place)) % APP_TRACE_OBJECTS >= (at - hole) % APP_TRACE_OBJECTS) {
            trace_object[hole].place = trace_object[at].place;
            trace_object[hole].known = trace_object[at].known;
            hole = at;
        }
    }
    trace_object[hole].place = trace_object[hole].known = 0;
    trace_objects--;
    return known;
}

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

static uint32_t *trace_mark(uint32_t number)
{
    return app_trace_ring.record[(app_trace_ring.end - 6u + number) % APP_TRACE_RECORDS];
}

/* There is no room for a call: the last six records count it. */
TRACE_SELDOM static void trace_lose(void)
{
    app_trace_ring.lost++;
    if (app_trace_ring.thread != TRACE_NOBODY) {
        app_trace_ring.thread = TRACE_NOBODY;
        app_trace_ring.end += 6;
        for (uint32_t k = 0; k < 6; k++) {
            trace_mark(k)[0] = 0;
            trace_mark(k)[1] = TRACE_OTHER | (TRACE_LOST + k) << (32 - TRACE_SIZE_BITS);
        }
    }
    trace_mark(0)[0] = (trace_mark(0)[0] + 1u) | (trace_homeless != 0 ? TRACE_CROWDED : 0u);
}

/* They count an object that came, whose `known` says that its malloc was lost, or one that went. */
TRACE_SELDOM static void trace_count(uint32_t known, int came)
{
    const uint32_t stray = known >> 1 & 1u, size = known >> 2;
    trace_mark(stray ? 1 : 3)[0] += stray && !came ? 0u - 1u : 1u;
    trace_mark(stray ? 2 : 4)[0] += stray && !came ? 0u - size : size;
    const int32_t rise = (int32_t)(trace_mark(2)[0] - trace_mark(4)[0]);
    if (rise > (int32_t)trace_mark(5)[0]) {
        trace_mark(5)[0] = (uint32_t)rise;
    }
}

#endif

/* Whether there is room for one call, and records of its thread and site where these are others than before. */
static int trace_begin(uint32_t site)
{
    if (APP_TRACE_RECORDS - (app_trace_ring.end - app_trace_ring.begin) < TRACE_MOST) {
#if APP_TRACE_NEWEST
        app_trace_ring.lost++;
        app_trace_ring.begin = app_trace_ring.end + TRACE_MOST - APP_TRACE_RECORDS;
#else
        trace_lose();
        return 0;
#endif
    }
    const uint32_t thread = APP_TRACE_THREAD();
    if (thread != app_trace_ring.thread) {
        app_trace_ring.thread = thread;
        trace_put(thread, TRACE_OTHER | (uint32_t)TRACE_THREAD << (32 - TRACE_SIZE_BITS));
    }
#if APP_TRACE_SITES
    static uint32_t latest;
#ifdef __thumb__
    site &= ~1u;
#endif
    if (site != 0 && site != latest) {
        latest = site;
        trace_put(site, TRACE_OTHER | (uint32_t)TRACE_SITE << (32 - TRACE_SIZE_BITS));
    }
#else
    (void)site;
#endif
    return 1;
}

/* An object was freed; `known` is what is recorded of it. */
static void trace_gone(uint32_t word, uint32_t known, int room)
{
#if !APP_TRACE_NEWEST
    if (!room) {
        trace_count(known, 0);
        return;
    }
#endif
    (void)room;
    trace_note(word, TRACE_OTHER, ((known & 2u) != 0 ? TRACE_STRAY : TRACE_FREED) | known >> 2 << 4);
}

static void trace_came(uint32_t at, uint32_t word, uint32_t kind, uint32_t size, int room)
{
    trace_know(at, word, size << 2 | (room ? 1u : 3u));
#if !APP_TRACE_NEWEST
    if (!room) {
        trace_count(size << 2 | 3u, 1);
        return;
    }
#endif
    trace_note(word, kind, size);
}

/* A request failed; one of no bytes may return NULL without. */
TRACE_SELDOM static void trace_failed(uint32_t kind, uint32_t size, uint32_t site)
{
    if (size == 0) {
        return;
    }
    APP_TRACE_ENTER();
    if (trace_begin(site)) {
        trace_note(0, kind, size);
    }
    APP_TRACE_LEAVE();
}

/* An object came, other than by a realloc; where one is known to be there already, that was freed unseen. */
static void trace_allocated(const void *pointer, uint32_t kind, uint32_t size, uint32_t site)
{
    const uint32_t word = (uint32_t)(uintptr_t)pointer;
    if (pointer == NULL) {
        trace_failed(kind, size, site);
        return;
    }
    APP_TRACE_ENTER();
    const int room = trace_begin(site);
    uint32_t at = trace_find(word);
    if (trace_object[at].place != 0) {
        trace_gone(word, trace_forget(word), room);
        at = trace_find(word);
    }
    trace_came(at, word, kind, size, room);
    APP_TRACE_LEAVE();
}

/* While a realloc runs its object has no owner: its entry is kept under an odd address. */
static void trace_resized(const void *from, const void *pointer, uint32_t size, uint32_t site)
{
    const uint32_t was = (uint32_t)(uintptr_t)from, word = (uint32_t)(uintptr_t)pointer;
    if (from == NULL) {
        trace_allocated(pointer, TRACE_MALLOC, size, site);
        return;
    }
    APP_TRACE_ENTER();
    const int room = trace_begin(site);
    const uint32_t aside = trace_forget(was | 1u), known = aside != 0 ? aside : trace_forget(was);
    const int failed = pointer == NULL && size != 0;
    if (failed && known != 0) {
        trace_know(trace_find(was), was, known);
    }
    if (room) {
        trace_note(was, TRACE_OTHER, TRACE_RESIZED | (failed ? 0u : known >> 2 << 4));
        trace_note(word, TRACE_MALLOC, size);
        if (pointer != NULL) {
            trace_know(trace_find(word), word, size << 2 | 1u);
        }
    } else if (!failed) {
        trace_gone(was, known, room);
        if (pointer != NULL) {
            trace_came(trace_find(word), word, TRACE_MALLOC, size, room);
        }
    }
    APP_TRACE_LEAVE();
}

/* Where in the program the call is; a platform says it where its heap is called by others of its own. */
#if !APP_TRACE_SITES
#define TRACE_CALLER() 0u
#elif defined(APP_TRACE_CALLER)
#define TRACE_CALLER() ((uint32_t)(uintptr_t)(APP_TRACE_CALLER()))
#else
#define TRACE_CALLER() ((uint32_t)(uintptr_t)__builtin_return_address(0))
#endif

void app_trace_allocated(const void *pointer, size_t size)
{
    trace_allocated(pointer, TRACE_MALLOC, (uint32_t)size, TRACE_CALLER());
}

void app_trace_cleared(const void *pointer, size_t size)
{
    trace_allocated(pointer, TRACE_CALLOC, (uint32_t)size, TRACE_CALLER());
}

void app_trace_freed(const void *pointer)
{
    const uint32_t word = (uint32_t)(uintptr_t)pointer;
    if (pointer != NULL) {
        APP_TRACE_ENTER();
        const int room = trace_begin(0);
        trace_gone(word, trace_forget(word), room);
        APP_TRACE_LEAVE();
    }
}

void app_trace_resizing(const void *from)
{
    const uint32_t word = (uint32_t)(uintptr_t)from;
    if (from != NULL) {
        APP_TRACE_ENTER();
        if (trace_begin(0)) {
            trace_note(word, TRACE_OTHER, TRACE_RESIZING);
        }
        const uint32_t known = trace_forget(word);
        if (known != 0) {
            trace_know(trace_find(word | 1u), word | 1u, known);
        }
        APP_TRACE_LEAVE();
    }
}

void app_trace_resized(const void *from, const void *pointer, size_t size)
{
    trace_resized(from, pointer, (uint32_t)size, TRACE_CALLER());
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
    call->kind = call->word = call->size = call->ticks = call->from = call->gone = 0;
    call->lost[0] = call->lost[1] = call->lost[2] = call->lost[3] = call->lost[4] = call->lost[5] = 0;
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
        if (call->kind != TRACE_OTHER) {
            continue;
        }
        call->gone = call->size >> 4;
        call->size &= 15u;
        if (call->size == TRACE_RESIZED) {
            call->from = call->word;
            found = 0;
        } else if (call->size == TRACE_SITE) {
            trace_sent.site = call->word;
            found = 0;
        } else if (call->size >= TRACE_LOST && call->size < TRACE_LOST_END) {
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
    if (trace_sent.lines % LINE_HEADER_EVERY == 0 && app_trace_ring.begin != app_trace_ring.end) {
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
    if (trace_sent.lost != app_trace_ring.lost) {
        line_header(line);
    }
}

#if APP_TRACE_SITES
/* For what follows, the calls of its functions: the site is where they are called, and not they. */
#define app_trace_allocated(pointer, size) trace_allocated(pointer, TRACE_MALLOC, (uint32_t)(size), TRACE_CALLER())
#define app_trace_cleared(pointer, size) trace_allocated(pointer, TRACE_CALLOC, (uint32_t)(size), TRACE_CALLER())
#define app_trace_resized(from, pointer, size) trace_resized(from, pointer, (uint32_t)(size), TRACE_CALLER())
#endif
