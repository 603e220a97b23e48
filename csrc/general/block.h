/* general/block.h: how a general pool stores what it knows about a block.
 *
 *        b                    b + header                      b + size
 *        |                    |                               |
 *        +--------+-----------+-------------------------------+--------+
 *  used: | word   | (unused)  | payload                       | word of the next block
 *        +--------+-----------+------+------+-----------------+--------+
 *  free: | word   | (unused)  | next | prev |        | size   | word of the next block
 *        +--------+-----------+------+------+--------+--------+--------+
 *                               links of the list     boundary tag
 *
 * The word holds the block's size and its flags. Blocks start where the payload comes out aligned. A free block has
 * as many links as its list needs; it repeats its size at its end only with boundary tags.
 *
 * Where the unit of sizes is below the alignment, blocks start at any unit, with one word of header, and have as many
 * bytes more as the payload may have to be moved up; what is not needed in front of it stays behind it:
 *
 *        +--------+---------+---------------+         +--------+---------------+---------+
 *        | word   | padding | payload       |   or    | word   | payload       | padding |
 *        +--------+---------+---------------+         +--------+---------------+---------+
 *
 * The last word of padding in front says how much there is, and reads as the word of a block that is not in use.
 */
#ifndef HW_GENERAL_BLOCK_H
#define HW_GENERAL_BLOCK_H

#include "arithmetic.h"
#include "arena.h"

enum {
    HW_USED = 1,     /* the block is not free */
    HW_PREV_USED = 2 /* the block before is none that could be merged with */
};

/* Where the first block begins. */
static inline uint32_t first_block(const struct hw_general *g, struct hw_heap *h)
{
    if (g->top == HW_TOP_BELOW) {
        return load4(h, g->limit_at);
    }
    (void)h;
    return g->start;
}

/* Whether words carry HW_PREV_USED. Tags in headers need no such flag: they are 0 where the block before is in use. */
static inline int has_flag_before(const struct hw_general *g)
{
    return g->boundary_tags && !g->tag_in_header;
}

static inline uint32_t word_size(const struct hw_general *g, uint32_t word)
{
    if (g->size_raw) {
        return word & ~(((uint32_t)1 << g->flag_bits) - 1u);
    }
    return word >> g->flag_bits << g->size_shift;
}

static inline uint32_t word_flags(const struct hw_general *g, uint32_t word)
{
    return word & (((uint32_t)1 << g->flag_bits) - 1u);
}

static inline uint32_t size_word(const struct hw_general *g, uint32_t size, uint32_t flags)
{
    if (g->size_raw) {
        return size | flags;
    }
    return size >> g->size_shift << g->flag_bits | flags;
}

static inline uint32_t load_word(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    return load_masked(&g->links, &g->word, h, b);
}

static inline void store_word(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    note_word(g, h, b, word);
    store_masked(&g->links, &g->word, h, b, word);
}

/* The block size that serves a request of n bytes, n <= HW_MAX_REQUEST. */
HW_HOT uint32_t block_size_for(const struct hw_general *g, uint32_t n)
{
    if (g->powers) {
        return (uint32_t)2 << highest_bit((n + g->overhead - 1u) | (g->min_block - 1u));
    }
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const uint32_t size = (n + g->overhead + unit - 1u) & ~(unit - 1u);
    return size < g->min_block ? g->min_block : size;
}

/* Where the payload of the block b lies. */
HW_HOT uint32_t payload_of(const struct hw_general *g, uint32_t b)
{
    if (g->pad) {
        return (b + g->header + g->pad) & ~(g->align - 1u);
    }
    return b + g->header;
}

/* Hands out the used block b: the address of its payload, which padding in front leads back from. */
HW_HOT uint32_t hand_out(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    const uint32_t at = payload_of(g, b);
    if (g->pad && at != b + g->header) {
        note_padding(g, h);
        store_word(g, h, at - g->header, size_word(g, at - g->header - b, 0));
    }
    return at;
}

/* The used block with this payload. */
HW_HOT uint32_t block_of(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = at - g->header;
    if (g->pad) {
        const uint32_t word = load_word(g, h, b);
        return word & HW_USED ? b : b - word_size(g, word);
    }
    return b;
}

/* Whether a free block of this size takes part in merging. */
static inline int can_merge(const struct hw_general *g, uint32_t size)
{
    if (g->coalesce_from > g->min_block) {
        return size >= g->coalesce_from;
    }
    return 1;
}

/* Whether the block with this word is free to merge with. */
static inline int is_mergeable(const struct hw_general *g, uint32_t word)
{
    return (word & HW_USED) == 0 && can_merge(g, word_size(g, word));
}

/* The question as malloc and free ask it, which is noted for the engine. */
static inline int merges(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    note_merging(g, h, size);
    return can_merge(g, size);
}

/* The second one. */
static inline int merges_with(const struct hw_general *g, struct hw_heap *h, uint32_t word)
{
    note_word_merging(g, h, word);
    return is_mergeable(g, word);
}

/* Where the tag of the free block in front of b lies. */
static inline uint32_t tag_at(const struct hw_general *g, uint32_t b)
{
    if (g->tag_in_header) {
        return b + g->word.bytes;
    }
    return b - g->word.bytes;
}

