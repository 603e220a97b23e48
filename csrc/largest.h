/* largest.h: the largest request that one free piece could serve, at a cost that the caller bounds.
 *
 * Each kind looks where its largest piece lies, and at no more than `looks` free blocks there: in bins, the highest
 * that holds one; in lists by size of partitions, the last; in a tree, the way to its end. What lies above the last
 * block is known without a look. So the answer is exact unless that one list is longer, and never too large.
 */
#ifndef HW_LARGEST_H
#define HW_LARGEST_H

#include "check.h"

static inline uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- general ----------------------------------------------------------------------------------------------------- */

/* The largest block among the first `looks` of the list at `head`, in bytes. */
static inline uint32_t largest_listed(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t looks)
{
    uint32_t largest = 0;
    uint32_t node = load_link(&g->links, h, head);
    for (; looks != 0 && is_node_within(g, h, node); looks--) {
        largest = larger(largest, word_size(g, load_word(g, h, node - g->node)));
        node = load_link(&g->links, h, node);
    }
    return largest;
}

/* The same in the highest bin that holds a block. O(bins) besides. */
static inline uint32_t largest_in_bins(const struct hw_general *g, struct hw_heap *h, uint32_t looks)
{
    for (uint32_t bin = g->bins; bin-- > 0;) {
        if (bin % 32u == 31u || bin + 1u == g->bins) {
            const uint32_t map = load4(h, g->bitmap_at + bin / 32u * 4u);
            if (map == 0) {
                bin = bin / 32u * 32u;
                continue;
            }
        }
        const uint32_t head = g->lists_at + bin * g->list_stride;
        if (load_link(&g->links, h, head)) {
            return largest_listed(g, h, head, looks);
        }
    }
    return 0;
}

/* The same in a tree, whose largest block is the root or the last. */
static inline uint32_t largest_in_tree(const struct hw_general *g, struct hw_heap *h, uint32_t looks)
{
    uint32_t largest = 0;
    uint32_t node = load_link(&g->links, h, g->lists_at);
    for (; looks != 0 && is_node_within(g, h, node); looks--) {
        largest = larger(largest, tree_size(g, h, node));
        node = g->fit == HW_FIRST ? 0 : load_link(&g->links, h, tree_after(g, node));
    }
    return largest;
}

/* The same where all blocks are passed. */
static inline uint32_t largest_passed(const struct hw_general *g, struct hw_heap *h, uint32_t looks)
{
    uint32_t largest = 0;
    struct hw_block block = {0, 0, 0, 0, 0};
    for (; looks != 0 && general_block_at(g, h, block.offset + block.size, &block); looks--) {
        if (block.state == HW_BLOCK_FREE) {
            largest = larger(largest, block.size);
        }
    }
    return largest;
}

static inline uint32_t general_largest(const struct hw_general *g, struct hw_heap *h, uint32_t most)
{
    const uint32_t looks = smaller(most, general_blocks(g, h));
    uint32_t largest = 0;
    if (g->free_list == HW_IMPLICIT) {
        largest = largest_passed(g, h, looks);
    } else if (g->free_list == HW_TREE) {
        largest = largest_in_tree(g, h, looks);
    } else if (g->bins) {
        largest = largest_in_bins(g, h, looks);
    } else {
        largest = largest_listed(g, h, g->lists_at, looks);
    }
    if (g->unsorted) {
        largest = larger(largest, largest_listed(g, h, g->unsorted_at, looks));
    }
    if (g->victim_up_to) {
        largest = larger(largest, load4(h, g->victim_at + 4u) - load4(h, g->victim_at));
    }
    if (g->top == HW_TOP_LIST) {
        return payload_within(g, largest);
    }
    return larger(payload_within(g, largest), general_above(g, h, looks));
}

/* ---- the other kinds --------------------------------------------------------------------------------------------- */

/* Whether one of the first `looks` blocks in the chain of a class is free. */
static inline int is_any_unchained(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    uint32_t left = smaller(looks, fixed_blocks(f, h, class_));
    uint32_t at = load_link(&f->links, h, fixed_head(f, class_));
    for (; left != 0 && (at & (f->align - 1u)) == 0 && fixed_is_payload(f, h, at); left--) {
        if ((load_class(f, h, at) & HW_FIXED_TAKEN) == 0) {
            return 1;
        }
        at = load_link(&f->links, h, fixed_chain_at(f, at));
    }
    return 0;
}

/* Whether one of the first `looks` flags of a class is clear. */
static inline int is_any_unflagged(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    const uint32_t carved = load4(h, f->carved_at + 4u * class_);
    for (uint32_t i = 0; i < carved && i < looks; i++) {
        if (load1(h, f->flags_at[class_] + i) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a class has a free block. Where free blocks are not listed, the first `looks` of the class are asked. */
static inline int fixed_has_free(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t looks)
{
    if (fixed_has_more(f, h, class_)) {
        return 1;
    }
    if (f->first_fit) {
        return f->grow ? is_any_unchained(f, h, class_, looks) : is_any_unflagged(f, h, class_, looks);
    }
    return load_link(&f->links, h, fixed_head(f, class_)) != 0;
}

static inline uint32_t fixed_largest(const struct hw_fixed *f, struct hw_heap *h, uint32_t looks)
{
    for (uint32_t class_ = f->count; class_-- > 0;) {
        if (fixed_has_free(f, h, class_, looks)) {
            return f->sizes[class_];
        }
    }
    return 0;
}

static inline uint32_t buddy_largest(const struct hw_buddy *y, struct hw_heap *h, uint32_t looks)
{
    (void)looks;
    for (uint32_t order = y->orders; order-- > 0;) {
        if (load_link(&y->links, h, order_head(y, order))) {
            return larger(order_size(y, order) - y->header - y->trailer, buddy_above(y, h));
        }
    }
    return buddy_above(y, h);
}

static inline uint32_t partition_largest(const struct hw_partition *g, struct hw_heap *h, uint32_t looks)
{
    const uint32_t table = partition_table(g, h);
    const uint32_t top = load4(h, g->top_at);
    const uint32_t lists = g->lists == 32u ? UINT32_MAX : ((uint32_t)1 << g->lists) - 1u;
    const uint32_t filled = g->lists > 1u ? load4(h, g->bitmap_at) & lists : 1u;
    const uint32_t list = filled ? highest_bit(filled) : 0;
    uint32_t largest = 0;
    uint32_t left = smaller(looks, top);
    uint32_t i = filled ? load4(h, g->head_at + 4u * list) : 0;
    for (; left != 0 && i != 0 && i <= top; left--) {
        largest = larger(largest, load_number(g, h, count_at(g, table, i)) >> 1);
        i = load_number(g, h, next_at(g, table, i));
    }
    largest = largest ? largest * g->partition - g->trailer : 0;
    return larger(largest, partition_above(g, h));
}

static inline uint32_t compact_largest(const struct hw_compact *c, struct hw_heap *h, uint32_t looks)
{
    (void)looks;
    return compact_above(c, h);
}

static inline size_t hw_largest_free(const struct hw_policy *p, struct hw_heap *heap, uint32_t looks)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < p->pool_count; i++) {
        const struct hw_pool *pool = &p->pools[i];
        if (pool->kind != HW_QUICK && pool_is_bounded(p, pool, heap)) {
            const uint32_t most = HW_ASK(pool, largest, heap, looks);
            largest = larger(largest, most);
        }
        if (pool->kind == HW_COMPACT && largest > pool->max_size) {
            largest = pool->max_size;
        }
    }
    return (size_t)largest;
}

#endif
