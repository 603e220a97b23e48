/* check.h: looking at a heap from outside: the walk, the statistics, and the checker of invariants.
 *
 * Nothing that the arena says is believed before it was looked at, so that a look at a heap that was damaged comes to
 * an end, and stays inside the arena: first the boundaries of each pool, then each size and link. Only two things are
 * taken on trust: without checks where the arena ends, which one word alone tells, and numbers of handles that are with
 * the caller.
 *
 * Firmware that calls none of these carries none of their code.
 */
#ifndef HW_CHECK_H
#define HW_CHECK_H

#include "heap.h"

/* ---- the walk -------------------------------------------------------------------------------------------------- */

/* Whether a piece of `size` bytes fits into `room` bytes, and blocks can lie behind it. */
static inline int is_piece(const struct hw_general *g, uint32_t size, uint32_t room)
{
    return size <= room && (size & (((uint32_t)1 << g->unit_shift) - 1u)) == 0;
}

/* Describes the block that begins at `at` in a general pool; 0 behind the last one, or where none can be. */
static inline int general_describe(const struct hw_general *g, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t top = load4(h, g->top_at);
    if (at >= top) {
        return 0;
    }
    block->offset = at;
    if (g->victim_up_to && at == load4(h, g->victim_at) && load4(h, g->victim_at + 4u) > at) {
        block->size = load4(h, g->victim_at + 4u) - at;
        block->header = 0;
        block->state = HW_BLOCK_VICTIM;
        return is_piece(g, block->size, top - at);
    }
    if (top - at < g->min_block) {
        return 0;
    }
    const uint32_t word = load_word(g, h, at);
    block->size = word_size(g, word);
    block->header = word & HW_USED ? payload_of(g, at) - at : g->header;
    block->state = word & HW_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return is_size_within(g, at, block->size, top);
}

static inline void describe_fixed(const struct hw_fixed *f, uint32_t class_, uint32_t b, struct hw_block *block)
{
    block->offset = b;
    block->size = fixed_stride(f, class_);
    block->header = f->header;
    block->state = HW_BLOCK_USED;
}

/* Describes the first block at or behind `at` of classes with counts; 0 behind the last one. */
static inline int fixed_describe_counted(const struct hw_fixed *f, struct hw_heap *h, uint32_t at,
                                         struct hw_block *block)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t end = f->blocks_at[i] + load4(h, f->carved_at + 4u * i) * fixed_stride(f, i);
        if (at < f->blocks_at[i]) {
            at = f->blocks_at[i];
        }
        if (at < end) {
            describe_fixed(f, i, at, block);
            return 1;
        }
    }
    return 0;
}

/* Describes the block at `at` of classes that grow; 0 behind the last one, or where none can be. */
static inline int fixed_describe_grown(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t end = load4(h, f->end_at);
    if (at >= end || end - at < fixed_stride(f, 0)) {
        return 0;
    }
    const uint32_t class_ = fixed_class_of(f, h, at + f->header);
    if (class_ >= f->count || fixed_stride(f, class_) > end - at) {
        return 0;
    }
    describe_fixed(f, class_, at, block);
    return 1;
}

/* Describes the block that begins at `at` in a buddy pool; 0 behind the last one, or where none can be. */
static inline int buddy_describe(const struct hw_buddy *y, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t top = load4(h, y->top_at);
    if (at >= top) {
        return 0;
    }
    const uint32_t word = load_order(y, h, at);
    if (word >> 1 >= y->orders || order_size(y, word >> 1) > top - at) {
        return 0;
    }
    block->offset = at;
    block->size = order_size(y, word >> 1);
    block->header = y->header;
    block->state = word & HW_BUDDY_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return 1;
}

/* Describes the group that begins at `at`, its descriptors not counted; 0 behind the last one, or where none can be. */
static inline int partition_describe(const struct hw_partition *g, struct hw_heap *h, uint32_t at,
                                     struct hw_block *block)
{
    const uint32_t i = partition_number(g, at);
    const uint32_t top = load4(h, g->top_at);
    if (i > top) {
        return 0;
    }
    const uint32_t word = load_number(g, h, count_at(g, partition_table(g, h), i));
    if (word >> 1 > top + 1u - i) {
        return 0;
    }
    block->offset = at;
    block->size = (word >> 1) * g->partition;
    block->header = 0;
    block->state = word & HW_GROUP_USED ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return block->size != 0;
}

/* Whether a handle with this number can be: what the caller keeps is taken on trust. */
static inline int is_handle(const struct hw_compact *c, struct hw_heap *h, uint32_t k)
{
    return !c->in_arena || k <= load4(h, c->handles_at);
}

/* Describes the block or hole that begins at `at` where blocks have no header. O(blocks). */
static inline int compact_describe_chained(const struct hw_compact *c, struct hw_heap *h, uint32_t at, uint32_t top,
                                           struct hw_block *block)
{
    const uint32_t table = handle_table(c, h);
    uint32_t left = (top - c->start) / c->align;
    uint32_t k = load4(h, c->head_at);
    while (k && left != 0 && is_handle(c, h, k) && load_handle(c, h, table, k) < at) {
        left--;
        k = load_handle_next(c, h, table, k);
    }
    if (k && (left == 0 || !is_handle(c, h, k))) {
        return 0;
    }
    const uint32_t next = k ? load_handle(c, h, table, k) : top;
    block->offset = at;
    block->header = 0;
    block->state = HW_BLOCK_FREE;
    block->size = next - at;
    if (k && next == at) {
        block->state = HW_BLOCK_USED;
        block->size = load_handle_size(c, h, table, k);
    }
    return block->size != 0 && block->size <= top - at;
}

