/* app_regions.c: several regions of memory behind one set of calls, each an app_heap of its own. */
#include "app_regions.h"

static unsigned char *at_alignment(void *memory, size_t *bytes)
{
    const size_t skipped = (size_t)(-(uintptr_t)memory & (APP_ARENA_ALIGNMENT - 1u));
    *bytes = *bytes > skipped ? *bytes - skipped : 0;
    return (unsigned char *)memory + skipped;
}

struct app_heap *app_regions_add(struct app_regions *regions, void *memory, size_t bytes, unsigned kinds)
{
    if (memory == NULL || regions->count == APP_REGIONS_MOST) {
        return NULL;
    }
    unsigned char *arena = at_alignment(memory, &bytes);
    struct app_heap *heap = app_init(arena, bytes);
    if (heap != NULL) {
        regions->region[regions->count].heap = heap;
        regions->region[regions->count].kinds = kinds;
        regions->count++;
    }
    return heap;
}

static int has(const struct app_regions *regions, unsigned i, unsigned kinds)
{
    return (regions->region[i].kinds & kinds) == kinds;
}

void *app_regions_aligned_alloc(struct app_regions *regions, size_t alignment, size_t size, unsigned kinds)
{
    void *memory = NULL;
    for (unsigned i = 0; i < regions->count && memory == NULL; i++) {
        if (has(regions, i, kinds)) {
            memory = app_aligned_alloc(regions->region[i].heap, alignment, size);
        }
    }
    return memory;
}

void *app_regions_malloc(struct app_regions *regions, size_t size, unsigned kinds)
{
    void *memory = NULL;
    for (unsigned i = 0; i < regions->count && memory == NULL; i++) {
        if (has(regions, i, kinds)) {
            memory = app_malloc(regions->region[i].heap, size);
        }
    }
    return memory;
}

void *app_regions_calloc(struct app_regions *regions, size_t count, size_t size, unsigned kinds)
{
    void *memory = NULL;
    for (unsigned i = 0; i < regions->count && memory == NULL; i++) {
        if (has(regions, i, kinds)) {
            memory = app_calloc(regions->region[i].heap, count, size);
        }
    }
    return memory;
}

/* The number of the region that an object came from; the number of regions where it came from none. */
static unsigned region_of(const struct app_regions *regions, const void *pointer)
{
    unsigned i = 0;
    while (i < regions->count && !app_owns(regions->region[i].heap, pointer)) {
        i++;
    }
    return i;
}

static void copy(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = from[i];
    }
}

void *app_regions_realloc(struct app_regions *regions, void *pointer, size_t size, unsigned kinds)
{
    if (pointer == NULL) {
        return app_regions_malloc(regions, size, kinds);
    }
    const unsigned i = region_of(regions, pointer);
    if (i == regions->count) {
        return NULL;
    }
    void *memory = has(regions, i, kinds) ? app_realloc(regions->region[i].heap, pointer, size) : NULL;
    if (memory != NULL) {
        return memory;
    }
    memory = app_regions_malloc(regions, size, kinds);
    if (memory != NULL) {
        const size_t had = app_usable_size(regions->region[i].heap, pointer);
        copy(memory, pointer, had < size ? had : size);
        app_free(regions->region[i].heap, pointer);
    }
    return memory;
}

int app_regions_free(struct app_regions *regions, void *pointer)
{
    if (pointer == NULL) {
        return 0;
    }
    const unsigned i = region_of(regions, pointer);
    if (i == regions->count) {
        return -1;
    }
    app_free(regions->region[i].heap, pointer);
    return 0;
}

struct app_heap *app_regions_owner(const struct app_regions *regions, const void *pointer)
{
    const unsigned i = region_of(regions, pointer);
    return i < regions->count ? regions->region[i].heap : NULL;
}

size_t app_regions_largest_free(const struct app_regions *regions, unsigned kinds, uint32_t looks)
{
    size_t largest = 0;
    for (unsigned i = 0; i < regions->count; i++) {
        const size_t here = has(regions, i, kinds) ? app_largest_free(regions->region[i].heap, looks) : 0;
        largest = here > largest ? here : largest;
    }
    return largest;
}
