/* kept.c: see kept.h. */
#define _GNU_SOURCE
#include "kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { MOST_KEPT = 1 << 25 }; /* bytes touched */

struct stretch {
    void *memory;
    size_t bytes;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

static void unmap_all(void *kept)
{
    struct stretch *stretches = kept;
    for (int kind = 0; kind < HW_KEPT_KINDS; kind++) {
        if (stretches[kind].memory) {
            munmap(stretches[kind].memory, stretches[kind].bytes);
        }
    }
    free(kept);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, unmap_all) == 0;
}

/* What the calling thread keeps, one stretch of a kind; NULL where that is impossible. */
static struct stretch *kept_by_thread(void)
{
    (void)pthread_once(&once, make_key);
    if (!has_key) {
        return NULL;
    }
    struct stretch *stretches = pthread_getspecific(key);
    if (stretches == NULL) {
        stretches = calloc(HW_KEPT_KINDS, sizeof *stretches);
        if (stretches && pthread_setspecific(key, stretches) != 0) {
            free(stretches);
            stretches = NULL;
        }
    }
    return stretches;
}

void *hw_take_kept(enum hw_kept kind, size_t bytes)
{
    struct stretch *kept = kept_by_thread();
    if (kept && kept[kind].memory) {
        const struct stretch found = kept[kind];
        kept[kind].memory = NULL;
        if (found.bytes == bytes) {
            return found.memory;
        }
        munmap(found.memory, found.bytes);
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    return memory;
}

void hw_give_back(enum hw_kept kind, void *memory, size_t bytes, size_t used)
{
    struct stretch *kept = kept_by_thread();
    if (kept == NULL || kept[kind].memory != NULL || used > MOST_KEPT) {
        munmap(memory, bytes);
        return;
    }
    kept[kind].memory = memory;
    kept[kind].bytes = bytes;
}