/* Whether a block with a header can have `size` bytes, where there are `room`. */
static inline int is_compact_size(const struct hw_compact *c, uint32_t size, uint32_t room)
{
    return size >= c->header && size <= room && (size & (c->align - 1u)) == 0;
}

/* Describes the block or hole that begins at `at` in a compact pool; 0 behind the last one, or where none can be. */
static inline int compact_describe(const struct hw_compact *c, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    const uint32_t top = load4(h, c->top_at);
    if (at >= top) {
        return 0;
    }
    if (c->header == 0) {
        return compact_describe_chained(c, h, at, top, block);
    }
    if (top - at < c->header) {
        return 0;
    }
    block->offset = at;
    block->size = header_size(c, h, at);
    block->header = c->header;
    block->state = header_handle(c, h, at) ? HW_BLOCK_USED : HW_BLOCK_FREE;
    return is_compact_size(c, block->size, top - at);
}

/* Describe the block at `at`, 0 being the pool's first; return 0 behind the last one. In a fixed pool, and where quick
 * lists stand above, a block that is told to be in use may also be one that waits in a list, see block_state(). */

static inline int general_block_at(const struct hw_general *g, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return general_describe(g, h, at ? at : g->start, block);
}

static inline int fixed_block_at(const struct hw_fixed *f, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    if (f->grow) {
        return fixed_describe_grown(f, h, at ? at : load4(h, f->limit_at), block);
    }
    return fixed_describe_counted(f, h, at, block);
}

static inline int buddy_block_at(const struct hw_buddy *y, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return buddy_describe(y, h, at ? at : y->start, block);
}

static inline int partition_block_at(const struct hw_partition *g, struct hw_heap *h, uint32_t at,
                                     struct hw_block *block)
{
    return partition_describe(g, h, at ? at : g->start, block);
}

static inline int compact_block_at(const struct hw_compact *c, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return compact_describe(c, h, at ? at : c->start, block);
}

static inline int pool_block_at(const struct hw_pool *pool, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return HW_ASK(pool, block_at, h, at, block);
}

/* Whether blocks that look used may wait in a list, or to be free. */
static inline int has_waiting(const struct hw_policy *p, const struct hw_pool *pool)
{
    return p->checks == HW_CHECKS_FULL || pool->kind == HW_FIXED || pool->cached;
}

/* Bytes that the payload of a used block holds. */
static inline uint32_t block_capacity(const struct hw_pool *pool, struct hw_heap *h, const struct hw_block *block)
{
    if (pool->kind == HW_FIXED) {
        return fixed_capacity(&pool->fixed, h, block->offset + block->header);
    }
    if (pool->kind == HW_GENERAL) {
        return block->size - block->header - pool->general.trailer;
    }
    return block->size - block->header - (pool->kind == HW_BUDDY ? pool->buddy.trailer : pool->partition.trailer);
}

/* What a block is where some that look used wait in a list. O(list). */
static inline uint32_t block_state(const struct hw_policy *p, const uint32_t owner, struct hw_heap *h,
                                   const struct hw_block *block)
{
    const struct hw_pool *pool = &p->pools[owner];
    if (block->state == HW_BLOCK_USED) {
        const uint32_t at = block->offset + block->header;
        if (pool->kind == HW_FIXED && fixed_is_free(&pool->fixed, h, fixed_class_of(&pool->fixed, h, at), at)) {
            return HW_BLOCK_FREE;
        }
        if (pool->cached && is_cached(p, owner, h, at, block_capacity(pool, h, block))) {
            return HW_BLOCK_CACHED;
        }
        if (p->checks == HW_CHECKS_FULL && is_waiting(p, h, at, block_capacity(pool, h, block))) {
            return HW_BLOCK_CACHED;
        }
    }
    return block->state;
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
            if (pool->kind != HW_QUICK && pool_is_bounded(p, pool, heap) && pool_block_at(pool, heap, at, block)) {
                if (has_waiting(p, pool)) {
                    block->state = block_state(p, i, heap, block);
                }
                return 1;
            }
        }
    }
    return 0;
}

static inline size_t hw_block_bytes(const struct hw_policy *p, struct hw_heap *heap, const void *pointer)
{
    const uint32_t at = pointer ? address_of(p, heap, pointer) : 0;
    if (at == 0 || (p->checks && (!heap_has_used(p, heap, at) || !heap_has_object(p, heap, at)))) {
        return 0;
    }
    return heap_block_bytes(p, heap, at);
}

/* Payload of the largest block that fits into `bytes` bytes of free memory; 0 where none does. */
static inline uint32_t payload_within(const struct hw_general *g, uint32_t bytes)
{
    uint32_t size = bytes >> g->unit_shift << g->unit_shift;
    if (g->powers && size != 0) {
        size = (uint32_t)1 << highest_bit(size);
    }
    return size < g->min_block ? 0 : size - g->overhead;
}

/* What the largest request that a free block can serve asks for. */
static inline uint32_t free_payload(const struct hw_pool *pool, struct hw_heap *h, const struct hw_block *block)
{
    if (pool->kind == HW_COMPACT) {
        return 0;
    }
    if (pool->kind == HW_GENERAL) {
        return payload_within(&pool->general, block->size);
    }
    return block_capacity(pool, h, block);
}

