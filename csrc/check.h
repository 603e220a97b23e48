/* check.h: looking at a heap from outside: the walk, the statistics, and the checker of invariants.
 *
 * Firmware that calls none of these carries none of their code.
 */
#ifndef HW_CHECK_H
#define HW_CHECK_H

#include "heap.h"

/* ---- the walk -------------------------------------------------------------------------------------------------- */

/* Describes the block that begins at `at` in a general pool; 0 behind the last one. */
static inline int general_block_at(const struct hw_general *g, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    if (at >= load4(h, g->top_at)) {
        return 0;
    }
    block->offset = at;
    if (g->victim_up_to && at == load4(h, g->victim_at) && load4(h, g->victim_at + 4u) > at) {
        block->size = load4(h, g->victim_at + 4u) - at;
        block->header = 0;
        block->state = HW_BLOCK_VICTIM;
        return 1;
    }
    const uint32_t word = load_word(g, h, at);
    block->size = word_size(g, word);
    block->header = g->header;
    block->state = word & HW_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return block->size != 0;
}

static inline void fixed_describe(const struct hw_fixed *f, uint32_t class_, uint32_t b, struct hw_block *block)
{
    block->offset = b;
    block->size = fixed_stride(f, class_);
    block->header = f->header;
    block->state = HW_BLOCK_USED;
}

/* Describes the first block at or behind `at` of classes with counts; 0 behind the last one. */
static inline int fixed_counted_block_at(const struct hw_fixed *f, struct hw_heap *h, uint32_t at,
                                         struct hw_block *block)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t end = f->blocks_at[i] + load4(h, f->carved_at + 4u * i) * fixed_stride(f, i);
        if (at < f->blocks_at[i]) {
            at = f->blocks_at[i];
        }
        if (at < end) {
            fixed_describe(f, i, at, block);
            return 1;
        }
    }
    return 0;
}

/* Describes the block at `at` of classes that grow; 0 behind the last one, or where a header names no class. */
static inline int fixed_grown_block_at(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    if (at >= load4(h, f->end_at)) {
        return 0;
    }
    const uint32_t class_ = fixed_class_of(f, h, at + f->header);
    if (class_ >= f->count) {
        return 0;
    }
    fixed_describe(f, class_, at, block);
    return 1;
}

/* Describes the block at `at`, 0 being the pool's first; 0 behind the last one. In a fixed pool, and where quick lists
 * stand above, a block that is told to be in use may also be one that waits in a list, see block_state(). */
static inline int pool_block_at(const struct hw_pool *pool, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    if (pool->kind == HW_QUICK) {
        return 0;
    }
    if (pool->kind == HW_GENERAL) {
        return general_block_at(&pool->general, h, at ? at : pool->general.start, block);
    }
    if (pool->fixed.grow) {
        return fixed_grown_block_at(&pool->fixed, h, at ? at : load4(h, pool->fixed.limit_at), block);
    }
    return fixed_counted_block_at(&pool->fixed, h, at, block);
}

/* Tells a block that is handed out from one that waits in a list. O(list). */
static inline uint32_t block_state(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                   const struct hw_block *block)
{
    const struct hw_pool *pool = &p->pools[owner];
    const uint32_t at = block->offset + block->header;
    if (block->state != HW_BLOCK_USED) {
        return block->state;
    }
    if (pool->kind == HW_FIXED && fixed_is_free(&pool->fixed, h, fixed_class_of(&pool->fixed, h, at), at)) {
        return HW_BLOCK_FREE;
    }
    if (pool->cached && is_cached(p, owner, h, at, pool_capacity(pool, h, at))) {
        return HW_BLOCK_CACHED;
    }
    return HW_BLOCK_USED;
}

static inline int hw_next_block(const struct hw_policy *p, struct hw_heap *heap, struct hw_block *block)
{
    uint32_t at = block->offset + block->size;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (block->pool <= i) {
            if (block->pool < i) {
                at = 0;
                block->pool = i;
            }
            if (pool_block_at(pool, heap, at, block)) {
                block->state = block_state(p, i, heap, block);
                return 1;
            }
        }
    }
    return 0;
}

