/* A program whose heap calls are known: the C library's, directly and through others, under newlib and picolibc. It
 * prints what its ring has, or, compiled with TIMED, what 1,000 mallocs and frees take in ticks of the processor's
 * timer. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drain.h"

#ifndef __PICOLIBC__
enum { HEAP_BYTES = 1 << 19 };

/* The one of --specs=nosys.specs knows no end of memory. */
void *_sbrk(int bytes);
void *_sbrk(int bytes)
{
    static _Alignas(8) char heap[HEAP_BYTES];
    static int used;
    if (bytes > HEAP_BYTES - used) {
        return (void *)-1;
    }
    used += bytes;
    return heap + used - bytes;
}
#endif

#ifdef TIMED
enum { CALLS = 1000, MOST_TICKS = 0xffffff };

#define SYST_CSR (*(volatile uint32_t *)0xe000e010)
#define SYST_RVR (*(volatile uint32_t *)0xe000e014)
#define SYST_CVR (*(volatile uint32_t *)0xe000e018)

static void run(void)
{
    static void *volatile object;
    object = malloc(24);
    SYST_RVR = MOST_TICKS;
    SYST_CVR = 0;
    SYST_CSR = 5;
    const uint32_t begin = SYST_CVR;
    for (unsigned i = 0; i < CALLS; i++) {
        free(object);
        object = malloc(24);
    }
    printf("%u ticks\n", (unsigned)((begin - SYST_CVR) & MOST_TICKS));
}

#else

static void run(void)
{
    char *text = malloc(24);
    uint32_t *cleared = calloc(3, 40);
    text = realloc(text, 2000000);
    text = realloc(text, 5);
    void *aligned = memalign(64, 100);
    strcpy(text, "copy");
    char *copy = strdup(text);
    free(cleared);
    free(text);
    free(NULL);
    free(realloc(NULL, 77));
    static volatile size_t huge = SIZE_MAX / 4;
    free(malloc(huge));
    copy = realloc(copy, 6);
    if (realloc(copy, huge) == NULL) {
        free(copy);
    }
    free(aligned);
}

#endif

int main(void)
{
    run();
    drain();
    return 0;
}
