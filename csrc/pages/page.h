/* pages/page.h: one page: where it lies, what its description says, which of its objects are free; lists of pages. */
#ifndef HW_PAGES_PAGE_H
#define HW_PAGES_PAGE_H

#include "arena.h"
#include "arithmetic.h"

/* ---- where pages lie --------------------------------------------------------------------------------------------- */

/* Pages are numbered from 1, the one at the arena's end; 0 is none. */
static inline uint32_t page_at(const struct hw_pages *s, uint32_t end, uint32_t k)
{
    return end - (k << s->page_log2);
}

/* The page in which the address lies. */
static inline uint32_t page_number(const struct hw_pages *s, uint32_t end, uint32_t at)
{
    return ((end - 1u - at) >> s->page_log2) + 1u;
}

/* Pages that there are; also the number of the last one. */
static inline uint32_t pages_made(const struct hw_pages *s, struct hw_heap *h, uint32_t end)
{
    return (end - load4(h, s->limit_at)) >> s->page_log2;
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* Bytes from one object of a class to the next. */
static inline uint32_t pages_stride(const struct hw_pages *s, uint32_t class_)
{
    return (s->sizes[class_] + s->trailer + s->align - 1u) & ~(s->align - 1u);
}

/* The smallest class that holds n bytes, 1 <= n <= the largest. O(classes) where they are not evenly spaced. */
static inline uint32_t pages_class_for(const struct hw_pages *s, uint32_t n)
{
    if (s->even) {
        return (n - 1u) >> s->step_log2;
    }
    uint32_t class_ = 0;
    while (s->sizes[class_] < n) {
        class_++;
    }
    return class_;
}

/* ---- a page's description ---------------------------------------------------------------------------------------- */

/* Which class a page is of, and how many of its objects are in use. An empty page is of the class whose number is that
 * of the classes; at both ends of a run of empty pages the other number is that of its pages. */
static inline uint32_t state_class(uint32_t state)
{
    return state & 255u;
}

static inline uint32_t state_used(uint32_t state)
{
    return state >> 8;
}

static inline uint32_t load_state(const struct hw_pages *s, struct hw_heap *h, uint32_t b)
{
    return load_masked(&s->links, &s->word, h, b + s->state);
}

static inline void store_state(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t class_, uint32_t used)
{
    store_masked(&s->links, &s->word, h, b + s->state, used << 8 | class_);
}

/* 32 units of a page: a bit is set where a free object begins. */
static inline uint32_t load_free(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t i)
{
    return load_masked(&s->links, &s->word, h, b + s->room + 4u * i);
}

static inline void store_free(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t i, uint32_t bits)
{
    store_masked(&s->links, &s->word, h, b + s->room + 4u * i, bits);
}

/* The number of the next page of the same list. */
static inline uint32_t load_next(const struct hw_pages *s, struct hw_heap *h, uint32_t b)
{
    return load_masked(&s->links, &s->number, h, b + s->state + 4u);
}

static inline void store_next(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t k)
{
    store_masked(&s->links, &s->number, h, b + s->state + 4u, k);
}

static inline uint32_t load_before(const struct hw_pages *s, struct hw_heap *h, uint32_t b)
{
    return load_masked(&s->links, &s->number, h, b + s->state + 6u);
}

static inline void store_before(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t k)
{
    store_masked(&s->links, &s->number, h, b + s->state + 6u, k);
}

/* ---- lists of pages ---------------------------------------------------------------------------------------------- */

/* The first page of a class that has a free object, or of a run of empty pages. */
static inline uint32_t load_first(const struct hw_pages *s, struct hw_heap *h, uint32_t class_)
{
    return load2(h, s->heads_at + 2u * class_);
}

static inline void store_first(const struct hw_pages *s, struct hw_heap *h, uint32_t class_, uint32_t k)
{
    store2(h, s->heads_at + 2u * class_, k);
}

static inline void page_link(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_, uint32_t k)
{
    const uint32_t b = page_at(s, end, k);
    uint32_t next = load_first(s, h, class_);
    if (s->links.hardened && next > pages_made(s, h, end)) {
        count_misuse(s->links.misused_at, h); /* a list that leads elsewhere is lost */
        next = 0;
    }
    HW_ASSERT(next != k);
    store_next(s, h, b, next);
    store_before(s, h, b, 0);
    if (next) {
        store_before(s, h, page_at(s, end, next), k);
    }
    store_first(s, h, class_, k);
}

/* Whether both neighbours of a page in its list lead back to it; what does not is counted. */
HW_COLD int page_may_leave(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_, uint32_t k)
{
    const uint32_t made = pages_made(s, h, end);
    const uint32_t next = load_next(s, h, page_at(s, end, k));
    const uint32_t before = load_before(s, h, page_at(s, end, k));
    if (next <= made && before <= made && (next == 0 || load_before(s, h, page_at(s, end, next)) == k) &&
        (before ? load_next(s, h, page_at(s, end, before)) : load_first(s, h, class_)) == k) {
        return 1;
    }
    count_misuse(s->links.misused_at, h);
    return 0;
}

/* Takes a page out of its list; 0 where the list is damaged. */
static inline int page_unlink(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_, uint32_t k)
{
    if (s->links.hardened && !page_may_leave(s, h, end, class_, k)) {
        return 0;
    }
    const uint32_t next = load_next(s, h, page_at(s, end, k));
    const uint32_t before = load_before(s, h, page_at(s, end, k));
    HW_ASSERT(next <= pages_made(s, h, end) && before <= pages_made(s, h, end));
    if (before) {
        store_next(s, h, page_at(s, end, before), next);
    } else {
        HW_ASSERT(load_first(s, h, class_) == k);
        store_first(s, h, class_, next);
    }
    if (next) {
        store_before(s, h, page_at(s, end, next), before);
    }
    return 1;
}

/* Whether the page k, which a list leads to, is one of the class with a free object; what is not is counted, and the
 * list is lost. */
HW_COLD int page_may_serve(const struct hw_pages *s, struct hw_heap *h, uint32_t end, uint32_t class_, uint32_t k)
{
    const uint32_t made = pages_made(s, h, end);
    if (k <= made) {
        const uint32_t b = page_at(s, end, k);
        const uint32_t state = load_state(s, h, b);
        const uint32_t next = load_next(s, h, b);
        if (state_class(state) == class_ && (class_ == s->count || state_used(state) < s->counts[class_]) &&
            next <= made && load_before(s, h, b) == 0 && (next == 0 || load_before(s, h, page_at(s, end, next)) == k)) {
            return 1;
        }
    }
    count_misuse(s->links.misused_at, h);
    store_first(s, h, class_, 0);
    return 0;
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* Whether an object of the class begins so many bytes behind the start of a page. */
static inline int is_object_of(const struct hw_pages *s, uint32_t class_, uint32_t distance)
{
    const uint32_t stride = pages_stride(s, class_);
    return distance % stride == 0 && distance / stride < s->counts[class_];
}

/* Whether the object that begins so many bytes behind the start of the page b is marked as free. */
static inline int is_marked_free(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t distance)
{
    const uint32_t unit = distance >> s->unit_shift;
    return (load_free(s, h, b, unit >> 5) >> (unit & 31u) & 1u) != 0;
}

/* Makes an empty page one of a class: all its objects are free. O(objects). */
static inline void page_begin(const struct hw_pages *s, struct hw_heap *h, uint32_t b, uint32_t class_)
{
    const uint32_t units = pages_stride(s, class_) >> s->unit_shift;
    uint32_t left = s->counts[class_];
    uint32_t unit = 0;
    for (uint32_t i = 0; i < s->words; i++) {
        uint32_t bits = 0;
        while (left != 0 && unit < 32u) {
            bits |= (uint32_t)1 << unit;
            unit += units;
            left--;
        }
        store_free(s, h, b, i, bits);
        unit -= 32u;
    }
    store_state(s, h, b, class_, 0);
}

/* The free object of a page that lies lowest, which is marked as used: its address; 0 where none is marked as free.
 * O(1): `words` loads. */
static inline uint32_t page_cut(const struct hw_pages *s, struct hw_heap *h, uint32_t b)
{
    uint32_t i = 0;
    uint32_t bits = load_free(s, h, b, 0);
    if (s->words > 1u) {
        while (bits == 0 && i + 1u < s->words) {
            i++;
            bits = load_free(s, h, b, i);
        }
    }
    HW_ASSERT(bits != 0);
    if (s->links.hardened && bits == 0) {
        return 0;
    }
    store_free(s, h, b, i, bits & (bits - 1u));
    return b + ((32u * i + lowest_bit(bits)) << s->unit_shift);
}

#endif