/* Adds what one request could have to the statistics. */
static inline void tell_free(struct hw_statistics *told, uint32_t payload)
{
    if (payload > told->largest_free) {
        told->largest_free = payload;
    }
}

/* Whether a freed block is one of those that wait. */
static inline int has_turn(const struct hw_policy *p, struct hw_heap *h, uint32_t at)
{
    for (uint32_t i = 0; i < HW_WAITING; i++) {
        if (load4(h, p->waiting_at + 4u + 4u * i) == at) {
            return 1;
        }
    }
    return 0;
}

/* What a block is as far as it can be told without a walk. */
static inline uint32_t marked_state(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h,
                                    const struct hw_block *block)
{
    const uint32_t at = block->offset + block->header;
    if (pool->kind == HW_FIXED && pool->fixed.flags &&
        fixed_is_free(&pool->fixed, h, fixed_class_of(&pool->fixed, h, at), at)) {
        return HW_BLOCK_FREE;
    }
    if (p->checks == HW_CHECKS_FULL && block->state == HW_BLOCK_USED && has_turn(p, h, at)) {
        return HW_BLOCK_CACHED;
    }
    return block->state;
}

/* Adds the blocks of one pool to the statistics. */
static inline void count_blocks(const struct hw_policy *p, const struct hw_pool *pool, struct hw_heap *h,
                                struct hw_statistics *told)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    while (pool_block_at(pool, h, block.offset + block.size, &block)) {
        const uint32_t state = marked_state(p, pool, h, &block);
        if (state == HW_BLOCK_USED) {
            told->used += block.size;
            told->used_blocks++;
        } else {
            told->unused += block.size;
            if (state != HW_BLOCK_CACHED) {
                tell_free(told, free_payload(pool, h, &block));
            }
        }
    }
}

/* Moves blocks, taken for used ones before, to those that are not. */
static inline void count_listed(struct hw_statistics *told, uint32_t blocks, uint32_t size)
{
    told->used -= blocks * size;
    told->used_blocks -= blocks;
    told->unused += blocks * size;
}

/* Adds the free blocks of a fixed pool whose blocks bear no mark. O(free blocks). */
static inline void count_fixed_lists(const struct hw_fixed *f, struct hw_heap *h, struct hw_statistics *told)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const uint32_t most = fixed_blocks(f, h, i);
        uint32_t blocks = 0;
        uint32_t node = load_link(&f->links, h, fixed_head(f, i));
        while (blocks != most && (node & (f->align - 1u)) == 0 && fixed_is_payload(f, h, node)) {
            blocks++;
            node = load_link(&f->links, h, node);
        }
        count_listed(told, blocks, fixed_stride(f, i));
        if (blocks != 0) {
            tell_free(told, f->sizes[i]);
        }
    }
}

/* Bytes of a block whose payload holds so many; of a fixed pool's largest where none does, as on a damaged list. */
static inline uint32_t bytes_with(const struct hw_pool *pool, uint32_t capacity)
{
    if (pool->kind == HW_GENERAL) {
        return capacity + pool->general.overhead;
    }
    if (pool->kind == HW_FIXED) {
        const uint32_t class_ = fixed_class_for(&pool->fixed, capacity);
        return fixed_stride(&pool->fixed, class_ < pool->fixed.count ? class_ : pool->fixed.count - 1u);
    }
    return pool->kind == HW_BUDDY ? capacity + pool->buddy.header + pool->buddy.trailer
                                  : capacity + pool->partition.trailer;
}

/* Tells of one cached block, which was taken for a used one before. */
static inline void count_cached(const struct hw_policy *p, const uint32_t quick, struct hw_heap *h, uint32_t at,
                                uint32_t capacity, struct hw_statistics *told)
{
    for (uint32_t i = quick; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool_owns(pool, h, at)) {
            count_listed(told, 1, bytes_with(pool, capacity));
            return;
        }
    }
}

/* Adds what the quick lists of a pool hold. O(cached blocks). */
static inline void count_quick(const struct hw_policy *p, const uint32_t quick, struct hw_heap *h,
                               struct hw_statistics *told)
{
    const struct hw_quick *q = &p->pools[quick].quick;
    const uint32_t end = arena_end(p, h);
    uint32_t left = end / q->block_least;
    for (uint32_t list = 0; list < q->count; list++) {
        uint32_t node = load_link(&q->links, h, quick_head(q, list));
        while (left != 0 && quick_may_list(q, node, p->control, end)) {
            count_cached(p, quick, h, node, quick_list_capacity(q, list), told);
            left--;
            node = load_link(&q->links, h, node);
        }
    }
}

/* What follows adds the rest of a pool to the statistics: what its memory beyond the blocks could serve; and to the
 * peak, which counts all regions and nothing at the arena's end, what differs from that. */

/* Whether `node`, which some link leads to, lies where that of a block can. */
static inline int is_node_within(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    const uint32_t b = node - g->node;
    const uint32_t top = load4(h, g->top_at);
    return b >= g->start && b < top && top - b >= g->min_block && ((b + g->header) & (g->align - g->pad - 1u)) == 0;
}

/* Most blocks that lie below the top. */
static inline uint32_t general_blocks(const struct hw_general *g, struct hw_heap *h)
{
    return (load4(h, g->top_at) - g->start) / g->min_block;
}

