/* pages/check.h: looking at the pages from outside: the walk over them, what a request could have, the invariants. */
#ifndef HW_PAGES_CHECK_H
#define HW_PAGES_CHECK_H

#include "pages/page.h"
#include "statistics.h"

/* ---- the arena's end --------------------------------------------------------------------------------------------- */

/* Bytes of pages that were given back and that nobody has taken since, other pools included. */
static inline uint32_t pages_given(const struct hw_pages *s, struct hw_heap *h)
{
    const uint32_t given = load4(h, s->given_at);
    const uint32_t taken = load4(h, s->high_at) - load4(h, s->seen_at);
    return given - smaller(given, taken);
}

/* Whether there is memory for one more page. */
static inline int pages_can_grow(const struct hw_pages *s, struct hw_heap *h)
{
    const uint32_t limit = load4(h, s->limit_at);
    return limit - load4(h, s->high_at) >= (uint32_t)1 << s->page_log2 &&
           (load4(h, s->end_at) - limit) >> s->page_log2 < s->most;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Describes the object at or behind `at` in its page, an empty page as one free block; 0 where the page has none. */
static inline int page_describe(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t at,
                                struct hw_block *block)
{
    const uint32_t class_ = state_class(load_state(s, h, b));
    block->header = 0;
    if (class_ == s->count) {
        block->offset = b;
        block->size = s->room;
        block->state = HW_BLOCK_FREE;
        return at == b;
    }
    const uint32_t stride = pages_stride(s, class_);
    const uint32_t i = (at - b + stride - 1u) / stride;
    block->offset = b + i * stride;
    block->size = stride;
    if (i >= s->counts[class_]) {
        return 0;
    }
    block->state = is_marked_free(s, h, b, i * stride) ? HW_BLOCK_FREE : HW_BLOCK_USED;
    return 1;
}

/* O(1), and O(empty room) in pages. */
static inline int pages_block_at(const struct hw_pages *s, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t end = load4(h, s->end_at);
    at = at ? at : load4(h, s->limit_at);
    while (at < end) {
        const uint32_t b = page_at(s, end, page_number(s, end, at));
        if (state_class(load_state(s, h, b)) > s->count) {
            return 0; /* damaged */
        }
        if (page_describe(s, h, b, at, block)) {
            return 1;
        }
        at = b + ((uint32_t)1 << s->page_log2);
    }
    return 0;
}

/* ---- what a request could have ----------------------------------------------------------------------------------- */

/* Bytes that an object at `at` holds; those of the largest class where the page is empty. */
static inline uint32_t pages_payload(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    const uint32_t class_ = state_class(load_state(s, h, page_at(s, end, page_number(s, end, at))));
    return s->sizes[smaller(class_, s->count - 1u)];
}

static inline void pages_tell(const struct hw_pages *s, struct hw_heap *h, struct hw_statistics *told)
{
    if (pages_can_grow(s, h)) {
        tell_free(told, s->sizes[s->count - 1u]);
    }
    told->peak += load4(h, s->end_at) - load4(h, s->limit_at) + pages_given(s, h);
}

static inline uint32_t pages_largest(const struct hw_pages *s, struct hw_heap *h, uint32_t looks)
{
    (void)looks;
    if (load_first(s, h, s->count) != 0 || pages_can_grow(s, h)) {
        return s->sizes[s->count - 1u];
    }
    for (uint32_t class_ = s->count; class_-- > 0;) {
        if (load_first(s, h, class_) != 0) {
            return s->sizes[class_];
        }
    }
    return 0;
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

/* Whether the description of the page that holds the payload can be; a full one is in no list. */
static inline int pages_is_sound(const struct hw_pages *s, struct hw_heap *h, uint32_t at)
{
    const uint32_t end = load4(h, s->end_at);
    const uint32_t b = page_at(s, end, page_number(s, end, at));
    const uint32_t state = load_state(s, h, b);
    const uint32_t made = pages_made(s, h, end);
    const uint32_t objects = s->counts[state_class(state)];
    return state_used(state) != 0 && state_used(state) <= objects &&
           (state_used(state) == objects || (load_next(s, h, b) <= made && load_before(s, h, b) <= made));
}

static inline int pages_is_bounded(const struct hw_pages *s, struct hw_heap *h, uint32_t end)
{
    const uint32_t limit = load4(h, s->limit_at);
    return limit <= end && load4(h, s->high_at) <= limit &&
           ((end - limit) & (((uint32_t)1 << s->page_log2) - 1u)) == 0 && (end - limit) >> s->page_log2 <= s->most;
}

/* Checks the marks of a page of a class: as many free objects as its state leaves, and none between two. O(units) */
static inline int check_page(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t class_, uint32_t used)
{
    uint32_t free_objects = 0;
    for (uint32_t i = 0; i < s->words; i++) {
        uint32_t bits = load_free(s, h, b, i);
        while (bits) {
            if (!is_object_of(s, class_, (32u * i + lowest_bit(bits)) << s->unit_shift)) {
                return HW_BROKEN_FLAGS;
            }
            free_objects++;
            bits &= bits - 1u;
        }
    }
    return used != 0 && used + free_objects == s->counts[class_] ? 0 : HW_BROKEN_COUNT;
}

/* Whether the page k is a run's lowest one, and all that the run says of itself holds. O(pages of the run) */
static inline int check_run(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t k)
{
    const uint32_t state = load_state(s, h, page_at(s, end, k));
    const uint32_t pages = state_used(state);
    if (pages == 0 || pages > k || load_state(s, h, page_at(s, end, k + 1u - pages)) != state) {
        return HW_BROKEN_SIZE;
    }
    for (uint32_t i = 0; i < pages; i++) {
        if (state_class(load_state(s, h, page_at(s, end, k - i))) != s->count) {
            return HW_BROKEN_SIZE;
        }
    }
    const int merges = pages < k && state_class(load_state(s, h, page_at(s, end, k - pages))) == s->count;
    return merges || k == pages_made(s, h, end) ? HW_BROKEN_MERGE : 0;
}

/* Checks a list of pages, of at most `most`, and adds their number to *listed. */
static inline int check_pages_of(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_,
                                 uint32_t most, uint32_t *listed)
{
    const uint32_t made = pages_made(s, h, end);
    uint32_t before = 0;
    uint32_t k = load_first(s, h, class_);
    while (k) {
        if (k > made || *listed == most) {
            return HW_BROKEN_LIST;
        }
        const uint32_t b = page_at(s, end, k);
        const uint32_t state = load_state(s, h, b);
        if (state_class(state) != class_ || (class_ < s->count && state_used(state) == s->counts[class_])) {
            return HW_BROKEN_LIST;
        }
        if (class_ == s->count && (k == made || state_class(load_state(s, h, page_at(s, end, k + 1u))) == s->count)) {
            return HW_BROKEN_LIST; /* it is not the lowest of its run */
        }
        if (load_before(s, h, b) != before) {
            return HW_BROKEN_LINK;
        }
        *listed += 1u;
        before = k;
        k = load_next(s, h, b);
    }
    return 0;
}

static inline int pages_check(const struct hw_pages *s, struct hw_heap *h)
{
    const uint32_t end = load4(h, s->end_at);
    uint32_t listed = 0;
    uint32_t open = 0;
    uint32_t k = pages_made(s, h, end);
    while (k > 0) {
        const uint32_t b = page_at(s, end, k);
        const uint32_t class_ = state_class(load_state(s, h, b));
        const uint32_t used = state_used(load_state(s, h, b));
        if (class_ > s->count) {
            return HW_BROKEN_CLASS;
        }
        const int broken = class_ == s->count ? check_run(s, h, end, k) : check_page(s, h, b, class_, used);
        if (broken) {
            return broken;
        }
        open += class_ == s->count || used < s->counts[class_];
        k -= class_ == s->count ? used : 1u;
    }
    for (uint32_t class_ = 0; class_ <= s->count; class_++) {
        const int broken = check_pages_of(s, h, end, class_, open, &listed);
        if (broken) {
            return broken;
        }
    }
    return listed == open ? 0 : HW_BROKEN_COUNT;
}

#endif
