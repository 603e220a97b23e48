/* pool_pages.h: pages of objects of one size, without headers.
 *
 *     | other pools ->        <- limit | page 3      | page 2      | page 1      | end of the arena
 *
 *     page:  | object | object | ... | free objects, a bit each | class, used | next, previous page |
 *                                    ^ room
 *
 * Pages have one size, a power of two, and lie back to back at the arena's end, so that an address tells its page, and
 * the page's description the size of all its objects: they have no headers. A page belongs to a class as long as one of
 * its objects is in use. A bit tells where a free object begins: nothing is stored in payloads, a second free shows,
 * and the free object that lies lowest is taken. Pages with a free object are in a list of their class, the one that
 * was full last first.
 *
 * An empty page serves any class. Those side by side are a run, listed by its lowest page; both ends tell its length,
 * so that neighbours merge in O(1), as blocks with boundary tags do. The page nearest to the arena's end is taken
 * first. A run at the limit goes back to the memory between, where other pools may grow over it. Memory that was never
 * used is taken last, and nothing looks at how much of it there is until it ends: the largest sum ever of both sides is
 * the arena that serves the same requests in the same way.
 *
 * The description lies in its page, behind the objects: in a table elsewhere it would need memory that grows with the
 * arena, in front it would push objects off their alignment, and what objects leave of a page often holds it.
 *
 * Sources: Bonwick 1994, "The slab allocator" (one size a slab, empty slabs given back); McKenney and Slingwine 1993 (a
 * page's free objects counted beside them); Evans 2006, "A scalable concurrent malloc(3) implementation" (runs with a
 * bitmap, the lowest object first); Leijen, Zorn and de Moura 2019, "Mimalloc" (pages found by address).
 */
#ifndef HW_POOL_PAGES_H
#define HW_POOL_PAGES_H

#include "pages/check.h"

/* ---- the arena's end --------------------------------------------------------------------------------------------- */

/* Counts what was given back, and taken again, so that the peak tells the largest sum of both sides. */
static inline void pages_count_given(const struct hw_pages *s, struct hw_heap *h, uint32_t given)
{
    store4(h, s->given_at, given);
    store4(h, s->seen_at, load4(h, s->high_at));
}

/* A new page at the limit: its number, or 0 where the arena is too small. */
static inline uint32_t pages_extend(const struct hw_pages *s, struct hw_heap *h, uint32_t end)
{
    if (!pages_can_grow(s, h)) {
        return 0;
    }
    const uint32_t page = (uint32_t)1 << s->page_log2;
    const uint32_t limit = load4(h, s->limit_at) - page;
    const uint32_t given = pages_given(s, h);
    pages_count_given(s, h, given - smaller(given, page));
    store4(h, s->limit_at, limit);
    note_shared_covered(h, page);
    note_block_made(h, page - s->room);
    return (end - limit) >> s->page_log2;
}

/* Gives the pages from `first` on, which are empty, back to the memory between. */
static inline void pages_give_back(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t first)
{
    const uint32_t limit = page_at(s, end, first - 1u);
    const uint32_t given = limit - load4(h, s->limit_at);
    pages_count_given(s, h, pages_given(s, h) + given);
    store4(h, s->limit_at, limit);
    note_returned(h, given);
    note_block_gone(h, (given >> s->page_log2) * (((uint32_t)1 << s->page_log2) - s->room));
}

/* ---- runs of empty pages ----------------------------------------------------------------------------------------- */

static inline void store_run(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t first, uint32_t last)
{
    HW_ASSERT(first != 0 && first <= last && last < pages_made(s, h, end));
    store_state(s, h, page_at(s, end, first), s->count, last + 1u - first);
    store_state(s, h, page_at(s, end, last), s->count, last + 1u - first);
}

/* Whether a run that one end tells to have so many pages does end there; what does not is counted. */
HW_COLD int may_be_run(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t first, uint32_t pages)
{
    const uint32_t made = pages_made(s, h, end);
    if (first != 0 && first <= made && pages <= made + 1u - first &&
        load_state(s, h, page_at(s, end, first)) == (pages << 8 | s->count) &&
        load_state(s, h, page_at(s, end, first + pages - 1u)) == (pages << 8 | s->count)) {
        return 1;
    }
    count_misuse(s->links.misused_at, h);
    return 0;
}

/* Pages of the run that ends with page k; 0 where that is none, or in use. */
static inline uint32_t run_at(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t k)
{
    const uint32_t state = load_state(s, h, page_at(s, end, k));
    return state_class(state) == s->count ? state_used(state) : 0;
}

/* An empty page, which leaves its run: its number, or 0 where there is none. */
static inline uint32_t take_empty(const struct hw_pages *s, struct hw_heap *h, uint32_t end)
{
    const uint32_t last = load_first(s, h, s->count);
    if (last == 0 || (s->links.hardened && !page_may_serve(s, h, end, s->count, last))) {
        return 0;
    }
    const uint32_t pages = run_at(s, h, end, last);
    const uint32_t first = last + 1u - pages;
    if (s->links.hardened && (pages == 0 || !may_be_run(s, h, end, first, pages))) {
        return 0;
    }
    HW_ASSERT(pages != 0 && pages <= last);
    if (pages == 1u) {
        (void)page_unlink(s, h, end, s->count, last);
    } else {
        store_run(s, h, end, first + 1u, last);
    }
    return first;
}