/* The free block that ends at the top; 0 where there is none, or not among the first `looks` of the list. */
static inline uint32_t last_free(const struct hw_general *g, struct hw_heap *h, uint32_t looks)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t node = load_link(&g->links, h, g->lists_at);
    for (; looks != 0 && is_node_within(g, h, node); looks--) {
        const uint32_t b = node - g->node;
        if (word_size(g, load_word(g, h, b)) == top - b) {
            return b;
        }
        node = load_link(&g->links, h, node);
    }
    return 0;
}

/* Payload of the largest block that a general pool can place above its last one in use. */
static inline uint32_t general_above(const struct hw_general *g, struct hw_heap *h, uint32_t looks)
{
    if (g->top == HW_TOP_LIST) {
        return 0;
    }
    uint32_t from = load4(h, g->top_at);
    if (g->top == HW_TOP_EXTEND) {
        const uint32_t last = last_free(g, h, looks);
        from = last ? last : from;
    }
    return payload_within(g, load4(h, g->limit_at) - from);
}

static inline void general_tell(const struct hw_general *g, struct hw_heap *h, struct hw_statistics *told)
{
    tell_free(told, general_above(g, h, general_blocks(g, h)));
    if (g->region) {
        told->peak -= g->start + g->region - load4(h, g->high_at);
    }
}

/* Whether a class can have a block that it never had. */
static inline int fixed_has_more(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->grow == 0) {
        return load4(h, f->carved_at + 4u * class_) < f->counts[class_];
    }
    const uint32_t stride = fixed_stride(f, class_);
    const uint32_t blocks = stride < f->page ? f->page / stride : 1u;
    return load4(h, f->limit_at) - load4(h, f->high_at) >= blocks * stride;
}

static inline void fixed_tell(const struct hw_fixed *f, struct hw_heap *h, struct hw_statistics *told)
{
    for (uint32_t i = 0; i < f->count; i++) {
        if (fixed_has_more(f, h, i)) {
            tell_free(told, f->sizes[i]);
        }
    }
    if (f->grow) {
        told->peak += load4(h, f->end_at) - load4(h, f->limit_at);
        return;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        told->peak -= (f->counts[i] - load4(h, f->carved_at + 4u * i)) * fixed_stride(f, i);
    }
}

/* Payload of the largest block that a buddy pool can place above its top. O(orders). */
static inline uint32_t buddy_above(const struct hw_buddy *y, struct hw_heap *h)
{
    const uint32_t top = load4(h, y->top_at);
    const uint32_t limit = load4(h, y->limit_at);
    for (uint32_t order = y->orders; order-- > 0;) {
        if (buddy_place(y, top, order) + order_size(y, order) <= limit) {
            return order_size(y, order) - y->header - y->trailer;
        }
    }
    return 0;
}

static inline void buddy_tell(const struct hw_buddy *y, struct hw_heap *h, struct hw_statistics *told)
{
    tell_free(told, buddy_above(y, h));
    if (y->region) {
        told->peak -= y->start + y->region - load4(h, y->high_at);
    }
}

/* Bytes of the partitions above the top, those that can still be made included. */
static inline uint32_t partition_above(const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t left = g->most - top;
    if (g->grow) {
        const uint32_t high = load4(h, g->high_at);
        const uint32_t more = (load4(h, g->limit_at) - high) / (g->partition + g->descriptor);
        const uint32_t had = partition_number(g, high) - 1u - top;
        left = had + more < left ? had + more : left;
    }
    if (g->trailer && left == 0) {
        return 0;
    }
    return left * g->partition - g->trailer;
}

/* Bytes of a region of counted partitions, descriptors included, that no group has covered yet. */
static inline uint32_t partition_uncovered(const struct hw_partition *g, struct hw_heap *h)
{
    return (g->most + 1u - partition_number(g, load4(h, g->high_at))) * (g->partition + g->descriptor);
}

static inline void partition_tell(const struct hw_partition *g, struct hw_heap *h, struct hw_statistics *told)
{
    tell_free(told, partition_above(g, h));
    if (g->grow) {
        told->peak += load4(h, g->end_at) - load4(h, g->limit_at);
    } else {
        told->peak -= partition_uncovered(g, h);
    }
}

/* Payload of the largest object that fits once all holes are closed. */
static inline uint32_t compact_above(const struct hw_compact *c, struct hw_heap *h)
{
    const uint32_t high = load4(h, c->high_at);
    uint32_t left = load4(h, c->limit_at) - load4(h, c->top_at);
    if (c->in_arena && load4(h, c->unused_at) == 0) {
        const uint32_t above = load4(h, c->limit_at) - high;
        if (above < c->handle) {
            return 0;
        }
        left -= c->handle;
    }
    if (c->lazy) {
        left += load4(h, c->holes_at);
    }
    left &= ~(c->align - 1u);
    return left < c->header + c->align ? 0 : left - c->header;
}

static inline void compact_tell(const struct hw_compact *c, struct hw_heap *h, struct hw_statistics *told)
{
    tell_free(told, compact_above(c, h));
    if (c->in_arena) {
        told->peak += load4(h, c->end_at) - load4(h, c->limit_at);
    }
}

