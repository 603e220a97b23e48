/* memory_pool.c: see kept.h. */
#define _GNU_SOURCE
#include "kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    MOST_KEPT = 1 << 28, /* bytes touched */
    SPARE = 4            /* stretches of a kind: heaps of several pools take more than one */
};

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
    for (int i = 0; i < HW_KEPT_KINDS * SPARE; i++) {
        if (stretches[i].memory) {
            munmap(stretches[i].memory, stretches[i].bytes);
        }
    }
    free(kept);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, unmap_all) == 0;
}

/* What the calling thread keeps of a kind; NULL where that is impossible. */
static struct stretch *kept_by_thread(enum hw_kept kind)
{
    (void)pthread_once(&once, make_key);
    if (!has_key) {
        return NULL;
    }
    struct stretch *stretches = pthread_getspecific(key);
    if (stretches == NULL) {
        stretches = calloc((size_t)HW_KEPT_KINDS * SPARE, sizeof *stretches);
        if (stretches && pthread_setspecific(key, stretches) != 0) {
            free(stretches);
            stretches = NULL;
        }
    }
    return stretches ? stretches + (size_t)kind * SPARE : NULL;
}

/* Bytes of address space to reserve for a heap: the same for nearly all sizes, so that the next heap can reuse the
 * mapping. */
static size_t space_for(size_t bytes)
{
    size_t space = (size_t)1 << 30;
    while (space < bytes) {
        space *= 2u;
    }
    return space;
}

void *hw_take_kept(enum hw_kept kind, size_t bytes)
{
    const size_t space = space_for(bytes);
    struct stretch *kept = kept_by_thread(kind);
    for (int i = 0; kept && i < SPARE; i++) {
        if (kept[i].memory && kept[i].bytes == space) {
            void *found = kept[i].memory;
            kept[i].memory = NULL;
            return found;
        }
    }
    void *memory = mmap(NULL, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    return memory;
}

void hw_give_back(enum hw_kept kind, void *memory, size_t bytes, size_t used)
{
    struct stretch *kept = used > MOST_KEPT ? NULL : kept_by_thread(kind);
    struct stretch given = {memory, space_for(bytes)};
    struct stretch *place = NULL;
    for (int i = 0; kept && i < SPARE; i++) {
        if (kept[i].memory == NULL || (place == NULL && kept[i].bytes != given.bytes)) {
            place = &kept[i];
        }
    }
    if (place) {
        const struct stretch other = *place; /* none, or one that the last heaps did not want */
        *place = given;
        given = other;
    }
    if (given.memory) {
        munmap(given.memory, given.bytes);
    }
}
