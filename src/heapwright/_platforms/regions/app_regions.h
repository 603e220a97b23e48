/* app_regions.h: several regions of memory behind one set of calls.
 *
 * Each region is an app_heap of its own, of the same recipe. The program describes a region by bits of its own, such as
 * FAST = 1, DMA = 2, EXTERNAL = 4; a request names the bits it needs. Regions are tried in the order in which they were
 * added. Thread safety is that of the recipe's `threads`, except that regions are added by one thread, with no other
 * call at the same time.
 */
#ifndef APP_REGIONS_H
#define APP_REGIONS_H

#include "app_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most regions that there can be. */
#ifndef APP_REGIONS_MOST
#define APP_REGIONS_MOST 4u
#endif

/* The regions; all zero at first. */
struct app_regions {
    struct {
        struct app_heap *heap;
        unsigned kinds;
    } region[APP_REGIONS_MOST];
    unsigned count;
};

/* Adds the `bytes` bytes at `memory`, which may be aligned to anything, as a region of these kinds. Returns its heap,
 * for app_statistics() and its like, or NULL where they are too few for the heap's own data or there are too many
 * regions. */
struct app_heap *app_regions_add(struct app_regions *regions, void *memory, size_t bytes, unsigned kinds);

/* Memory for `size` bytes in the first region that has all these kinds, 0 for any, and can serve it; otherwise NULL.
 * Each region that could not counts a failed request. */
void *app_regions_malloc(struct app_regions *regions, size_t size, unsigned kinds);

/* The same for `count` objects of `size` bytes, all zero. */
void *app_regions_calloc(struct app_regions *regions, size_t count, size_t size, unsigned kinds);

/* The same at a multiple of `alignment`, a power of two; beyond the recipe's only pools with headers serve it. */
void *app_regions_aligned_alloc(struct app_regions *regions, size_t alignment, size_t size, unsigned kinds);

/* Makes an object `size` bytes large, in its own region where that has these kinds and room for it, else in another.
 * Returns NULL where there is no room: the object then lives on as it was. */
void *app_regions_realloc(struct app_regions *regions, void *pointer, size_t size, unsigned kinds);

/* Gives an object back to the region that it came from; NULL is allowed. Returns 0, or -1 where it came from none, and
 * nothing is done. O(regions). */
int app_regions_free(struct app_regions *regions, void *pointer);

/* The heap that an object came from, or NULL. O(regions). */
struct app_heap *app_regions_owner(const struct app_regions *regions, const void *pointer);

/* The largest request that these kinds could serve now, by an inspection of at most `looks` free blocks of each region.
 */
size_t app_regions_largest_free(const struct app_regions *regions, unsigned kinds, uint32_t looks);

#ifdef __cplusplus
}
#endif

#endif