static inline struct hw_statistics hw_statistics(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_statistics told = {0, 0, 0, 0, 0, 0, 0};
    told.peak = load4(heap, p->shared_high_at);
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            count_quick(p, i, heap, &told);
        } else if (pool_is_bounded(p, pool, heap)) {
            count_blocks(p, pool, heap, &told);
            if (pool->kind == HW_FIXED && !pool->fixed.flags) {
                count_fixed_lists(&pool->fixed, heap, &told);
            }
            HW_ASK(pool, tell, heap, &told);
        }
        if (pool->kind == HW_COMPACT && told.largest_free > pool->max_size) {
            told.largest_free = pool->max_size;
        }
    }
    told.refused = load4(heap, p->refused_at);
    if (p->checks) {
        told.misused = load4(heap, p->misused_at);
    }
    return told;
}

/* ---- invariants of a general pool -------------------------------------------------------------------------------- */

/* Whether neighbours are free that should have been merged. */
static inline int should_have_merged(const struct hw_general *g, uint32_t word, uint32_t next_word)
{
    return g->coalesce == HW_IMMEDIATE && is_mergeable(g, word) && is_mergeable(g, next_word);
}

/* Whether a block knows what lies before it; `previous` is the word of the block before, 0 for none. */
static inline int is_tag_right(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t previous)
{
    const uint32_t mergeable = previous != 0 && is_mergeable(g, previous) ? word_size(g, previous) : 0;
    if (g->tag_in_header) {
        return size_before(g, h, b) == mergeable;
    }
    if ((load_word(g, h, b) & HW_PREV_USED) != 0) {
        return mergeable == 0;
    }
    return mergeable != 0 && size_before(g, h, b) == mergeable;
}

/* Checks one block. `previous` is the word of the block before it, 0 for the first. */
static inline int check_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t previous)
{
    const uint32_t room = load4(h, g->top_at) - b;
    if (room < g->min_block) {
        return HW_BROKEN_BOUNDS;
    }
    const uint32_t word = load_word(g, h, b);
    const uint32_t size = word_size(g, word);
    if (size < g->min_block || (size & (((uint32_t)1 << g->unit_shift) - 1u)) != 0) {
        return HW_BROKEN_SIZE;
    }
    if (size > room) {
        return HW_BROKEN_BOUNDS;
    }
    if (previous && should_have_merged(g, previous, word)) {
        return HW_BROKEN_MERGE;
    }
    if (g->boundary_tags && !is_tag_right(g, h, b, previous)) {
        return HW_BROKEN_FLAGS;
    }
    if (g->pad && (word & HW_USED) && block_of(g, h, payload_of(g, b)) != b) {
        return HW_BROKEN_FLAGS;
    }
    if (g->top == HW_TOP_LAST && g->coalesce == HW_IMMEDIATE && is_mergeable(g, word) &&
        b + size == load4(h, g->top_at)) {
        return HW_BROKEN_MERGE;
    }
    return 0;
}

/* Whether a free block of this size may be in the list at `head`. */
static inline int belongs_to(const struct hw_general *g, uint32_t head, uint32_t size)
{
    if (g->unsorted && head == g->unsorted_at) {
        return 1;
    }
    return list_head(g, size) == head;
}

/* The order of the list at `head`. */
static inline uint32_t order_of(const struct hw_general *g, uint32_t head)
{
    if (g->unsorted && head == g->unsorted_at) {
        return HW_FIFO;
    }
    if (g->bins && g->large_order != g->order && head >= g->lists_at + g->bin_linear_bins * g->list_stride) {
        return g->large_order;
    }
    return g->order;
}

/* Checks one list and adds the number of its blocks to *blocks. */
static inline int check_list(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t most,
                             uint32_t *blocks)
{
    const uint32_t order = order_of(g, head);
    uint32_t before = head;
    uint32_t key = 0;
    uint32_t node = load_link(&g->links, h, before);
    while (node) {
        if (!is_node_within(g, h, node)) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t word = load_word(g, h, node - g->node);
        const uint32_t size = word_size(g, word);
        if ((word & HW_USED) || size < g->min_block || !belongs_to(g, head, size) || *blocks >= most) {
            return HW_BROKEN_LIST;
        }
        if (g->free_list == HW_DOUBLE && load_link(&g->links, h, node + g->links.field.bytes) != before) {
            return HW_BROKEN_LINK;
        }
        if (order == HW_ADDRESS || order == HW_SIZE) {
            const uint32_t this_key = order == HW_SIZE ? size : node;
            if (this_key < key) {
                return HW_BROKEN_LIST;
            }
            key = this_key;
        }
        *blocks += 1u;
        before = node;
        node = load_link(&g->links, h, node);
    }
    /* Nothing is appended to a list in another order, so nobody reads its tail. */
    if (order == HW_FIFO && load_link(&g->links, h, head + g->links.field.bytes) != before) {
        return HW_BROKEN_LINK;
    }
    return 0;
}

/* Checks that a search finds the list of a bin that holds blocks. */
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

/* Checks that the next search starts where it may; the walk was fine. */
static inline int check_rover(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t rover = load4(h, g->rover_at);
    const uint32_t top = load4(h, g->top_at);
    if (rover == (g->free_list == HW_IMPLICIT ? top : g->lists_at) && g->search_from != HW_FROM_LOWEST_FREE) {
        return 0;
    }
    uint32_t b = g->start;
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        if (g->free_list == HW_IMPLICIT) {
            if (rover == b) {
                return 0;
            }
        } else if (rover == b + g->node && (word & HW_USED) == 0) {
            return 0;
        }
        if (g->search_from == HW_FROM_LOWEST_FREE && (word & HW_USED) == 0) {
            return HW_BROKEN_LINK;
        }
        b += word_size(g, word);
    }
    return g->search_from == HW_FROM_LOWEST_FREE && rover == top ? 0 : HW_BROKEN_LINK;
}

