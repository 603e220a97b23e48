/* watched.c: one fault on a heap that AddressSanitizer or Valgrind watches.
 *
 *     watched FAULT...
 *
 * Each fault is made by a fork of its own; before it stderr has its name, and after it stdout how the fork ended.
 * `none` does much that is allowed, and nothing that is not. The line of each fault ends with its name. With -DLOW
 * requests have low priority, with -DSITE they are of a call site.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app_heap.h"

#ifdef LOW
#define app_malloc app_malloc_low
#define app_realloc app_realloc_low
#endif
#ifdef SITE
#define app_malloc(heap, size) app_malloc_at(heap, APP_SITE_HERE, size)
#define app_calloc(heap, count, size) app_calloc_at(heap, APP_SITE_HERE, count, size)
#endif

enum { ARENA = 1 << 16, OBJECTS = 64 };

_Alignas(64) static unsigned char arena[ARENA];

static struct app_heap *heap;

/* A program that grows, shrinks, moves and frees objects, and writes all of each. */
static void be_good(void)
{
    unsigned char *objects[OBJECTS] = {0};
    size_t sizes[OBJECTS] = {0};
    uint32_t state = 1;
    for (int step = 0; step < 20000; step++) {
        state = state * 1664525u + 1013904223u;
        const uint32_t i = state >> 26;
        const size_t size = 1u + (state >> 8) % 700u;
        unsigned char *object = NULL;
        if (step % 5 == 0) {
            object = app_realloc(heap, objects[i], size);
            for (size_t k = 0; object && k < size && k < sizes[i]; k++) {
                if (object[k] != (unsigned char)(i + k)) {
                    printf("an object was lost\n");
                }
            }
        } else if (objects[i]) {
            app_free(heap, objects[i]);
            objects[i] = NULL;
            sizes[i] = 0;
        } else {
            object = step % 3 == 0 ? app_calloc(heap, 1, size) : app_malloc(heap, size);
        }
        if (object) {
            objects[i] = object;
            sizes[i] = size;
            for (size_t k = 0; k < size; k++) {
                object[k] = (unsigned char)(i + k);
            }
        }
    }
    for (int i = 0; i < OBJECTS; i++) {
        app_free(heap, objects[i]);
    }
    unsigned char *aligned = app_aligned_alloc(heap, 128, 100);
    if (aligned) {
        memset(aligned, 1, 100);
    }
    unsigned char *whole = app_malloc(heap, 3);
    memset(whole, 1, app_usable_size(heap, whole));
    printf("check %d\n", app_check(heap));
}

static void make(const char *fault)
{
    volatile unsigned char outside = 0;
    unsigned char *volatile anywhere = arena;
    heap = app_init(arena, sizeof arena);
    volatile unsigned char *first = app_malloc(heap, 40);
    volatile unsigned char *object = app_malloc(heap, 40);
    volatile unsigned char *last = app_malloc(heap, 40);
    if (strcmp(fault, "none") == 0) {
        be_good();
    } else if (strcmp(fault, "double_free") == 0) {
        app_free(heap, (void *)object);
        app_free(heap, (void *)object); /* double_free */
    } else if (strcmp(fault, "foreign_free") == 0) {
        app_free(heap, (void *)&outside); /* foreign_free */
    } else if (strcmp(fault, "interior_free") == 0) {
        app_free(heap, (void *)(object + 16)); /* interior_free */
    } else if (strcmp(fault, "changed_header") == 0) {
        object[-4] ^= 8u; /* changed_header */
    } else if (strcmp(fault, "underflow") == 0) {
        object[-1] = 1; /* underflow */
    } else if (strcmp(fault, "overflow_1") == 0) {
        object[40] = 1; /* overflow_1 */
    } else if (strcmp(fault, "overflow_4") == 0) {
        *(volatile uint32_t *)(object + 40) = 1; /* overflow_4 */
    } else if (strcmp(fault, "overflow_16") == 0) {
        for (int i = 40; i < 56; i++) {
            object[i] = 1; /* overflow_16 */
        }
    } else if (strcmp(fault, "use_after_free") == 0) {
        app_free(heap, (void *)object);
        object[8] = 1; /* use_after_free */
    } else if (strcmp(fault, "wild_write") == 0) {
        anywhere[ARENA - 100] = 1; /* wild_write */
    } else if (strcmp(fault, "metadata_write") == 0) {
        anywhere[4] = 1; /* metadata_write */
    }
    (void)first;
    (void)last;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        fprintf(stderr, "fault %s\n", argv[i]);
        const pid_t fork_of_this = fork();
        if (fork_of_this == 0) {
            make(argv[i]);
            return 0;
        }
        int status = 0;
        waitpid(fork_of_this, &status, 0);
        printf("%s %d\n", argv[i], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        fflush(stdout);
    }
    return 0;
}