/* Files the page k, which is empty now, with the runs beside it, or gives all of it back. */
static inline void file_empty(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t k)
{
    uint32_t first = k;
    uint32_t last = k;
    const uint32_t made = pages_made(s, h, end);
    const uint32_t above = k > 1u ? run_at(s, h, end, k - 1u) : 0;
    if (above && (!s->links.hardened || may_be_run(s, h, end, k - above, above)) &&
        page_unlink(s, h, end, s->count, k - 1u)) {
        first = k - above;
    }
    if (k == made) {
        pages_give_back(s, h, end, first);
        return;
    }
    const uint32_t below = run_at(s, h, end, k + 1u);
    if (below && (!s->links.hardened || may_be_run(s, h, end, k + 1u, below))) {
        last = k + below; /* it is in the list */
    } else {
        page_link(s, h, end, s->count, k);
    }
    store_run(s, h, end, first, last);
}

/* ---- allocating -------------------------------------------------------------------------------------------------- */

/* An object of the page k, the first of its class's list: its address; 0 where the page is damaged. */
static inline uint32_t pages_take(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_,
                                  uint32_t k)
{
    const uint32_t b = page_at(s, end, k);
    const uint32_t at = page_cut(s, h, b);
    if (s->links.hardened && (at == 0 || !is_object_of(s, class_, at - b))) {
        count_misuse(s->links.misused_at, h);
        return 0;
    }
    const uint32_t used = state_used(load_state(s, h, b)) + 1u;
    HW_ASSERT(is_object_of(s, class_, at - b));
    HW_ASSERT(used <= s->counts[class_]);
    store_state(s, h, b, class_, used);
    if (used == s->counts[class_]) {
        (void)page_unlink(s, h, end, class_, k);
    }
    return at;
}

/* Makes the empty page k one of a class, and takes its first object. */
static inline uint32_t pages_start(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_,
                                   uint32_t k)
{
    page_begin(s, h, page_at(s, end, k), class_);
    page_link(s, h, end, class_, k);
    return pages_take(s, h, end, class_, k);
}

/* Serves n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t pages_find(const struct hw_pages *s, struct hw_heap *h, uint32_t n)
{
    const uint32_t class_ = pages_class_for(s, n);
    const uint32_t end = load4(h, s->end_at);
    uint32_t k = load_first(s, h, class_);
    if (k && (!s->links.hardened || page_may_serve(s, h, end, class_, k))) {
        return pages_take(s, h, end, class_, k);
    }
    k = take_empty(s, h, end);
    return k ? pages_start(s, h, end, class_, k) : 0;
}

/* Serves n bytes with a page that was never used: the address of the payload, or 0. */
static inline uint32_t pages_grow(const struct hw_pages *s, struct hw_heap *h, uint32_t n)
{
    const uint32_t end = load4(h, s->end_at);
    const uint32_t k = pages_extend(s, h, end);
    return k ? pages_start(s, h, end, pages_class_for(s, n), k) : 0;
}

/* ---- freeing ----------------------------------------------------------------------------------------------------- */

static inline void pages_release(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    const uint32_t k = page_number(s, end, at);
    const uint32_t b = page_at(s, end, k);
    const uint32_t state = load_state(s, h, b);
    const uint32_t class_ = state_class(state);
    const uint32_t used = state_used(state);
    const uint32_t unit = (at - b) >> s->unit_shift;
    const uint32_t bits = load_free(s, h, b, unit >> 5);
    HW_ASSERT(class_ < s->count && used != 0 && is_object_of(s, class_, at - b));
    HW_ASSERT((bits >> (unit & 31u) & 1u) == 0); /* else it is freed twice */
    store_free(s, h, b, unit >> 5, bits | (uint32_t)1 << (unit & 31u));
    if (used > 1u) {
        store_state(s, h, b, class_, used - 1u);
        if (used == s->counts[class_]) {
            page_link(s, h, end, class_, k);
        }
        return;
    }
    if (s->counts[class_] > 1u && !page_unlink(s, h, end, class_, k)) {
        return; /* the page of a damaged list is lost */
    }
    store_state(s, h, b, s->count, 0);
    file_empty(s, h, end, k);
}

/* ---- one object -------------------------------------------------------------------------------------------------- */

/* Whether the payload lies where the pages do. */
static inline int pages_owns(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    return at >= load4(h, s->limit_at);
}

/* Whether `at` is where an object in use begins. */
static inline int pages_is_used(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    if (at < load4(h, s->limit_at) || at >= end) {
        return 0;
    }
    const uint32_t b = page_at(s, end, page_number(s, end, at));
    const uint32_t class_ = state_class(load_state(s, h, b));
    return class_ < s->count && is_object_of(s, class_, at - b) && !is_marked_free(s, h, b, at - b);
}

static inline uint32_t pages_capacity(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    return s->sizes[state_class(load_state(s, h, page_at(s, end, page_number(s, end, at))))];
}

static inline uint32_t pages_block_bytes(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    return pages_stride(s, state_class(load_state(s, h, page_at(s, end, page_number(s, end, at)))));
}

/* An object holds n bytes where it lies, or not at all: returns `at`, or 0. */
static inline uint32_t pages_resize(const struct hw_pages *s, struct hw_heap *h, uint32_t at, uint32_t n)
{
    return n <= pages_capacity(s, h, at) ? at : 0;
}

static inline void pages_init(const struct hw_pages *s, struct hw_heap *h)
{
    for (uint32_t class_ = 0; class_ <= s->count; class_++) {
        store_first(s, h, class_, 0);
    }
    pages_count_given(s, h, 0);
}

#endif