/* Whether `node`, which some link leads to, can be that of a free block. */
static inline int is_free_node(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    return is_node_within(g, h, node) && (load_word(g, h, node - g->node) & HW_USED) == 0;
}

/* Checks that from the root down one comes to a node, over at most `most` others. */
static inline int check_way(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t size, uint32_t most)
{
    uint32_t at = load_link(&g->links, h, g->lists_at);
    while (at != node) {
        if (at == 0 || most-- == 0 || !is_free_node(g, h, at)) {
            return HW_BROKEN_LINK;
        }
        at = load_link(&g->links, h, tree_is_before(g, node, size, at, tree_size(g, h, at)) ? at : tree_after(g, at));
    }
    return 0;
}

/* Checks what a node of the tree has below it; adds the number of its links to *links. */
static inline int check_node(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t *links)
{
    const uint32_t size = tree_size(g, h, node);
    for (uint32_t side = 0; side < 2u; side++) {
        const uint32_t below = load_link(&g->links, h, side ? tree_after(g, node) : node);
        if (below) {
            *links += 1u;
            if (!is_free_node(g, h, below)) {
                return HW_BROKEN_LINK;
            }
            if (!tree_is_above(g, node, size, below, tree_size(g, h, below))) {
                return HW_BROKEN_LIST;
            }
        }
    }
    return 0;
}

/* Checks that the tree holds exactly the `free_blocks` blocks that the walk found free: each is on the way that its
 * size and address show, and there are no more links than lead to them. O(blocks + free blocks * depth). */
static inline int check_tree(const struct hw_general *g, struct hw_heap *h, uint32_t free_blocks)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t links = load_link(&g->links, h, g->lists_at) != 0;
    uint32_t b = g->start;
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        if ((word & HW_USED) == 0) {
            int broken = check_way(g, h, b + g->node, word_size(g, word), free_blocks);
            if (broken == 0) {
                broken = check_node(g, h, b + g->node, &links);
            }
            if (broken) {
                return broken;
            }
        }
        b += word_size(g, word);
    }
    return links == free_blocks ? 0 : HW_BROKEN_COUNT;
}

/* Checks that the lists hold exactly the `free_blocks` blocks that the walk found free. */
static inline int check_lists(const struct hw_general *g, struct hw_heap *h, uint32_t free_blocks)
{
    uint32_t listed = 0;
    if (g->free_list == HW_IMPLICIT) {
        return 0;
    }
    if (g->free_list == HW_TREE) {
        return check_tree(g, h, free_blocks);
    }
    const uint32_t lists = g->bins ? g->bins : 1u;
    for (uint32_t list = 0; list < lists; list++) {
        const uint32_t head = g->lists_at + list * g->list_stride;
        const int broken = check_list(g, h, head, free_blocks, &listed);
        if (broken) {
            return broken;
        }
        const uint32_t filled = load_link(&g->links, h, head);
        if (g->bins && filled && check_bitmap(g, h, list) != 0) {
            return HW_BROKEN_LIST;
        }
        if (g->bin_unmark && !filled && (load4(h, g->bitmap_at + list / 32u * 4u) >> list % 32u & 1u) != 0) {
            return HW_BROKEN_LIST;
        }
    }
    if (g->unsorted) {
        const int broken = check_list(g, h, g->unsorted_at, free_blocks, &listed);
        if (broken) {
            return broken;
        }
    }
    if (g->fit == HW_BEST && g->search_percent < 100u && load4(h, g->count_at) != free_blocks) {
        return HW_BROKEN_COUNT;
    }
    return listed == free_blocks ? 0 : HW_BROKEN_COUNT;
}

