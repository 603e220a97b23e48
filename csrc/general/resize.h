/* general/resize.h: making a used block larger or smaller where it lies, and moving its start to an alignment. */
#ifndef HW_GENERAL_RESIZE_H
#define HW_GENERAL_RESIZE_H

#include "payload.h"
#include "general/grow.h"

/* What a used block has too many, as it is compared with the least remainder, than which it may have to be larger. */
static inline uint32_t compared_rest(const struct hw_general *g, uint32_t rest)
{
    if (g->resize == HW_RESIZE_WITH_REST) {
        return rest - (rest != 0);
    }
    return rest;
}

/* Whether a used block with `rest` bytes too many gives them back. */
static inline int is_trimmed(const struct hw_general *g, uint32_t rest)
{
    return g->split && compared_rest(g, rest) >= g->split_least;
}

/* Gives back what a used block has beyond `size`, where that is enough for a block of its own. */
static inline void trim_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    const uint32_t word = load_word(g, h, b);
    const uint32_t rest = word_size(g, word) - size;
    HW_ASSERT((word & HW_USED) != 0 && word_size(g, word) >= size);
    note_rest(g, h, compared_rest(g, rest));
    if (!is_trimmed(g, rest)) {
        return;
    }
    const uint32_t flags = word_flags(g, word);
    store_word(g, h, b, size_word(g, size, flags));
    note_block_made(h, g->overhead);
    write_used(g, h, b + size, rest, HW_PREV_USED);
    clear_tag(g, h, b + size);
    release_rarely(g, h, b + size, load_word(g, h, b + size));
}

/* Takes `more` bytes for the block that ends at `end`, where memory begins that is no block. */
static inline int extend_over_boundary(const struct hw_general *g, struct hw_heap *h, uint32_t end, uint32_t more,
                                       uint32_t *gained)
{
    if (g->end_word == 0 && g->top != HW_TOP_LIST && end == load4(h, g->top_at)) {
        if (load4(h, g->limit_at) - end < more) {
            return 0;
        }
        raise_high(g, h, end + more);
        store4(h, g->top_at, end + more);
        *gained = more;
        return 1;
    }
    if (g->victim_up_to && end == load4(h, g->victim_at)) {
        const uint32_t have = load4(h, g->victim_at + 4u) - end;
        if (have < more) {
            return 0;
        }
        *gained = have - more < g->min_block ? have : more;
        store4(h, g->victim_at, end + *gained);
        return 1;
    }
    return 0;
}

/* Bytes of the free block at `end`, where that may join the block in front of it; 0 where there is none. */
static inline uint32_t free_behind(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    if (g->coalesce == HW_NEVER || end == load4(h, g->top_at)) {
        return 0;
    }
    if (g->victim_up_to && end == load4(h, g->victim_at)) {
        return 0;
    }
    const uint32_t word = load_word(g, h, end);
    if (checks_links(g) && (word & HW_USED) == 0 && !may_merge(g, h, end, word_size(g, word))) {
        return 0;
    }
    return word & HW_USED ? 0 : word_size(g, word);
}

/* Bytes of the free block ahead of b; 0 where there is none to merge with. */
static inline uint32_t free_ahead(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    if (has_flag_before(g) && (word & HW_PREV_USED)) {
        return 0;
    }
    const uint32_t size = size_before(g, h, b);
    if (checks_links(g) && size != 0 && !may_merge(g, h, b - size, size)) {
        return 0;
    }
    return size;
}

/* Lets the used block b, whose word has been read, take in the free block behind, of `behind` bytes. */
static inline void absorb_behind(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word,
                                 uint32_t behind)
{
    const uint32_t size = word_size(g, word);
    const uint32_t end = b + size;
    HW_ASSERT(behind >= g->min_block && (word & HW_USED) != 0);
    freelist_remove(g, h, end, behind);
    note_block_gone(h, g->overhead);
    store_word(g, h, b, size_word(g, size + behind, word_flags(g, word)));
    keep_rover_on_block(g, h, b, end + behind);
    if (g->boundary_tags && merges(g, h, behind)) {
        mark_before_used(g, h, end + behind);
    }
}

/* Lets the used block b, whose word has been read, take in a free block behind, if it has more than `size`: so that
 * trim_block() gives back the rest, however little it is. */
static inline void join_behind(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word, uint32_t size)
{
    if (word_size(g, word) > size) {
        const uint32_t behind = free_behind(g, h, b + word_size(g, word));
        if (behind) {
            absorb_behind(g, h, b, word, behind);
        }
    }
}

/* Gives back what the used block b, whose word has been read, has beyond `size`. */
static inline void trim_joined(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word, uint32_t size)
{
    if (g->resize == HW_RESIZE_TRIM || g->resize == HW_RESIZE_SMALLER_SIDE) {
        join_behind(g, h, b, word, size);
    }
    trim_block(g, h, b, size);
}