/* Tags are masked where headers have too few bits for a size that is damaged to be seldom one that could be: else what
 * a header says vouches for the tag. */
static inline uint32_t load_tag(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    return g->word.bytes < 4u ? load_masked(&g->links, &g->word, h, at) : load_field(&g->word, h, at);
}

static inline void store_tag(const struct hw_general *g, struct hw_heap *h, uint32_t at, uint32_t word)
{
    if (g->word.bytes < 4u) {
        store_masked(&g->links, &g->word, h, at, word);
    } else {
        store_field(&g->word, h, at, word);
    }
}

/* Size of the free block that ends at b, read from its boundary tag. */
static inline uint32_t size_before(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    return word_size(g, load_tag(g, h, tag_at(g, b)));
}

/* Writes the header word of a used block. `flags` describes the block before. */
HW_HOT void write_used(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t flags)
{
    if (has_flag_before(g)) {
        store_word(g, h, b, size_word(g, size, HW_USED | flags));
    } else {
        store_word(g, h, b, size_word(g, size, HW_USED));
    }
}

/* A block that begins where none began has a tag to be set: no free block to merge with lies before it. */
static inline void clear_tag(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->tag_in_header) {
        store_tag(g, h, tag_at(g, b), 0);
    }
}

/* Writes the metadata of a free block. `flags` describes the block before. */
HW_HOT void write_free(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t flags)
{
    if (has_flag_before(g)) {
        store_word(g, h, b, size_word(g, size, flags));
    } else {
        store_word(g, h, b, size_word(g, size, 0));
    }
    if (g->boundary_tags && merges(g, h, size)) {
        store_tag(g, h, tag_at(g, b + size), size_word(g, size, 0));
    }
}

/* Clears the flag of the block at `next`: the block before it is not free to merge with. */
HW_HOT void mark_before_used(const struct hw_general *g, struct hw_heap *h, uint32_t next)
{
    if (g->tag_in_header) {
        store_tag(g, h, tag_at(g, next), 0);
    }
    if (has_flag_before(g)) {
        store_word(g, h, next, load_word(g, h, next) | HW_PREV_USED);
    }
}

/* Sets the flag of the block at `next`: the block before it is free to merge with. */
static inline void mark_before_free(const struct hw_general *g, struct hw_heap *h, uint32_t next)
{
    if (has_flag_before(g)) {
        store_word(g, h, next, load_word(g, h, next) & ~(uint32_t)HW_PREV_USED);
    }
}

/* The block that ends at b, found by walking from the first one; 0 where b is the first. O(blocks). */
static inline uint32_t block_before(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    uint32_t before = 0;
    uint32_t at = g->start;
    skip_to_block(g, h, &before, &at, b);
    while (at < b) {
        before = at;
        at += word_size(g, load_word(g, h, at));
    }
    return before;
}

/* Whether a block of `size` bytes can begin at b, below `end`. */
HW_HOT int is_size_within(const struct hw_general *g, uint32_t b, uint32_t size, uint32_t end)
{
    return size >= g->min_block && size <= end - b && (size & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
}

/* Whether free blocks are looked at before they are handed out. */
static inline int checks_links(const struct hw_general *g)
{
    return g->checks >= HW_CHECKS_NEIGHBOURS;
}

/* Whether the header word of a block on a free list is plausible; one that is not is counted. */
static inline int is_takeable(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const uint32_t first = first_block(g, h);
    if ((word & HW_USED) == 0 && b >= first && b < top && ((b - first) & (unit - 1u)) == 0 &&
        is_size_within(g, b, size, top)) {
        if (!g->boundary_tags || !merges(g, h, size) || (b + size == top && !g->end_word && !g->victim_up_to) ||
            size_before(g, h, b + size) == size) {
            return 1;
        }
    }
    count_misuse(g->links.misused_at, h);
    return 0;
}

/* Bytes to the next block in a walk up to `top`; what leads beyond is counted, and ends the walk. */
static inline uint32_t step_over(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word, uint32_t top)
{
    if (g->links.hardened && (word_size(g, word) == 0 || word_size(g, word) > top - b)) {
        count_misuse(g->links.misused_at, h);
        return top - b;
    }
    return word_size(g, word);
}

/* Steps after which a walk of a list is one of damaged links that lead in a circle: more than there can be blocks. */
static inline uint32_t most_nodes(const struct hw_general *g, struct hw_heap *h)
{
    return g->links.hardened ? peek4(h, g->links.end_at) >> g->unit_shift : 0;
}

/* Counts a step of a walk; 0 where there were too many, which is damage. */
HW_HOT int may_step(const struct hw_general *g, struct hw_heap *h, uint32_t *most)
{
    if (g->links.hardened && (*most)-- == 0) {
        count_misuse(g->links.misused_at, h);
        return 0;
    }
    return 1;
}

/* A free block that a search came upon. */
struct hw_found {
    uint32_t b;      /* the block; 0 is none */
    uint32_t word;   /* its word */
    uint32_t before; /* address of the link that points to it */
};

HW_HOT struct hw_found found_none(void)
{
    struct hw_found none = {0, 0, 0};
    return none;
}

#endif
