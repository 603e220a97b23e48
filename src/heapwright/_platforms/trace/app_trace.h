/* app_trace.h: the heap calls of a program, recorded in a ring of RAM for `heapwright import`.
 *
 * A record is 8 bytes: a call has one, a realloc three; a time or a size too large for one, and a change of thread or
 * site, take one more. Functions may be called from any thread; what they wait for is the platform's business.
 */
#ifndef APP_TRACE_H
#define APP_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* How many records there is room for; a power of two. */
#ifndef APP_TRACE_RECORDS
#define APP_TRACE_RECORDS 1024
#endif

/* What a full ring does: 0 counts further calls as lost until it is drained, 1 drops the oldest records. */
#ifndef APP_TRACE_NEWEST
#define APP_TRACE_NEWEST 0
#endif

/* Of how many live objects the size is known, 8 bytes each; a power of two. While they are no more than 7 of 8, what is
 * lost leaves the peak as it was. */
#ifndef APP_TRACE_OBJECTS
#define APP_TRACE_OBJECTS 512
#endif

/* 1 records where in the program each malloc, calloc and realloc is. */
#ifndef APP_TRACE_SITES
#define APP_TRACE_SITES 0
#endif

/* What a debugger dumps, whole. The first four words identify the format for `heapwright import`. */
struct app_trace_ring {
    uint32_t magic;
    uint32_t records;
    uint32_t ticks_per_second;
    uint32_t lost;  /* calls that are not, or no longer, in the ring */
    uint32_t begin; /* records written before the oldest that is here; record k is at k % records */
    uint32_t end;   /* records written */
    uint32_t now;   /* ticks of the last record */
    uint32_t thread;
    uint32_t record[APP_TRACE_RECORDS][2];
};

extern struct app_trace_ring app_trace_ring;

/* An object of `size` bytes now lies at `pointer`; where that is NULL, the request of these bytes failed. O(1). */
void app_trace_allocated(const void *pointer, size_t size);
/* As app_trace_allocated(), of a calloc. */
void app_trace_cleared(const void *pointer, size_t size);
/* The object at `pointer` is about to be freed. O(1). */
void app_trace_freed(const void *pointer);
/* The object at `from` is about to be resized, and then is: `size` bytes at `pointer`, or as it was where that is NULL.
 * Then the request of these bytes failed. */
void app_trace_resizing(const void *from);
void app_trace_resized(const void *from, const void *pointer, size_t size);

/* Hands all calls out as lines of text, each with its end and of at most 244 characters, and makes room for more.
 *
 * For one thread at a time, that holds no lock that a heap call takes. Where others keep making calls it goes on until
 * it has caught up. `line` may not keep the text. */
void app_trace_drain(void (*line)(const char *text));
/* As app_trace_drain(), but at most `calls` calls and changes of thread; returns how many records are left.
 *
 * For an idle hook, which must not take long. 32 calls fill a line, fewer take more characters a call. */
uint32_t app_trace_drain_some(void (*line)(const char *text), uint32_t calls);

#endif