/* Payload of the largest block that fits into `bytes` bytes of free memory; 0 where none does. */
static inline uint32_t payload_within(const struct hw_general *g, uint32_t bytes)
{
    const uint32_t size = bytes >> g->unit_shift << g->unit_shift;
    return size < g->min_block ? 0 : size - g->header;
}

/* What the largest request that a free block can serve asks for. */
static inline uint32_t free_payload(const struct hw_pool *pool, struct hw_heap *h, const struct hw_block *block)
{
    if (pool->kind == HW_FIXED) {
        return pool_capacity(pool, h, block->offset + block->header);
    }
    return payload_within(&pool->general, block->size);
}

/* Adds the blocks of one pool to the statistics. */
static inline void count_blocks(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                struct hw_statistics *told)
{
    const struct hw_pool *pool = &p->pools[owner];
    struct hw_block block = {0, 0, 0, 0, 0};
    while (pool_block_at(pool, h, block.offset + block.size, &block)) {
        const uint32_t state = block_state(p, owner, h, &block);
        if (state == HW_BLOCK_USED) {
            told->used += block.size;
            told->used_blocks++;
        } else {
            told->unused += block.size;
            const uint32_t payload = state == HW_BLOCK_CACHED ? 0 : free_payload(pool, h, &block);
            if (payload > told->largest_free) {
                told->largest_free = payload;
            }
        }
    }
}

/* Bytes of the classes' regions that no block has covered yet. */
static inline uint32_t fixed_uncarved(const struct hw_fixed *f, struct hw_heap *h)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        bytes += (f->counts[i] - load4(h, f->carved_at + 4u * i)) * fixed_stride(f, i);
    }
    return bytes;
}

static inline struct hw_statistics hw_statistics(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_statistics told = {0, 0, 0, 0, 0, 0, 0};
    told.peak = load4(heap, p->shared_high_at);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        count_blocks(p, i, heap, &told);
        if (pool->kind == HW_GENERAL) {
            const struct hw_general *g = &pool->general;
            const uint32_t above = payload_within(g, load4(heap, g->limit_at) - load4(heap, g->top_at));
            if (above > told.largest_free) {
                told.largest_free = above;
            }
            if (g->region) {
                told.peak -= g->start + g->region - load4(heap, g->high_at);
            }
        }
        if (pool->kind == HW_FIXED && pool->fixed.grow == 0) {
            told.peak -= fixed_uncarved(&pool->fixed, heap);
        }
        if (pool->kind == HW_FIXED && pool->fixed.grow) {
            told.peak += load4(heap, pool->fixed.end_at) - load4(heap, pool->fixed.limit_at);
        }
    }
    told.refused = load4(heap, p->refused_at);
    if (p->checks) {
        told.misused = load4(heap, p->misused_at);
    }
    return told;
}

/* ---- invariants of a general pool -------------------------------------------------------------------------------- */

/* Free neighbours that the policy would have merged. */
static inline int should_have_merged(const struct hw_general *g, uint32_t word, uint32_t next_word)
{
    return g->coalesce == HW_IMMEDIATE && is_mergeable(g, word) && is_mergeable(g, next_word);
}

/* Checks one block against what is known of the block before it; `previous` is that block's word, 0 for the first. */
static inline int check_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t previous)
{
    const uint32_t room = load4(h, g->top_at) - b;
    if (room < g->min_block) {
        return HW_BROKEN_BOUNDS;
    }
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (size < g->min_block || (size & ((1u << g->unit_shift) - 1u)) != 0) {
        return HW_BROKEN_SIZE;
    }
    if (size > room) {
        return HW_BROKEN_BOUNDS;
    }
    if (previous && should_have_merged(g, previous, word)) {
        return HW_BROKEN_MERGE;
    }
    if (g->boundary_tags) {
        const int previous_free = previous != 0 && is_mergeable(g, previous);
        if (previous_free != ((word & HW_PREV_USED) == 0)) {
            return HW_BROKEN_FLAGS;
        }
        if (is_mergeable(g, word) && size_before(g, h, b + size) != size) {
            return HW_BROKEN_FLAGS;
        }
    }
    if (g->coalesce == HW_IMMEDIATE && is_mergeable(g, word) && b + size == load4(h, g->top_at)) {
        return HW_BROKEN_MERGE;
    }
    return 0;
}