/* Lets the used block b, of `size` bytes, slide down into the free block ahead, of `ahead` bytes. */
static inline void slide_down(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t ahead)
{
    HW_ASSERT(b - g->start >= ahead);
    const uint32_t to = b - ahead;
    freelist_remove(g, h, to, ahead);
    note_block_gone(h, g->overhead);
    const uint32_t flags = word_flags(g, load_word(g, h, to));
    store_word(g, h, to, size_word(g, ahead + size, flags | HW_USED));
    keep_rover_on_block(g, h, to, b + size);
    move_payload(copy_step((uint32_t)1 << g->unit_shift, g->pad ? g->header : 0), h, to + g->header, b + g->header,
                 size - g->overhead);
}

/* Lets the used block b, of `size` bytes, slide down by the last `taken` bytes of the free block ahead, of `ahead`
 * bytes; if these leave too little for a block, by all of it. Returns the block. */
static inline uint32_t slide_partly(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                    uint32_t ahead, uint32_t taken)
{
    const uint32_t rest = ahead - taken;
    note_rest(g, h, rest);
    if (!is_trimmed(g, rest)) {
        slide_down(g, h, b, size, ahead);
        return b - ahead;
    }
    HW_ASSERT(taken != 0 && b - g->start >= ahead);
    const uint32_t to = b - taken;
    freelist_remove(g, h, b - ahead, ahead);
    write_used(g, h, to, taken + size, merges(g, h, rest) ? 0 : HW_PREV_USED);
    clear_tag(g, h, to);
    write_free(g, h, b - ahead, rest, HW_PREV_USED);
    freelist_insert(g, h, b - ahead, rest);
    keep_rover_on_block(g, h, to, b + size);
    move_payload(copy_step((uint32_t)1 << g->unit_shift, g->pad ? g->header : 0), h, to + g->header, b + g->header,
                 size - g->overhead);
    return to;
}

/* Lets the used block b, whose word has been read, grow to `need` bytes into the free blocks next to it: as far as
 * needed into the smaller one, then into the other. Returns the block; 0 where they lack the memory. */
static inline uint32_t grow_sideways(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word,
                                     uint32_t need)
{
    uint32_t size = word_size(g, word);
    const uint32_t lacks = need - size;
    const uint32_t behind = free_behind(g, h, b + size);
    const uint32_t ahead = free_ahead(g, h, b, word);
    if (ahead + behind < lacks) {
        return 0;
    }
    uint32_t taken = behind < lacks ? lacks - behind : 0;
    if (behind > ahead) {
        taken = smaller(ahead, lacks);
    }
    need = size + lacks - taken;
    if (taken < lacks) {
        absorb_behind(g, h, b, word, behind);
        size += behind;
    }
    uint32_t to = b;
    if (taken) {
        to = slide_partly(g, h, b, size, ahead, taken);
    }
    need += b - to;
    size += b - to;
    raise_reach(g, h, to, is_trimmed(g, size - need) ? need : size);
    trim_block(g, h, to, need);
    return to;
}

/* Payload bytes of a used block of `size` bytes. */
static inline uint32_t payload_bytes(const struct hw_general *g, uint32_t b, uint32_t size)
{
    if (g->pad) {
        return b + size - g->trailer - payload_of(g, b);
    }
    return size - g->overhead;
}

/* Whether a block of `all` bytes that shrinks to `need` would leave no free block, where it has to. */
static inline int leaves_too_little(const struct hw_general *g, struct hw_heap *h, uint32_t all, uint32_t need)
{
    if (g->resize != HW_RESIZE_WITH_REST) {
        return 0;
    }
    note_rest(g, h, compared_rest(g, all - need));
    return !is_trimmed(g, all - need);
}

/* Bytes of the free block ahead of b that b slides down into, even if it would fit where it is; 0 where there is none,
 * or where both neighbours have too little. */
static inline uint32_t room_ahead(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word,
                                  uint32_t need)
{
    const uint32_t size = word_size(g, word);
    const uint32_t ahead = free_ahead(g, h, b, word);
    if (ahead == 0 || ahead + size + free_behind(g, h, b + size) < need) {
        return 0;
    }
    return ahead;
}

/* Makes the used block b, of `size` bytes, hold n bytes if it has that size, or if the rest makes a block; else 0. The
 * least block has the size of no request that needs less. */
static inline uint32_t shrink_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                    uint32_t n)
{
    const uint32_t need = block_size_for(g, n);
    if (need > size) {
        return 0;
    }
    if (need == size && (need > g->min_block || size - g->overhead - n < (uint32_t)1 << g->unit_shift)) {
        return b;
    }
    note_rest(g, h, size - need);
    if (!is_trimmed(g, size - need)) {
        return 0;
    }
    trim_block(g, h, b, need);
    return b;
}