static inline int general_check(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t previous = 0;
    uint32_t free_blocks = 0;
    int victim_seen = 0;
    uint32_t b = g->start;
    while (b < top) {
        if (g->victim_up_to && b == load4(h, g->victim_at) && load4(h, g->victim_at + 4u) > b) {
            if (previous && is_mergeable(g, previous)) {
                return HW_BROKEN_MERGE;
            }
            if (!is_piece(g, load4(h, g->victim_at + 4u) - b, top - b)) {
                return HW_BROKEN_BOUNDS;
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
    if (g->end_word && top != g->start) {
        if (!is_tag_right(g, h, top, previous) || (load_word(g, h, top) & HW_USED) == 0) {
            return HW_BROKEN_FLAGS;
        }
    }
    if (g->victim_up_to && victim_seen == 0 && load4(h, g->victim_at) != load4(h, g->victim_at + 4u)) {
        return HW_BROKEN_BOUNDS;
    }
    if ((g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE) && check_rover(g, h) != 0) {
        return HW_BROKEN_LINK;
    }
    return check_lists(g, h, free_blocks);
}

/* ---- invariants of the other pools ------------------------------------------------------------------------------- */

static inline int quick_check(const struct hw_policy *p, const struct hw_quick *q, struct hw_heap *h)
{
    uint32_t cached = 0;
    uint32_t left = arena_end(p, h) / q->block_least;
    for (uint32_t list = 0; list < q->count; list++) {
        const uint32_t capacity = quick_list_capacity(q, list);
        uint32_t blocks = 0;
        uint32_t node = load_link(&q->links, h, quick_head(q, list));
        while (node) {
            if (left == 0 || !heap_has_used(p, h, node) || heap_capacity(p, h, node) != capacity) {
                return HW_BROKEN_QUICK;
            }
            left--;
            blocks++;
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

/* Checks the list of one class: every entry is a block of the class. */
static inline int check_class(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_)
{
    if (f->first_fit && f->grow == 0) {
        return 0;
    }
    uint32_t left = fixed_blocks(f, h, class_);
    uint32_t node = load_link(&f->links, h, fixed_head(f, class_));
    while (node) {
        if ((node & (f->align - 1u)) != 0 || !fixed_is_payload(f, h, node) || fixed_class_of(f, h, node) != class_) {
            return HW_BROKEN_CLASS;
        }
        if (left == 0) {
            return HW_BROKEN_LIST;
        }
        left--;
        if (f->first_fit) {
            node = load_link(&f->links, h, fixed_chain_at(f, node));
        } else {
            node = load_link(&f->links, h, node);
        }
    }
    return 0;
}

static inline int fixed_check(const struct hw_fixed *f, struct hw_heap *h)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const int broken = check_class(f, h, i);
        if (broken) {
            return broken;
        }
    }
    if (f->grow) {
        struct hw_block block = {load4(h, f->limit_at), 0, 0, 0, 0};
        while (fixed_describe_grown(f, h, block.offset + block.size, &block)) {
        }
        if (block.offset + block.size != load4(h, f->end_at)) {
            return HW_BROKEN_CLASS;
        }
    }
    return 0;
}

/* Checks the lists of a buddy pool: blocks of their order, free, linked both ways. Adds their number to *listed. */
static inline int check_orders(const struct hw_buddy *y, struct hw_heap *h, uint32_t most, uint32_t *listed)
{
    for (uint32_t order = 0; order < y->orders; order++) {
        uint32_t before = order_head(y, order);
        uint32_t node = load_link(&y->links, h, before);
        while (node) {
            const uint32_t at = node - y->header - y->start;
            if (node < y->start + y->header || node >= load4(h, y->top_at) || (at & (order_size(y, 0) - 1u)) != 0) {
                return HW_BROKEN_BOUNDS;
            }
            if (load_order(y, h, node - y->header) != order << 1 || *listed >= most) {
                return HW_BROKEN_LIST;
            }
            if (load_link(&y->links, h, node + y->links.field.bytes) != before) {
                return HW_BROKEN_LINK;
            }
            *listed += 1u;
            before = node;
            node = load_link(&y->links, h, node);
        }
    }
    return 0;
}

static inline int buddy_check(const struct hw_buddy *y, struct hw_heap *h)
{
    const uint32_t top = load4(h, y->top_at);
    uint32_t free_blocks = 0;
    uint32_t listed = 0;
    uint32_t word = HW_BUDDY_USED;
    uint32_t b = y->start;
    while (b < top) {
        word = load_order(y, h, b);
        const uint32_t order = word >> 1;
        if (order >= y->orders || ((b - y->start) & (order_size(y, order) - 1u)) != 0) {
            return HW_BROKEN_SIZE;
        }
        if ((word & HW_BUDDY_USED) == 0) {
            const uint32_t buddy = y->start + ((b - y->start) ^ order_size(y, order));
            free_blocks++;
            if (order + 1u < y->orders && buddy < top && load_order(y, h, buddy) == word) {
                return HW_BROKEN_MERGE;
            }
        }
        b += order_size(y, order);
    }
    if (b != top) {
        return HW_BROKEN_BOUNDS;
    }
    if ((word & HW_BUDDY_USED) == 0) {
        return HW_BROKEN_MERGE;
    }
    const int broken = check_orders(y, h, free_blocks, &listed);
    if (broken) {
        return broken;
    }
    return listed == free_blocks ? 0 : HW_BROKEN_COUNT;
}

/* Checks one list of free groups, of at most `most`, and adds their number to *listed. */
static inline int check_free_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t list, uint32_t most,
                                    uint32_t *listed)
{
    const uint32_t table = partition_table(g, h);
    uint32_t before = 0;
    uint32_t key = 0;
    uint32_t i = load4(h, g->head_at + 4u * list);
    if (g->lists > 1u && (load4(h, g->bitmap_at) >> list & 1u) != (i != 0)) {
        return HW_BROKEN_LIST;
    }
    while (i) {
        if (i > load4(h, g->top_at)) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t word = load_number(g, h, count_at(g, table, i));
        const uint32_t this_key = g->order == HW_SIZE ? word >> 1 : i;
        if ((word & HW_GROUP_USED) || *listed == most || (g->order != HW_LIFO && this_key < key) ||
            (g->lists > 1u && group_list(g, word >> 1) != list)) {
            return HW_BROKEN_LIST;
        }
        if (load_number(g, h, previous_at(g, table, i)) != before) {
            return HW_BROKEN_LINK;
        }
        *listed += 1u;
        key = this_key;
        before = i;
        i = load_number(g, h, next_at(g, table, i));
    }
    return 0;
}

/* Checks all lists of free groups, which hold `most`. */
static inline int check_group_lists(const struct hw_partition *g, struct hw_heap *h, uint32_t most)
{
    uint32_t listed = 0;
    if (g->lists > 1u && g->lists < 32u && load4(h, g->bitmap_at) >> g->lists != 0) {
        return HW_BROKEN_LIST;
    }
    for (uint32_t list = 0; list < g->lists; list++) {
        const int broken = check_free_groups(g, h, list, most, &listed);
        if (broken) {
            return broken;
        }
    }
    return listed == most ? 0 : HW_BROKEN_COUNT;
}

static inline int partition_check(const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t top = load4(h, g->top_at);
    uint32_t word = HW_GROUP_USED;
    uint32_t free_groups = 0;
    uint32_t i = 1;
    while (i <= top) {
        const uint32_t previous = word;
        word = load_number(g, h, count_at(g, table, i));
        const uint32_t count = word >> 1;
        if (count == 0 || count > top + 1u - i) {
            return HW_BROKEN_SIZE;
        }
        free_groups += (word & HW_GROUP_USED) == 0;
        if (g->coalesce) {
            if (((previous | word) & HW_GROUP_USED) == 0) {
                return HW_BROKEN_MERGE;
            }
            if (load_number(g, h, first_at(g, table, i + count - 1u)) != i) {
                return HW_BROKEN_FLAGS;
            }
        }
        i += count;
    }
    if (g->coalesce && (word & HW_GROUP_USED) == 0) {
        return HW_BROKEN_MERGE;
    }
    return check_group_lists(g, h, free_groups);
}

/* Checks the handles in the arena: `used` lead to objects, all others are listed as given back. */
static inline int check_handles(const struct hw_compact *c, struct hw_heap *h, uint32_t used)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t handles = load4(h, c->handles_at);
    uint32_t unused = 0;
    uint32_t k = load4(h, c->unused_at);
    if (table - handles * c->handle != load4(h, c->limit_at) || used > handles) {
        return HW_BROKEN_BOUNDS;
    }
    while (k) {
        if (k > handles || unused == handles - used) {
            return HW_BROKEN_LIST;
        }
        unused++;
        k = load_unused(c, h, table, k);
    }
    return unused + used == handles ? 0 : HW_BROKEN_COUNT;
}

/* Checks the blocks by their headers; tells how many are used, and the bytes in holes. */
static inline int check_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t top = load4(h, c->top_at);
    uint32_t b = c->start;
    while (b < top) {
        if (top - b < c->header) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t size = header_size(c, h, b);
        const uint32_t k = header_handle(c, h, b);
        if (!is_compact_size(c, size, top - b)) {
            return HW_BROKEN_SIZE;
        }
        if (!is_handle(c, h, k)) {
            return HW_BROKEN_BOUNDS;
        }
        if (k && load_handle(c, h, table, k) != b + c->header) {
            return HW_BROKEN_LINK;
        }
        *used += k != 0;
        *holes += k ? 0 : size;
        b += size;
    }
    return 0;
}

/* Checks the blocks by their chained handles; tells how many there are, and the bytes between them. */
static inline int check_chain(const struct hw_compact *c, struct hw_heap *h, uint32_t *used, uint32_t *holes)
{
    const uint32_t table = handle_table(c, h);
    const uint32_t top = load4(h, c->top_at);
    uint32_t end = c->start;
    uint32_t k = load4(h, c->head_at);
    while (k) {
        if (!is_handle(c, h, k)) {
            return HW_BROKEN_BOUNDS;
        }
        const uint32_t at = load_handle(c, h, table, k);
        const uint32_t size = load_handle_size(c, h, table, k);
        if (at < end || at > top || size > top - at) {
            return HW_BROKEN_BOUNDS;
        }
        if (size == 0 || ((at - c->start) & (c->align - 1u)) != 0 || (size & (c->align - 1u)) != 0) {
            return HW_BROKEN_SIZE;
        }
        *used += 1u;
        *holes += at - end;
        end = at + size;
        k = load_handle_next(c, h, table, k);
    }
    *holes += top - end;
    return 0;
}

static inline int compact_check(const struct hw_compact *c, struct hw_heap *h)
{
    uint32_t used = 0;
    uint32_t holes = 0;
    int broken;
    if (c->header) {
        broken = check_headers(c, h, &used, &holes);
    } else {
        broken = check_chain(c, h, &used, &holes);
    }
    if (broken) {
        return broken;
    }
    if (holes != (c->lazy ? load4(h, c->holes_at) : 0)) {
        return HW_BROKEN_COUNT;
    }
    return c->in_arena ? check_handles(c, h, used) : 0;
}

/* Whether the counters say what a walk does. */
static inline int are_counters_right(const struct hw_policy *p, struct hw_heap *h)
{
    const struct hw_statistics told = hw_statistics(p, h);
    const uint32_t used = load4(h, p->counters_at + HW_COUNT_USED);
    const uint32_t blocks = load4(h, p->counters_at + HW_COUNT_MALLOCS) - load4(h, p->counters_at + HW_COUNT_FREES);
    return used == told.used && blocks == told.used_blocks && used <= load4(h, p->counters_at + HW_COUNT_MOST);
}

static inline int hw_check(const struct hw_policy *p, struct hw_heap *heap)
{
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind != HW_QUICK && !pool_is_bounded(p, pool, heap)) {
            return HW_BROKEN_BOUNDS;
        }
        if (pool->kind != HW_QUICK) {
            const int broken = HW_ASK(pool, check, heap);
            if (broken) {
                return broken;
            }
        }
    }
    /* Last, because a look at a cached block relies on its pool. */
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind == HW_QUICK) {
            const int broken = quick_check(p, &pool->quick, heap);
            if (broken) {
                return broken;
            }
        }
    }
    if (p->counters_at) {
        return are_counters_right(p, heap) ? 0 : HW_BROKEN_COUNTERS;
    }
    return 0;
}

#endif