/* Checks one list and adds the number of its blocks to *blocks. */
static inline int check_list(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t most,
                             uint32_t *blocks)
{
    uint32_t before = head;
    uint32_t key = 0;
    uint32_t node = load_link(&g->links, h, before);
    while (node) {
        const uint32_t b = node - g->header;
        const uint32_t top = load4(h, g->top_at);
        if (b < g->start || b >= top || top - b < g->min_block || (node & (g->align - 1u)) != 0) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t word = load_word(g, h, b);
        const uint32_t size = word_size(g, word);
        if ((word & HW_USED) || size < g->min_block || list_head(g, size) != head || *blocks >= most) {
            return HW_BROKEN_LIST;
        }
        if (g->free_list == HW_DOUBLE && load_link(&g->links, h, node + g->links.field.bytes) != before) {
            return HW_BROKEN_LINK;
        }
        if (g->order == HW_ADDRESS || g->order == HW_SIZE) {
            const uint32_t this_key = g->order == HW_SIZE ? size : b;
            if (this_key < key) {
                return HW_BROKEN_LIST;
            }
            key = this_key;
        }
        *blocks += 1u;
        before = node;
        node = load_link(&g->links, h, node);
    }
    if (g->order == HW_FIFO && load_link(&g->links, h, head + g->links.field.bytes) != before) {
        return HW_BROKEN_LINK;
    }
    return 0;
}

/* Checks that the bitmap and its summary lead to a list that holds blocks. */
static inline int check_bitmap(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t map = load4(h, g->bitmap_at + bin / 32u * 4u);
    if ((map >> bin % 32u & 1u) == 0) {
        return HW_BROKEN_LIST;
    }
    if (g->bins > 32u && (load4(h, g->summary_at) >> bin / 32u & 1u) == 0) {
        return HW_BROKEN_LIST;
    }
    return 0;
}

/* Checks that the next search starts at a block, or in one list at its head or a free block; the walk was fine. */
static inline int check_rover(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t rover = load4(h, g->rover_at);
    const uint32_t top = load4(h, g->top_at);
    if (rover == (g->free_list == HW_IMPLICIT ? top : g->lists_at)) {
        return 0;
    }
    uint32_t b = g->start;
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        if (g->free_list == HW_IMPLICIT) {
            if (rover == b) {
                return 0;
            }
        } else if (rover == b + g->header && (word & HW_USED) == 0) {
            return 0;
        }
        b += word_size(g, word);
    }
    return HW_BROKEN_LINK;
}

/* Checks that the lists hold exactly the `free_blocks` blocks that the walk found free. */
static inline int check_lists(const struct hw_general *g, struct hw_heap *h, uint32_t free_blocks)
{
    uint32_t listed = 0;
    if (g->free_list == HW_IMPLICIT) {
        return 0;
    }
    const uint32_t lists = g->bins ? g->bins : 1u;
    for (uint32_t list = 0; list < lists; list++) {
        const uint32_t head = g->lists_at + list * g->list_stride;
        const int broken = check_list(g, h, head, free_blocks, &listed);
        if (broken) {
            return broken;
        }
        if (g->bins && load_link(&g->links, h, head) != 0 && check_bitmap(g, h, list) != 0) {
            return HW_BROKEN_LIST;
        }
    }
    if (g->fit == HW_BEST && g->search_percent < 100u && load4(h, g->count_at) != free_blocks) {
        return HW_BROKEN_COUNT;
    }
    return listed == free_blocks ? 0 : HW_BROKEN_COUNT;
}

