/* Makes the calls that it reads, of four words each (kind, object, size, ticks), and prints what app_trace_drain()
 * hands out where a word of DRAIN says so. Objects lie where malloc() of this machine puts them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t ticks, current;

#define APP_TRACE_ENTER() ((void)0)
#define APP_TRACE_LEAVE() ((void)0)
#define APP_TRACE_TICKS() ticks
#define APP_TRACE_TICKS_PER_SECOND 1000u
#define APP_TRACE_THREAD() current
#define APP_TRACE_ARENA 0x40000000u

#include "app_trace_ring.h"

#ifndef HEAP_BYTES
#define HEAP_BYTES 0xffffffffu /* of live objects; a request of more fails */
#endif

static uint32_t size_of[1 << 20], live;

/* Whether the heap has room for `size` bytes more. */
static int fits(uint32_t size)
{
    return size <= HEAP_BYTES && live <= HEAP_BYTES - size;
}

enum { MALLOC, CALLOC, REALLOC, FREE, DRAIN, DRAIN_SOME, THREAD };

static void put(const char *text)
{
    fputs(text, stdout);
}

int main(void)
{
    static void *object[1 << 20];
    uint32_t call[4];
    while (fread(call, sizeof call, 1, stdin) == 1) {
        void **place = &object[call[1] % (1u << 20)];
        uint32_t *size = &size_of[call[1] % (1u << 20)];
        void *moved;
        ticks = call[3];
        switch (call[0]) {
        case MALLOC:
            *place = fits(call[2]) ? malloc(call[2]) : NULL;
            app_trace_allocated(*place, call[2]);
            live += *size = *place != NULL ? call[2] : 0;
            break;
        case CALLOC:
            *place = fits(call[2]) ? calloc(1, call[2]) : NULL;
            app_trace_cleared(*place, call[2]);
            live += *size = *place != NULL ? call[2] : 0;
            break;
        case REALLOC:
            moved = fits(call[2]) ? malloc(call[2]) : NULL; /* what it held does not matter */
            app_trace_resized(*place, moved, call[2]);
            if (moved != NULL) {
                free(*place);
                *place = moved;
                live += call[2] - *size;
                *size = call[2];
            }
            break;
        case FREE:
            app_trace_freed(*place);
            free(*place);
            *place = NULL;
            live -= *size;
            *size = 0;
            break;
        case DRAIN:
            app_trace_drain(put);
            break;
        case DRAIN_SOME:
            app_trace_drain_some(put, call[1]);
            break;
        case THREAD:
            current = call[1];
            break;
        default:
            return 1;
        }
    }
    app_trace_drain(put);
    return 0;
}
