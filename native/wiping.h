/* wiping.h: which pages of the arena a replay stores to, and what it need neither copy nor fill.
 *
 * A heap with checks reads payloads, where earlier replays may have left words that look like its own marks. So its
 * replay leaves the arena as it was before, all 0. Unmapping the pages would work too, but mapping them again costs
 * more than a short replay. */
#ifndef HW_WIPING_H
#define HW_WIPING_H

#include "listener.h"
#include <string.h>
#include "arena.h"
#include "kept.h"

enum { PAGES = (1u << (31 - PAGE_LOG2)) + 8u }; /* of the largest arena, and some to read words */

/* Room for the marks of all pages; NULL where there is no memory. */
static inline uint8_t *take_pages(void)
{
    return hw_take_kept(HW_KEPT_PAGES, PAGES);
}

static inline void note_stored(struct hw_heap *h, uint32_t at)
{
    if (h->engine.stored) {
        h->engine.stored[at >> PAGE_LOG2] = 1;
    }
}

/* Copies at least one byte. */
static inline void copy_bytes(struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    memmove(h->base + to, h->base + from, bytes);
    for (uint32_t page = to >> PAGE_LOG2; page <= (to + bytes - 1u) >> PAGE_LOG2; page++) {
        note_stored(h, page << PAGE_LOG2);
    }
}

static inline int skip_copying(struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (h->engine.copies && bytes) {
        copy_bytes(h, to, from, bytes);
    }
    return 1;
}

static inline int skip_mixing(struct hw_heap *h)
{
    return !h->engine.seen;
}

static inline int skip_bounds(struct hw_heap *h)
{
    h->reads += h->engine.bounds;
    h->engine.skipped += h->engine.bounds;
    return h->engine.bounds != 0;
}

/* Counts accesses of what fills memory that is no object's; 0 where they have to be made. */
static inline int count_filling(struct hw_heap *h, uint32_t accesses, const int stores)
{
    if (h->engine.copies) {
        return 0;
    }
    *(stores ? &h->writes : &h->reads) += accesses;
    h->engine.skipped += accesses;
    return 1;
}

static inline int skip_padding(struct hw_heap *h, uint32_t bytes, const int stores)
{
    return count_filling(h, bytes, stores);
}

static inline int skip_filling(const struct hw_policy *p, struct hw_heap *h, uint32_t words, const int stores)
{
    const uint32_t ends = 2u * HW_FILLED / 4u;
    const uint32_t stride = words / HW_SAMPLED + 1u;
    const uint32_t passed = stride > 1u ? (words - ends) / stride * (stride - 1u) : 0;
    return count_filling(h, (words - passed) * (p->guard.natural ? 1u : p->guard.bytes), stores);
}

/* Leaves the arena unwiped: a caller will inspect it. */
static inline void keep_arena(struct hw_heap *h)
{
    h->engine.seen = h->engine.copies = 1;
    if (h->engine.stored) {
        memset(h->engine.stored, 0, PAGES);
        hw_give_back(HW_KEPT_PAGES, h->engine.stored, PAGES, PAGES);
        h->engine.stored = NULL;
    }
}

/* Makes an arena of `bytes` bytes 0 again where it was stored to; 0 where that is not known. O(pages). */
static inline int wipe(struct hw_heap *h, size_t bytes)
{
    if (h->engine.stored == NULL) {
        return 0;
    }
    uint8_t *stored = h->engine.stored;
    for (size_t page = 0; page << PAGE_LOG2 < bytes; page += sizeof(uint64_t)) {
        uint64_t some;
        memcpy(&some, stored + page, sizeof some);
        for (size_t at = page; some && at < page + sizeof some; at++) {
            if (stored[at]) {
                const size_t from = at << PAGE_LOG2;
                const size_t page_bytes = (size_t)1 << PAGE_LOG2;
                memset(h->base + from, 0, bytes - from < page_bytes ? bytes - from : page_bytes);
                stored[at] = 0;
            }
        }
    }
    hw_give_back(HW_KEPT_PAGES, stored, PAGES, PAGES);
    return 1;
}

#endif