static inline int check_general(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    if (top < g->start || top > load4(h, g->high_at) || load4(h, g->high_at) > load4(h, g->limit_at)) {
        return HW_BROKEN_BOUNDS;
    }
    uint32_t previous = 0;
    uint32_t free_blocks = 0;
    int victim_seen = 0;
    uint32_t b = g->start;
    while (b < top) {
        if (g->victim_up_to && b == load4(h, g->victim_at) && load4(h, g->victim_at + 4u) > b) {
            if (previous && is_mergeable(g, previous)) {
                return HW_BROKEN_MERGE;
            }
            victim_seen = 1;
            previous = 0;
            b = load4(h, g->victim_at + 4u);
        } else {
            const int broken = check_block(g, h, b, previous);
            if (broken) {
                return broken;
            }
            previous = load_word(g, h, b);
            free_blocks += (previous & HW_USED) == 0;
            b += word_size(g, previous);
        }
    }
    if (b != top) {
        return HW_BROKEN_BOUNDS;
    }
    if (g->victim_up_to && victim_seen == 0 && load4(h, g->victim_at) != load4(h, g->victim_at + 4u)) {
        return HW_BROKEN_BOUNDS;
    }
    if (g->fit == HW_NEXT && check_rover(g, h) != 0) {
        return HW_BROKEN_LINK;
    }
    return check_lists(g, h, free_blocks);
}

/* ---- invariants of the other pools ------------------------------------------------------------------------------- */

static inline int check_quick(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    uint32_t cached = 0;
    for (uint32_t list = 0; list < q->count; list++) {
        const uint32_t capacity = quick_list_capacity(q, list);
        uint32_t blocks = 0;
        uint32_t node = load_link(&q->links, h, quick_head(q, list));
        while (node) {
            if (!heap_has_used(p, h, node) || heap_capacity(p, h, node) != capacity) {
                return HW_BROKEN_QUICK;
            }
            blocks++;
            if (blocks > load4(h, p->shared_end_at)) {
                return HW_BROKEN_QUICK;
            }
            node = load_link(&q->links, h, node);
        }
        if (q->limit_blocks || q->limit_bytes) {
            if (load4(h, q->counts_at + 4u * list) != blocks) {
                return HW_BROKEN_COUNT;
            }
        }
        if (q->limit_blocks && blocks > q->limit_blocks) {
            return HW_BROKEN_QUICK;
        }
        if (q->limit_bytes && blocks * capacity > q->limit_bytes) {
            return HW_BROKEN_QUICK;
        }
        cached += blocks * capacity;
    }
    if (q->flush_share && load4(h, q->cached_at) != cached) {
        return HW_BROKEN_COUNT;
    }
    return 0;
}

/* The list of one class, of its free blocks or the chain of all its blocks: every entry is a block of the class. */
static inline int check_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->first_fit && f->grow == 0) {
        return 0;
    }
    uint32_t blocks = 0;
    uint32_t node = load_link(&f->links, h, fixed_head(f, class_));
    while (node) {
        if ((node & (f->align - 1u)) != 0 || !fixed_is_payload(f, h, node) || fixed_class_of(f, h, node) != class_) {
            return HW_BROKEN_CLASS;
        }
        blocks++;
        if (blocks > load4(h, f->end_at)) {
            return HW_BROKEN_LIST;
        }
        if (f->first_fit) {
            node = load_link(&f->links, h, fixed_chain_at(f, node));
        } else {
            node = load_link(&f->links, h, node);
        }
    }
    return 0;
}

static inline int check_fixed(const struct hw_fixed *f, struct hw_heap *h)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const int broken = check_class(f, h, i);
        if (broken) {
            return broken;
        }
        if (f->grow == 0 && load4(h, f->carved_at + 4u * i) > f->counts[i]) {
            return HW_BROKEN_BOUNDS;
        }
    }
    if (f->grow) {
        uint32_t b = load4(h, f->limit_at);
        const uint32_t end = load4(h, f->end_at);
        while (b < end) {
            const uint32_t class_ = fixed_class_of(f, h, b + f->header);
            if (class_ >= f->count) {
                return HW_BROKEN_CLASS;
            }
            b += fixed_stride(f, class_);
        }
        if (b != end) {
            return HW_BROKEN_BOUNDS;
        }
    }
    return 0;
}

static inline int hw_check(const struct hw_policy *p, struct hw_heap *heap)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        int broken = 0;
        if (pool->kind == HW_FIXED) {
            broken = check_fixed(&pool->fixed, heap);
        }
        if (pool->kind == HW_GENERAL) {
            broken = check_general(&pool->general, heap);
        }
        if (broken) {
            return broken;
        }
    }
    /* Last, because a look at a cached block relies on its pool. */
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            const int broken = check_quick(p, &pool->quick, heap);
            if (broken) {
                return broken;
            }
        }
    }
    return 0;
}

#endif
