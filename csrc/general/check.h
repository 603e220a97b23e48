/* general/check.h: the walk over the blocks, what a request could have, the invariants. */
#ifndef HW_GENERAL_CHECK_H
#define HW_GENERAL_CHECK_H

#include "general/freelist.h"
#include "statistics.h"

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

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

static inline int general_block_at(const struct hw_general *g, struct hw_heap *h, uint32_t at, struct hw_block *block)
{
    return general_describe(g, h, at ? at : first_block(g, h), block);
}

/* Most blocks that lie below the top. */
static inline uint32_t general_blocks(const struct hw_general *g, struct hw_heap *h)
{
    return (load4(h, g->top_at) - first_block(g, h)) / g->min_block;
}

/* ---- what a request could have ----------------------------------------------------------------------------------- */

/* Payload of the largest block that fits into `bytes` bytes of free memory; 0 where none does. */
static inline uint32_t payload_within(const struct hw_general *g, uint32_t bytes)
{
    const uint32_t least = g->min_block < g->overhead ? g->overhead : g->min_block;
    uint32_t size = bytes >> g->unit_shift << g->unit_shift;
    if (g->powers && size != 0) {
        size = (uint32_t)1 << highest_bit(size);
        size = size < g->overhead ? 0 : size;
    }
    return size < least ? 0 : size - g->overhead;
}

/* Whether `node`, which some link leads to, lies where that of a block can. */
static inline int is_node_within(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    const uint32_t b = node - g->node;
    const uint32_t top = load4(h, g->top_at);
    return b >= first_block(g, h) && b < top && top - b >= g->min_block &&
           ((b + g->header) & (g->align - g->pad - 1u)) == 0;
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
    if (g->top == HW_TOP_BELOW) {
        return payload_within(g, load4(h, g->limit_at) - load4(h, g->facing_at));
    }
    const uint32_t top = load4(h, g->top_at);
    uint32_t from = top;
    if (g->top == HW_TOP_EXTEND && g->coalesce != HW_LAZY && g->fit != HW_EXACT) {
        /* an exact fit leaves out a last block that is larger; a rounded size may be below that block's */
        const uint32_t last = last_free(g, h, looks);
        if (last && payload_within(g, load4(h, g->limit_at) - last) + g->overhead >= top - last) {
            from = last;
        }
    }
    const uint32_t bytes = load4(h, g->limit_at) - from;
    return bytes < g->grow_least ? 0 : payload_within(g, bytes);
}

static inline void general_statistics(const struct hw_general *g, struct hw_heap *h, struct hw_statistics *stats)
{
    if (g->top == HW_TOP_BELOW) {
        stats->peak += load4(h, g->top_at) - load4(h, g->limit_at);
    }
    if (g->region) {
        stats->peak -= g->start + g->region - load4(h, g->high_at);
    }
}

/* Whether a search merges a free block with the free ones behind it before it examines the block. */
static inline int is_merged_first(const struct hw_general *g)
{
    if (g->coalesce == HW_LAZY) {
        return g->free_list == HW_IMPLICIT || g->fit != HW_NEXT; /* else it may begin among them */
    }
    if (g->coalesce == HW_DEFERRED) {
        return g->search_most == 0; /* else they may be inserted behind the last block that it examines */
    }
    return g->coalesce == HW_SWEEP;
}

/* Bytes from the start of a free block to the end of the free blocks behind it that a search merges with it; to the end
 * of all memory where these reach the top and go back to it. O(such blocks). */
static inline uint32_t merged_bytes(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    const uint32_t top = load4(h, g->top_at);
    if (!is_merged_first(g) || !merges(g, h, size)) {
        return size;
    }
    while (size < top - b) {
        const uint32_t word = load_word(g, h, b + size);
        if (!merges_with(g, h, word) || !is_size_within(g, b + size, word_size(g, word), top)) {
            return size;
        }
        size += word_size(g, word);
    }
    return g->top == HW_TOP_LAST && g->coalesce != HW_SWEEP && size == top - b ? load4(h, g->limit_at) - b : size;
}

/* The largest block, in bytes, of the list at `head` that a search examines, of its first `looks` blocks. */
static inline uint32_t largest_listed(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t looks)
{
    uint32_t largest = 0;
    uint32_t left = g->search_most ? smaller(looks, g->search_most) : looks;
    uint32_t node = load_link(&g->links, h, head);
    for (; left != 0 && is_node_within(g, h, node); left--) {
        const uint32_t size = word_size(g, load_word(g, h, node - g->node));
        if (!is_size_within(g, node - g->node, size, load4(h, g->top_at))) {
            return largest;
        }
        largest = larger(largest, merged_bytes(g, h, node - g->node, size));
        node = load_link(&g->links, h, node);
    }
    return largest;
}

/* The same in the highest bin that holds a block: any request has it that is no larger than the smallest of the bin,
 * and a larger one only what a search of the bin finds. O(bins) in addition. */
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
            return g->bin_round_up ? bin_start(g, bin) : larger(bin_start(g, bin), largest_listed(g, h, head, looks));
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
            block.size = merged_bytes(g, h, block.offset, block.size);
            largest = larger(largest, block.size);
        }
    }
    return largest;
}

static inline uint32_t general_largest(const struct hw_general *g, struct hw_heap *h, uint32_t most)
{
    const uint32_t looks = smaller(most, general_blocks(g, h));
    uint32_t largest = 0;
    if (g->fit == HW_EXACT) {
        return general_above(g, h, looks); /* a free block serves requests of its own size alone */
    }
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

/* Whether all free neighbours are one block. */
static inline int merges_at_once(const struct hw_general *g)
{
    return g->coalesce == HW_IMMEDIATE && g->coalesce_from <= g->min_block;
}

/* The largest request that a free block of `bytes` bytes at b serves, alone; one that ends at the top with all memory
 * behind it. Less where a search need not find it. */
static inline uint32_t general_within(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t bytes)
{
    if (g->fit == HW_EXACT || (g->search_most && !g->bins)) {
        return 0;
    }
    if (g->top == HW_TOP_LAST && merges_at_once(g) && b + bytes == load4(h, g->top_at)) {
        return payload_within(g, load4(h, g->limit_at) - b);
    }
    if (g->bin_round_up || (g->bins && g->search_most)) {
        return payload_within(g, bin_start(g, bin_of(g, bytes)));
    }
    return payload_within(g, bytes);
}

/* ---- invariants -------------------------------------------------------------------------------------------------- */

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
    if (g->top == HW_TOP_BELOW && is_mergeable(g, word) && b == load4(h, g->limit_at)) {
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
        if (g->heads_close && before == head) {
            if (load_link(&g->links, h, node + g->links.field.bytes) != 0) {
                return HW_BROKEN_LINK;
            }
        } else if (g->free_list == HW_DOUBLE && load_link(&g->links, h, node + g->links.field.bytes) != before) {
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
    /* Only FIFO lists are appended to; in any other order the tail is never read. */
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
    uint32_t b = first_block(g, h);
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
    uint32_t b = first_block(g, h);
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
    uint32_t b = first_block(g, h);
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

#endif