/* Makes the used block b hold n bytes without a search, and returns where it is; 0 where it cannot, and nothing has
 * changed. */
static inline uint32_t resize_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t n)
{
    if (g->resize == HW_RESIZE_MOVE) {
        return 0;
    }
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (g->resize == HW_RESIZE_KEEP || g->resize == HW_RESIZE_KEEP_HALF) {
        const uint32_t had = payload_bytes(g, b, size);
        return n <= had && (g->resize == HW_RESIZE_KEEP || n > had / 2u) ? b : 0;
    }
    const uint32_t need = block_size_for(g, n);
    if (g->resize == HW_RESIZE_SHRINK) {
        return shrink_block(g, h, b, size, n);
    }
    uint32_t room = 0;
    if (g->resize == HW_RESIZE_DOWN_FIRST) {
        room = room_ahead(g, h, b, word, need);
    }
    if (need <= size && room == 0) {
        trim_joined(g, h, b, word, need);
        return b;
    }
    if (g->resize == HW_RESIZE_TRIM) {
        return 0;
    }
    const uint32_t end = b + size;
    uint32_t gained = 0;
    if (room == 0 && extend_over_boundary(g, h, end, need - size, &gained)) {
        store_word(g, h, b, size_word(g, size + gained, word_flags(g, word)));
        keep_rover_on_block(g, h, b, end + gained);
        return b;
    }
    if (g->resize == HW_RESIZE_SMALLER_SIDE) {
        return grow_sideways(g, h, b, word, need);
    }
    const uint32_t behind = free_behind(g, h, end);
    uint32_t ahead = room;
    if (g->resize == HW_RESIZE_BOTH_SIDES && size + behind != need) {
        ahead = free_ahead(g, h, b, word);
    }
    if (ahead + size + behind < need || leaves_too_little(g, h, size + behind, need)) {
        return 0;
    }
    uint32_t all = size;
    if (ahead + size < need || ahead == 0) {
        absorb_behind(g, h, b, word, behind);
        all += behind;
    }
    if (ahead) {
        slide_down(g, h, b, all, ahead);
    }
    all += ahead;
    raise_reach(g, h, b - ahead, is_trimmed(g, all - need) ? need : all);
    trim_block(g, h, b - ahead, need);
    return b - ahead;
}

/* A block of this size holds n bytes at that alignment, see align_block(). */
static inline uint32_t aligned_size_for(const struct hw_general *g, const uint32_t search, uint32_t n,
                                        uint32_t alignment)
{
    if (search == HW_ALIGNED_MULTIPLE) { /* TLSF */
        const uint32_t payload = block_size_for(g, n) - g->overhead + g->min_block;
        return block_size_for(g, (payload + 2u * alignment - 1u) & ~(alignment - 1u));
    }
    if (search == HW_ALIGNED_TWICE) { /* NuttX */
        const uint32_t unit = (uint32_t)1 << g->unit_shift;
        const uint32_t least = g->powers ? block_size_for(g, n) : larger(g->min_block, g->overhead);
        const uint32_t payload = (larger(n, least - g->overhead) + unit - 1u) & ~(unit - 1u);
        return block_size_for(g, payload + 2u * larger(alignment, g->min_block));
    }
    return block_size_for(g, n) + block_size_for(g, alignment) + g->min_block;
}

/* Moves the start of a used block up so that its payload is aligned; the piece in front becomes a free block.
 * The block is as large as aligned_size_for() says. Returns the block with the aligned payload. */
static inline uint32_t align_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t alignment)
{
    const uint32_t base = (uint32_t)(uintptr_t)arena_base(h);
    uint32_t front = (~(base + b + g->header) + 1u) & (alignment - 1u);
    if (front == 0) {
        return b;
    }
    while (front < g->min_block) {
        front += alignment;
    }
    const uint32_t word = load_word(g, h, b);
    const uint32_t rest = word_size(g, word) - front;
    const uint32_t flags = word_flags(g, word);
    write_used(g, h, b + front, rest, HW_PREV_USED);
    clear_tag(g, h, b + front);
    note_block_made(h, g->overhead);
    store_word(g, h, b, size_word(g, front, flags));
    release_rarely(g, h, b, size_word(g, front, flags));
    return b + front;
}

/* Gives back what the used block b has beyond `size` behind its aligned payload. */
static inline void trim_aligned(const struct hw_general *g, const uint32_t search, struct hw_heap *h, uint32_t b,
                                uint32_t size)
{
    if (search != HW_ALIGNED_BLOCKS) {
        join_behind(g, h, b, load_word(g, h, b), size);
    }
    trim_block(g, h, b, size);
}

#endif
