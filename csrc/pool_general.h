/* pool_general.h: blocks of any size with headers, split and merged as the policy says.
 *
 *   start                                                    top        high-water mark      limit
 *   |                                                        |          |                    |
 *   +------+-------------+------+-------------+------+-------+----------+--------------------+
 *   | used | free        | used | victim      | free | used  | was used | never used         |
 *   +------+-------------+------+-------------+------+-------+----------+--------------------+
 *
 * Blocks lie back to back from `start` to `top`. Above the top memory is taken last, so the highest top ever is the
 * smallest arena that serves the same requests. Or the top only ever rises, with or without the free block that ends
 * there once memory is short; or all memory is one free block to begin with, the top is the end of the memory, and the
 * high-water mark tells how far used blocks have reached. The victim is
 * a region without header or tag from which small requests are carved one after another: the remainder of the block
 * that was split last for a small request. Next to the top, and next to the victim, freeing and carving only move a
 * boundary.
 *
 * Sources: Knuth, TAOCP 1, 2.5; Wilson et al. 1995, sections 3 and 4; Lea, "A memory allocator" (the victim is a
 * "designated victim" that stays outside the bins and has no header).
 */
#ifndef HW_POOL_GENERAL_H
#define HW_POOL_GENERAL_H

#include "freelist.h"

/* Makes all memory up to `limit` one free block. */
static inline void fill_up_to(const struct hw_general *g, struct hw_heap *h, uint32_t limit)
{
    const uint32_t end_word = g->end_word ? g->header : 0;
    if (limit - g->start < end_word + g->min_block) {
        return;
    }
    const uint32_t size = (limit - g->start - end_word) >> g->unit_shift << g->unit_shift;
    store4(h, g->top_at, g->start + size);
    note_block_made(h, g->overhead);
    if (g->end_word) {
        /* a word behind it marks the end */
        store_word(g, h, g->start + size, size_word(g, 0, HW_USED));
        clear_tag(g, h, g->start);
        clear_tag(g, h, g->start + size);
    }
    write_free(g, h, g->start, size, HW_PREV_USED);
    if (has_flag_before(g) && !merges(g, h, size)) {
        mark_before_used(g, h, g->start + size);
    }
    freelist_insert(g, h, g->start, size);
}

static inline void general_init(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t limit = g->region ? g->start + g->region : load4(h, g->limit_at);
    store4(h, g->top_at, g->start);
    store4(h, g->high_at, g->start);
    if (g->region) {
        store4(h, g->limit_at, limit);
    }
    freelist_clear(g, h);
    if (g->top == HW_TOP_LIST) {
        fill_up_to(g, h, limit);
    }
}

/* ---- the top --------------------------------------------------------------------------------------------------- */

/* Cuts a used block from the top; the caller has seen that there is room. */
HW_HOT uint32_t cut_from_top(const struct hw_general *g, struct hw_heap *h, uint32_t top, uint32_t size)
{
    store4(h, g->top_at, top + size);
    write_used(g, h, top, size, HW_PREV_USED);
    clear_tag(g, h, top);
    note_block_made(h, g->overhead);
    return top;
}

/* A block from memory that was in use before; 0 where there is none. */
HW_HOT uint32_t reuse_top(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->top != HW_TOP_LAST) {
        return 0;
    }
    const uint32_t top = load4(h, g->top_at);
    if (load4(h, g->high_at) - top < size) {
        return 0;
    }
    return cut_from_top(g, h, top, size);
}

static inline void raise_high(const struct hw_general *g, struct hw_heap *h, uint32_t end)
{
    const uint32_t high = load4(h, g->high_at);
    if (end > high) {
        store4(h, g->high_at, end);
        note_covered(h, end - high);
    }
}

/* Where all memory is in blocks, the high-water mark tells how far used blocks have reached. */
HW_HOT void raise_reach(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->top == HW_TOP_LIST) {
        raise_high(g, h, g->split_tail ? g->start + (load4(h, g->top_at) - b) : b + size);
    }
}

/* Where the top begins that a freed block joins; 0: it joins none. */
static inline uint32_t open_top(const struct hw_general *g, struct hw_heap *h)
{
    if (g->end_word) {
        return 0;
    }
    return load4(h, g->top_at);
}

/* Whether a walk over all blocks starts where it was told to. */
static inline int has_walk_rover(const struct hw_general *g)
{
    return g->free_list == HW_IMPLICIT && (g->fit == HW_NEXT || g->search_from == HW_FROM_LOWEST_FREE);
}

/* Gives the end of the blocks back to the top. */
HW_HOT void lower_top(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    note_top(g, h, b);
    store4(h, g->top_at, b);
    note_block_gone(h, g->overhead);
    if (g->victim_up_to && load4(h, g->victim_at + 4u) >= b) {
        /* a victim that lies above the new top has become part of it */
        store4(h, g->victim_at, 0);
        store4(h, g->victim_at + 4u, 0);
    }
    if (has_walk_rover(g) && load4(h, g->rover_at) > b) {
        store4(h, g->rover_at, b);
    }
}

/* ---- lazy merging: a search merges what it passes ------------------------------------------------------------------
 */

/* A walk that starts in the middle must start at a block. */
static inline void keep_rover_on_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end)
{
    if (has_walk_rover(g)) {
        const uint32_t rover = load4(h, g->rover_at);
        if (rover > b && rover < end) {
            store4(h, g->rover_at, b);
        }
    }
}

/* Merges the free block b with the free blocks behind it and returns its word. `before` points to b in its list, which
 * is in order of addresses, so what follows b there is what is merged first. */
static inline uint32_t merge_following(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t b,
                                       uint32_t word, uint32_t want)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t had = word_size(g, word);
    uint32_t size = had;
    if (!merges(g, h, size)) {
        return word;
    }
    while (b + size < top) {
        if (g->merge_enough && size >= want) {
            break;
        }
        const uint32_t next_word = load_word(g, h, b + size);
        if (!merges_with(g, h, next_word)) {
            break;
        }
        if (is_wary(g) && !may_take(g, h, b + g->node, b + size, next_word)) {
            break;
        }
        if (g->free_list != HW_IMPLICIT) {
            list_unlink(g, h, size, b + g->node, b + size + g->node);
        }
        note_block_gone(h, g->overhead);
        size += word_size(g, next_word);
    }
    const int joins_top = g->top == HW_TOP_LAST && b + size == top;
    if (size == had && !joins_top) {
        return word;
    }
    if (joins_top && is_wary(g) && !may_take(g, h, before, b, word)) {
        return word;
    }
    if (joins_top) {
        if (g->free_list != HW_IMPLICIT) {
            list_unlink(g, h, size, before, b + g->node);
        }
        lower_top(g, h, b);
        return 0; /* no block any more */
    }
    keep_rover_on_block(g, h, b, b + size);
    store_word(g, h, b, size_word(g, size, 0));
    return size_word(g, size, 0);
}

/* ---- searching ------------------------------------------------------------------------------------------------- */

/* Whether a free block of `have` bytes ends a search that takes the first one that will do. */
static inline int will_do(const struct hw_general *g, uint32_t have, uint32_t size)
{
    if (g->fit == HW_EXACT) {
        return have == size;
    }
    return have >= size;
}

/* Whether a fitting block of `have` bytes is preferred to the best one so far; `best` is 0 where there is none. */
static inline int is_better(const struct hw_general *g, uint32_t have, uint32_t best)
{
    if (g->fit == HW_WORST) {
        return have > best;
    }
    return best == 0 || have < best;
}

/* Searches one list from the word `before` on for the first block that will do. At the node `end` it gives up. */
static inline struct hw_found list_first(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t end,
                                         uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t left = g->search_most;
    uint32_t most = most_nodes(g, h);
    skip_nodes(g, h, &before, end, size, &left);
    uint32_t node = load_link(&g->links, h, before);
    while (node) {
        skip_quiet_nodes(g, h, &before, &node, end, size, 0, NULL);
        if (g->fit == HW_NEXT && node == end) {
            return found;
        }
        if ((g->search_most && left-- == 0) || !may_step(g, h, &most)) {
            return found;
        }
        uint32_t word = load_word(g, h, node - g->node);
        if (g->coalesce == HW_LAZY) {
            word = merge_following(g, h, before, node - g->node, word, size);
            if (word == 0) {
                return found;
            }
        }
        if (will_do(g, word_size(g, word), size)) {
            found.b = node - g->node;
            found.word = word;
            found.before = before;
            return found;
        }
        before = node;
        node = load_link(&g->links, h, node);
    }
    return found;
}

/* How many blocks a best fit looks at before it settles: a share of all free blocks (Mamagkakis et al. 2006, 4). */
static inline uint32_t search_budget(const struct hw_general *g, struct hw_heap *h)
{
    if (g->search_percent < 100u) {
        return load4(h, g->count_at) / 100u * g->search_percent +
               load4(h, g->count_at) % 100u * g->search_percent / 100u;
    }
    return UINT32_MAX;
}

/* Searches a list for the best block. O(list). */
static inline struct hw_found list_best(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t best = 0;
    uint32_t budget = search_budget(g, h);
    uint32_t left = g->search_most;
    uint32_t most = most_nodes(g, h);
    if (skip_to_best_node(g, h, before, size, budget, &found)) {
        return found;
    }
    uint32_t node = load_link(&g->links, h, before);
    while (node) {
        skip_quiet_nodes(g, h, &before, &node, 0, size, best, &budget);
        if ((g->search_most && left-- == 0) || !may_step(g, h, &most)) {
            return found;
        }
        uint32_t word = load_word(g, h, node - g->node);
        if (g->coalesce == HW_LAZY) {
            word = merge_following(g, h, before, node - g->node, word, size);
            if (word == 0) {
                return found;
            }
        }
        const uint32_t have = word_size(g, word);
        if (have >= size && is_better(g, have, best)) {
            best = have;
            found.b = node - g->node;
            found.word = word;
            found.before = before;
            if (g->fit == HW_BEST && have == size) {
                return found;
            }
        }
        if (g->search_percent < 100u) {
            if (budget <= 1u && best) {
                return found;
            }
            budget -= budget != 0;
        }
        before = node;
        node = load_link(&g->links, h, node);
    }
    return found;
}

/* Tries the blocks of a list in turn: what will not do goes to its end, so the next search begins behind it. */
static inline struct hw_found list_in_turn(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size)
{
    struct hw_found found = found_none();
    const uint32_t last = load_link(&g->links, h, head + g->links.field.bytes);
    uint32_t left = g->search_most;
    uint32_t tried = 0;
    uint32_t node = load_link(&g->links, h, head);
    while (node && tried != last) {
        if (g->search_most && left-- == 0) {
            return found;
        }
        const uint32_t word = load_word(g, h, node - g->node);
        if (will_do(g, word_size(g, word), size)) {
            found.b = node - g->node;
            found.word = word;
            found.before = head;
            return found;
        }
        if (load_link(&g->links, h, node) == 0) {
            return found; /* the only one: it is at the end */
        }
        if (is_wary(g) && !may_take(g, h, head, node - g->node, word)) {
            return found;
        }
        tried = node;
        list_unlink(g, h, word_size(g, word), head, node);
        list_append(g, h, head, node);
        node = load_link(&g->links, h, head);
    }
    return found;
}

static inline struct hw_found list_search(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size)
{
    if (g->search_from == HW_FROM_TRIED) {
        return list_in_turn(g, h, head, size);
    }
    if (g->fit == HW_BEST && g->bins && g->large_order == HW_SIZE) {
        return list_first(g, h, head, 0, size);
    }
    if (g->fit == HW_BEST || g->fit == HW_WORST) {
        return list_best(g, h, head, size);
    }
    return list_first(g, h, head, 0, size);
}

/* Next fit: from where the last search ended to the end of the list, then from its head. */
static inline struct hw_found list_next(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t rover = load4(h, g->rover_at);
    struct hw_found found = list_first(g, h, rover, 0, size);
    if (found.b == 0 && rover != g->lists_at) {
        found = list_first(g, h, g->lists_at, load_link(&g->links, h, rover), size);
    }
    if (found.b) {
        store4(h, g->rover_at, found.before);
    }
    return found;
}

/* Walks the blocks from b up to `end`, used ones too, for a free one that will do. O(blocks). */
static inline struct hw_found walk_first(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t end,
                                         uint32_t size)
{
    struct hw_found found = found_none();
    const uint32_t top = g->links.hardened ? load4(h, g->top_at) : end;
    skip_blocks(g, h, &b, end, size);
    while (b < end) {
        skip_quiet_blocks(g, h, &b, end, size, 0);
        uint32_t word = load_word(g, h, b);
        if ((word & HW_USED) == 0) {
            if (g->coalesce == HW_LAZY) {
                word = merge_following(g, h, 0, b, word, size);
                if (word == 0) {
                    return found;
                }
            }
            if (will_do(g, word_size(g, word), size)) {
                found.b = b;
                found.word = word;
                return found;
            }
        }
        b += step_over(g, h, b, word, top);
    }
    return found;
}

/* Walks all blocks for the best free one. O(blocks). */
static inline struct hw_found walk_best(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t best = 0;
    const uint32_t top = load4(h, g->top_at);
    if (skip_to_best_block(g, h, size, &found)) {
        return found;
    }
    uint32_t b = g->start;
    while (b < top) {
        skip_quiet_blocks(g, h, &b, top, size, best);
        uint32_t word = load_word(g, h, b);
        if ((word & HW_USED) == 0) {
            if (g->coalesce == HW_LAZY) {
                word = merge_following(g, h, 0, b, word, size);
                if (word == 0) {
                    return found;
                }
            }
            const uint32_t have = word_size(g, word);
            if (have >= size && is_better(g, have, best)) {
                best = have;
                found.b = b;
                found.word = word;
                if (g->fit == HW_BEST && have == size) {
                    return found;
                }
            }
        }
        b += step_over(g, h, b, word, top);
    }
    return found;
}

/* The first free block, looked for from where nothing free lies below; or the top. Amortised O(1) between frees. */
static inline uint32_t lowest_free(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    const uint32_t from = load4(h, g->rover_at);
    uint32_t b = from;
    skip_used(g, h, &b, top);
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        if ((word & HW_USED) == 0) {
            break;
        }
        b += step_over(g, h, b, word, top);
    }
    if (b != from) {
        store4(h, g->rover_at, b);
    }
    return b;
}

static inline struct hw_found walk_search(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->fit == HW_BEST || g->fit == HW_WORST) {
        return walk_best(g, h, size);
    }
    if (g->fit == HW_NEXT) {
        const uint32_t rover = load4(h, g->rover_at);
        struct hw_found found = walk_first(g, h, rover, load4(h, g->top_at), size);
        if (found.b == 0 && rover != g->start) {
            found = walk_first(g, h, g->start, rover, size);
        }
        if (found.b) {
            store4(h, g->rover_at, found.b);
        }
        return found;
    }
    if (g->search_from == HW_FROM_LOWEST_FREE) {
        return walk_first(g, h, lowest_free(g, h), load4(h, g->top_at), size);
    }
    return walk_first(g, h, g->start, load4(h, g->top_at), size);
}

/* ---- searching bins -------------------------------------------------------------------------------------------- */

/* The first block of the list at `head`, whose word has to be read. */
HW_HOT struct hw_found take_head(const struct hw_general *g, struct hw_heap *h, uint32_t head)
{
    struct hw_found found;
    found.before = head;
    found.b = load_link(&g->links, h, head) - g->node;
    found.word = load_word(g, h, found.b);
    return found;
}

/* The word of a free block in the bin of this size alone. */
HW_HOT uint32_t word_in_bin(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->boundary_tags && g->coalesce_from <= g->min_block && !g->links.hardened) {
        /* neighbours merge at once, so its flags are known, too */
        return size_word(g, size, has_flag_before(g) ? HW_PREV_USED : 0);
    }
    return load_word(g, h, b);
}

/* A block of exactly this size. */
HW_HOT struct hw_found bins_exact(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    if (!is_linear(g, size)) {
        return found;
    }
    const uint32_t head = list_head(g, size);
    const uint32_t node = load_link(&g->links, h, head);
    if (node) {
        found.b = node - g->node;
        found.before = head;
        found.word = word_in_bin(g, h, found.b, size);
    }
    return found;
}

/* The block that a request gets from the first bin from `bin` on that holds any; all are large enough. */
HW_HOT struct hw_found search_above(const struct hw_general *g, struct hw_heap *h, uint32_t bin, uint32_t size)
{
    while (bin < g->bins) {
        const uint32_t ahead = load4(h, mark_at(g, bin)) & UINT32_MAX << bin % 32u;
        if (ahead == 0) {
            bin = next_marked_word(g, h, bin / 32u + 1u);
            continue;
        }
        const uint32_t found = bin / 32u * 32u + lowest_bit(ahead);
        const uint32_t head = g->lists_at + found * g->list_stride;
        if (load_link(&g->links, h, head)) {
            if (g->fit == HW_BEST && found >= g->bin_linear_bins) {
                return list_search(g, h, head, size);
            }
            return take_head(g, h, head);
        }
        if (g->bin_unmark) {
            return found_none();
        }
        unmark_bin(g, h, found); /* it was emptied and left marked, which saved a store then */
        bin = found + 1u;
    }
    return found_none();
}

/* The block that the bins give for a request. */
HW_HOT struct hw_found bins_search(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    uint32_t bin = bin_of(g, size);
    if (g->bin_round_up) {
        bin = bin_above(g, size);
    } else if (!is_linear(g, size)) {
        struct hw_found found = list_search(g, h, g->lists_at + bin * g->list_stride, size);
        if (found.b || g->fit == HW_EXACT) {
            return found;
        }
        bin++;
    } else if (g->fit == HW_EXACT) {
        return g->victim_up_to ? bins_exact(g, h, size) : found_none();
    }
    return search_above(g, h, bin, size);
}

/* ---- handing out ----------------------------------------------------------------------------------------------- */

/* With a queue, the remainder of a small request is kept in mind. */
static inline void remember_remainder(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    if (g->unsorted && is_linear(g, size)) {
        store4(h, g->remainder_at, b);
    }
}

/* Whether a remainder leaves the place that the block which was split had in its list. */
static inline int is_refiled(const struct hw_general *g)
{
    return g->bins || g->order == HW_SIZE || g->refile || g->free_list == HW_TREE;
}

/*  | free: size + rest           |
 *  | used: size  | free: rest    |   */
HW_HOT uint32_t split_from_head(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size,
                                uint32_t rest)
{
    const uint32_t remainder = found.b + size;
    if (g->free_list != HW_IMPLICIT) {
        if (is_refiled(g)) {
            freelist_unlink(g, h, found.before, found.b, size + rest);
        } else {
            list_replace(g, h, found.before, found.b, remainder);
        }
    }
    write_used(g, h, found.b, size, found.word & HW_PREV_USED);
    clear_tag(g, h, remainder);
    write_free(g, h, remainder, rest, HW_PREV_USED);
    remember_remainder(g, h, remainder, size);
    if (g->boundary_tags && merges(g, h, size + rest) && !merges(g, h, rest)) {
        mark_before_used(g, h, remainder + rest);
    }
    if (is_refiled(g)) {
        freelist_insert_rest(g, h, found.before, remainder, rest);
    }
    note_block_made(h, g->overhead);
    return found.b;
}

/*  | free: rest + size           |
 *  | free: rest  | used: size    |   */
HW_HOT uint32_t split_from_tail(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size,
                                uint32_t rest)
{
    const uint32_t used = found.b + rest;
    const int refile = g->free_list != HW_IMPLICIT && is_refiled(g);
    if (refile) {
        freelist_unlink(g, h, found.before, found.b, rest + size);
    }
    clear_tag(g, h, used);
    write_free(g, h, found.b, rest, found.word & HW_PREV_USED);
    remember_remainder(g, h, found.b, size);
    write_used(g, h, used, size, merges(g, h, rest) ? 0 : HW_PREV_USED);
    if (g->boundary_tags && merges(g, h, rest + size)) {
        mark_before_used(g, h, used + size);
    }
    if (refile) {
        freelist_insert_rest(g, h, found.before, found.b, rest);
    }
    note_block_made(h, g->overhead);
    return used;
}

/* Hands out a free block as it is. */
HW_HOT uint32_t take_whole(const struct hw_general *g, struct hw_heap *h, struct hw_found found)
{
    const uint32_t size = word_size(g, found.word);
    freelist_unlink(g, h, found.before, found.b, size);
    store_word(g, h, found.b, found.word | HW_USED);
    if (g->boundary_tags && merges(g, h, size)) {
        mark_before_used(g, h, found.b + size);
    }
    return found.b;
}

/* Hands out what a request needs of a free block. */
HW_HOT uint32_t take(const struct hw_general *g, struct hw_heap *h, struct hw_found found, uint32_t size)
{
    if (is_wary(g) && !may_take(g, h, found.before, found.b, found.word)) {
        return 0;
    }
    note_rest(g, h, word_size(g, found.word) - size);
    if (g->split) {
        const uint32_t rest = word_size(g, found.word) - size;
        if (rest >= g->split_least) {
            if (g->split_tail) {
                raise_reach(g, h, found.b + rest, size);
                return split_from_tail(g, h, found, size, rest);
            }
            raise_reach(g, h, found.b, size);
            return split_from_head(g, h, found, size, rest);
        }
    }
    raise_reach(g, h, found.b, word_size(g, found.word));
    return take_whole(g, h, found);
}

/* ---- the victim ------------------------------------------------------------------------------------------------ */

/* Makes the start of the victim a used block; 0 where it is too small. */
HW_HOT int cut_from_victim(const struct hw_general *g, struct hw_heap *h, uint32_t size, uint32_t *b)
{
    *b = load4(h, g->victim_at);
    const uint32_t have = load4(h, g->victim_at + 4u) - *b;
    if (have < size) {
        return 0;
    }
    if (have - size < g->min_block) {
        size = have;
    }
    store4(h, g->victim_at, *b + size);
    store_word(g, h, *b, size_word(g, size, HW_USED | HW_PREV_USED));
    note_block_made(h, g->overhead);
    return 1;
}

/* Hands out the head of a free block and makes its remainder the victim; what was the victim becomes a free block. */
static inline uint32_t take_as_victim(const struct hw_general *g, struct hw_heap *h, struct hw_found found,
                                      uint32_t size)
{
    if (is_wary(g) && !may_take(g, h, found.before, found.b, found.word)) {
        return 0;
    }
    const uint32_t whole = word_size(g, found.word);
    note_rest(g, h, whole - size);
    if (whole - size < g->split_least) {
        return take_whole(g, h, found);
    }
    list_unlink(g, h, whole, found.before, found.b + g->node);
    const uint32_t old = load4(h, g->victim_at);
    const uint32_t old_size = load4(h, g->victim_at + 4u) - old;
    store4(h, g->victim_at, found.b + size);
    store4(h, g->victim_at + 4u, found.b + whole);
    store_word(g, h, found.b, size_word(g, size, HW_USED | (found.word & HW_PREV_USED)));
    if (merges(g, h, whole)) {
        mark_before_used(g, h, found.b + whole);
    }
    if (old_size) {
        write_free(g, h, old, old_size, HW_PREV_USED);
        if (merges(g, h, old_size)) {
            mark_before_free(g, h, old + old_size);
        }
        freelist_insert(g, h, old, old_size);
        note_block_made(h, g->overhead);
    }
    return found.b;
}

/* A block from one of the few bins behind an empty exact one: two words of the bitmap show them all. */
static inline struct hw_found bins_close(const struct hw_general *g, struct hw_heap *h, uint32_t bin)
{
    const uint32_t map_at = g->bitmap_at + bin / 32u * 4u;
    const uint32_t here = load4(h, map_at) >> bin % 32u;
    const uint32_t next = load4(h, map_at + 4u) << 1u << (31u - bin % 32u);
    uint32_t close = (here | next) & (((uint32_t)2 << g->close_bins) - 2u);
    while (close) {
        const uint32_t found = bin + lowest_bit(close);
        const uint32_t head = g->lists_at + found * g->list_stride;
        if (load_link(&g->links, h, head)) {
            return take_head(g, h, head);
        }
        unmark_bin(g, h, found);
        close &= close - 1u;
    }
    return found_none();
}

/* Hands out the first block of the list at `head`, whose blocks all have this size: its payload; 0: it is empty. */
HW_HOT uint32_t take_first(const struct hw_general *g, struct hw_heap *h, uint32_t head, uint32_t size)
{
    const uint32_t node = load_link(&g->links, h, head);
    if (node == 0) {
        return 0;
    }
    const uint32_t b = node - g->node;
    const uint32_t word = word_in_bin(g, h, b, size);
    if (is_wary(g) && (word_size(g, word) != size || !may_take(g, h, head, b, word))) {
        return 0;
    }
    list_unlink(g, h, size, head, node);
    store_word(g, h, b, word | HW_USED);
    if (merges(g, h, size)) {
        mark_before_used(g, h, b + size);
    }
    return hand_out(g, h, b);
}

/* The payload of a block from the bin of this size, or one tried next; 0 where these are empty. */
HW_HOT uint32_t take_near(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t bin = bin_of(g, size);
    const uint32_t head = g->lists_at + bin * g->list_stride;
    const uint32_t exact = take_first(g, h, head, size);
    if (g->close_bins == 0 || exact) {
        return exact;
    }
    const uint32_t larger = size + ((uint32_t)1 << g->unit_shift);
    if (g->close_bins == 1u && g->split_least > (uint32_t)1 << g->unit_shift && is_linear(g, larger)) {
        return take_first(g, h, head + g->list_stride, larger); /* a unit is too little to split */
    }
    struct hw_found close = bins_close(g, h, bin);
    const uint32_t b = close.b ? take(g, h, close, size) : 0;
    return b ? hand_out(g, h, b) : 0;
}

/* The payload of a small block, from the bins close to its size or the victim; 0 where these have none. */
HW_HOT uint32_t find_small(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (is_linear(g, size)) {
        const uint32_t near = take_near(g, h, size);
        if (near) {
            return near;
        }
    }
    uint32_t b = 0;
    return cut_from_victim(g, h, size, &b) ? hand_out(g, h, b) : 0;
}

/* Whether a block of this size may be cut from the victim before larger blocks are looked for. */
static inline int is_small(const struct hw_general *g, uint32_t size)
{
    return size <= block_size_for(g, g->victim_up_to);
}

/* A block for a request that finds nothing at hand: a small one splits the best fit, whose remainder becomes the
 * victim; a large one comes from the victim only where no bin has a block. */
static inline uint32_t search_beside_victim(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = bins_search(g, h, size);
    if (found.b) {
        return is_small(g, size) ? take_as_victim(g, h, found, size) : take(g, h, found, size);
    }
    uint32_t b = 0;
    if (!is_small(g, size) && cut_from_victim(g, h, size, &b)) {
        return b;
    }
    return reuse_top(g, h, size);
}

/* ---- merging everything ---------------------------------------------------------------------------------------- */

/* Merges all neighbours and files the free blocks anew; 0 where nothing was freed since the last time. O(blocks). */
static inline int merge_all(const struct hw_general *g, struct hw_heap *h)
{
    if (load4(h, g->pending_at) == 0) {
        return 0;
    }
    store4(h, g->pending_at, 0);
    if (skip_merging(g, h)) {
        return 1;
    }
    freelist_clear(g, h);
    const uint32_t top = load4(h, g->top_at);
    uint32_t b = g->start;
    while (b < top) {
        const uint32_t word = load_word(g, h, b);
        uint32_t size = word_size(g, word);
        if ((word & HW_USED) == 0) {
            uint32_t next = b + size;
            while (merges(g, h, size) && next < top) {
                const uint32_t next_word = load_word(g, h, next);
                if (!merges_with(g, h, next_word)) {
                    break;
                }
                note_block_gone(h, g->overhead);
                next += word_size(g, next_word);
            }
            size = next - b;
            if (g->top == HW_TOP_LAST && next == top && merges(g, h, size)) {
                lower_top(g, h, b);
                return 1;
            }
            store_word(g, h, b, size_word(g, size, 0));
            freelist_insert(g, h, b, size);
        }
        b += size;
    }
    return 1;
}

/* Merges the free blocks that a search is about to look at with those behind them. O(list), or what a search looks at.
 */
static inline void sweep(const struct hw_general *g, struct hw_heap *h)
{
    const uint32_t top = load4(h, g->top_at);
    uint32_t left = g->search_most;
    uint32_t node = load_link(&g->links, h, g->lists_at);
    while (node) {
        if (g->search_most && left-- == 0) {
            return;
        }
        const uint32_t b = node - g->node;
        const uint32_t had = word_size(g, load_word(g, h, b));
        uint32_t next = b + had;
        while (merges(g, h, had) && next < top) {
            const uint32_t next_word = load_word(g, h, next);
            if (!merges_with(g, h, next_word)) {
                break;
            }
            if (is_wary(g) && !may_merge(g, h, next, word_size(g, next_word))) {
                break;
            }
            freelist_remove(g, h, next, word_size(g, next_word));
            note_block_gone(h, g->overhead);
            next += word_size(g, next_word);
        }
        if (next != b + had) {
            store_word(g, h, b, size_word(g, next - b, 0));
        }
        node = load_link(&g->links, h, node);
    }
}

/* ---- allocating ------------------------------------------------------------------------------------------------ */

/* Passes the queue, oldest first, for a block of just this size, and files the others in bins. A small request also
 * takes the last remainder where nothing else waits, so that small objects which are born together lie side by side. */
static inline struct hw_found search_unsorted(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t node = load_link(&g->links, h, g->unsorted_at);
    while (node) {
        const uint32_t b = node - g->node;
        const uint32_t word = load_word(g, h, b);
        const uint32_t have = word_size(g, word);
        if (is_wary(g) && !may_take(g, h, g->unsorted_at, b, word)) {
            return found;
        }
        const uint32_t next = load_link(&g->links, h, node);
        const int goes_on = g->fit != HW_EXACT && is_linear(g, size) && next == 0 && have > size + g->min_block &&
                            b == load4(h, g->remainder_at);
        if (have == size || goes_on) {
            found.b = b;
            found.word = word;
            found.before = g->unsorted_at;
            return found;
        }
        list_unlink(g, h, have, g->unsorted_at, node);
        freelist_file(g, h, b, have);
        node = next;
    }
    return found;
}

HW_HOT uint32_t search_and_take(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found;
    if (g->coalesce == HW_SWEEP) {
        sweep(g, h);
    }
    if (g->bins) {
        if (g->bin_linear_bins && !g->bin_round_up) {
            found = bins_exact(g, h, size);
            if (is_wary(g) && found.b &&
                (word_size(g, found.word) != size || !may_take(g, h, found.before, found.b, found.word))) {
                return 0;
            }
            if (found.b) {
                raise_reach(g, h, found.b, size);
                return take_whole(g, h, found);
            }
        }
        if (g->unsorted) {
            found = search_unsorted(g, h, size);
            if (found.b) {
                return take(g, h, found, size);
            }
        }
        if (g->bin_round_up) {
            found = search_above(g, h, bin_above(g, size), size);
            return found.before ? take(g, h, found, size) : reuse_top(g, h, size);
        }
        found = bins_search(g, h, size);
    } else if (g->free_list == HW_IMPLICIT) {
        found = walk_search(g, h, size);
    } else if (g->free_list == HW_TREE) {
        found = tree_search(g, h, size);
    } else if (g->fit == HW_NEXT) {
        found = list_next(g, h, size);
    } else {
        found = list_search(g, h, g->lists_at, size);
    }
    if (found.b) {
        return take(g, h, found, size);
    }
    return reuse_top(g, h, size);
}

/* A used block of `size` bytes or a little more, without raising the high-water mark; 0 where there is none. */
HW_HOT uint32_t find_block(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->victim_up_to) {
        const uint32_t at = is_small(g, size) ? find_small(g, h, size) : 0;
        return at ? block_of(g, h, at) : search_beside_victim(g, h, size);
    }
    const uint32_t b = search_and_take(g, h, size);
    if (g->coalesce == HW_DEFERRED && b == 0 && merge_all(g, h)) {
        return search_and_take(g, h, size);
    }
    return b;
}

/* ---- freeing --------------------------------------------------------------------------------------------------- */

/* Frees a block whose list is in order of addresses, so that the way to its place passes its neighbours. */
static inline void release_on_the_way(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    uint32_t before_lower = 0;
    uint32_t before = g->lists_at;
    skip_to_neighbours(g, h, &before_lower, &before, b);
    uint32_t next = load_link(&g->links, h, before);
    const uint32_t node = b + g->node;
    while (next && next < node) {
        before_lower = before;
        before = next;
        next = load_link(&g->links, h, next);
    }
    if (next == node + size) {
        const uint32_t next_size = word_size(g, load_word(g, h, b + size));
        if (merges(g, h, next_size) && (!is_wary(g) || may_take(g, h, before, b + size, load_word(g, h, b + size)))) {
            list_unlink(g, h, next_size, before, next);
            note_block_gone(h, g->overhead);
            size += next_size;
            next = load_link(&g->links, h, before);
        }
    }
    uint32_t lower = 0;
    if (before_lower) {
        const uint32_t lower_size = word_size(g, load_word(g, h, before - g->node));
        if (before + lower_size == node && merges(g, h, lower_size) &&
            (!is_wary(g) || is_takeable(g, h, before - g->node, load_word(g, h, before - g->node)))) {
            lower = before;
            b = lower - g->node;
            size += lower_size;
            note_block_gone(h, g->overhead);
        }
    }
    if (g->top == HW_TOP_LAST && b + size == load4(h, g->top_at)) {
        if (lower) {
            list_unlink(g, h, size, before_lower, lower);
        }
        lower_top(g, h, b);
        return;
    }
    write_free(g, h, b, size, 0);
    if (lower == 0) {
        count_free(g, h, 1);
        list_link(g, h, before, node, next);
    }
    start_from(g, h, before);
}

/* Nothing free lies below where searches start. */
static inline void keep_lowest(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->search_from == HW_FROM_LOWEST_FREE && b < load4(h, g->rover_at)) {
        store4(h, g->rover_at, b);
    }
}

/* Files a block as free, without a look at its neighbours. */
HW_HOT void release_alone(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t flags)
{
    write_free(g, h, b, size, flags);
    freelist_insert(g, h, b, size);
    if (g->free_list == HW_IMPLICIT) {
        start_from(g, h, b);
        keep_lowest(g, h, b);
    }
    if (g->coalesce == HW_DEFERRED) {
        store4(h, g->pending_at, 1);
    }
}

/* Merges with the block behind, where that is free; returns the size gained. `next_word` is that block's word. */
HW_HOT uint32_t merge_next(const struct hw_general *g, struct hw_heap *h, uint32_t next, uint32_t next_word)
{
    if (!merges_with(g, h, next_word)) {
        return 0;
    }
    const uint32_t size = word_size(g, next_word);
    if (is_wary(g) && !may_merge(g, h, next, size)) {
        return 0;
    }
    freelist_remove(g, h, next, size);
    note_block_gone(h, g->overhead);
    return size;
}

/* Merges with the block ahead, where that is free; returns the size gained. */
HW_HOT uint32_t merge_previous(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    uint32_t size;
    if (g->boundary_tags) {
        if (has_flag_before(g) && (word & HW_PREV_USED)) {
            return 0;
        }
        size = size_before(g, h, b);
        if (g->tag_in_header && size == 0) {
            return 0;
        }
    } else {
        const uint32_t previous = block_before(g, h, b);
        if (previous == 0 || !merges_with(g, h, load_word(g, h, previous))) {
            return 0;
        }
        size = b - previous;
    }
    if (is_wary(g) && !may_merge(g, h, b - size, size)) {
        return 0;
    }
    if (!g->keep_place) {
        freelist_remove(g, h, b - size, size);
    }
    note_block_gone(h, g->overhead);
    return size;
}

/* Makes the block b, which ends at the top, part of it. */
HW_HOT void join_top(const struct hw_general *g, struct hw_heap *h, uint32_t b)
{
    if (g->victim_up_to && b == load4(h, g->victim_at + 4u)) {
        b = load4(h, g->victim_at);
    }
    lower_top(g, h, b);
}

/* Frees a block and merges it with its free neighbours, the victim and the top; each boundary is looked at once.
 *     | free | b: used | free |  =>  | free                  |   */
HW_HOT void release_beside_victim(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                  uint32_t word)
{
    const uint32_t next = b + size;
    b -= merge_previous(g, h, b, word);
    if (next == load4(h, g->top_at)) {
        join_top(g, h, b);
        return;
    }
    if (next == load4(h, g->victim_at)) {
        store4(h, g->victim_at, b);
        note_block_gone(h, g->overhead);
        return;
    }
    const uint32_t next_word = load_word(g, h, next);
    const uint32_t end = next + merge_next(g, h, next, next_word);
    if (b == load4(h, g->victim_at + 4u)) {
        store4(h, g->victim_at + 4u, end);
        note_block_gone(h, g->overhead);
        if (end != next) {
            mark_before_used(g, h, end);
        }
        return;
    }
    if (end == next) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    release_alone(g, h, b, end - b, HW_PREV_USED);
}

/* Frees a block and merges it with what is free beside it. */
static inline void release_merged(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size,
                                  uint32_t word)
{
    const uint32_t top = open_top(g, h);
    const uint32_t next = b + size;
    uint32_t next_word = HW_USED;
    uint32_t gained = 0;
    uint32_t ahead = 0;
    if (g->end_word || next != top) {
        next_word = load_word(g, h, next);
        gained = merge_next(g, h, next, next_word);
        size += gained;
    }
    if (g->coalesce == HW_IMMEDIATE) {
        /* | free | b: used | free |  =>  | free                  | */
        ahead = merge_previous(g, h, b, word);
        b -= ahead;
        size += ahead;
    }
    keep_rover_on_block(g, h, b, b + size);
    if (g->top == HW_TOP_LAST && b + size == top) {
        if (g->keep_place && ahead) {
            freelist_remove(g, h, b, size);
        }
        lower_top(g, h, b);
        return;
    }
    if (has_flag_before(g) && gained == 0) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    if (g->keep_place && ahead) {
        write_free(g, h, b, size, HW_PREV_USED);
        return;
    }
    release_alone(g, h, b, size, HW_PREV_USED);
}

/* Frees the block b, whose word has been read. */
HW_HOT void release_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    if ((g->coalesce == HW_IMMEDIATE || g->coalesce == HW_FORWARD) && merges(g, h, size)) {
        if (g->coalesce == HW_IMMEDIATE && g->order == HW_ADDRESS && !g->boundary_tags && !g->bins &&
            g->free_list != HW_IMPLICIT && g->free_list != HW_TREE) {
            release_on_the_way(g, h, b, size);
            return;
        }
        if (g->victim_up_to) {
            release_beside_victim(g, h, b, size, word);
            return;
        }
        release_merged(g, h, b, size, word);
        return;
    }
    if (g->coalesce == HW_SWEEP && g->top == HW_TOP_LAST && b + size == load4(h, g->top_at)) {
        lower_top(g, h, b);
        return;
    }
    release_alone(g, h, b, size, word & HW_PREV_USED);
}

/* Frees a block where that is rare. */
HW_COLD void release_rarely(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    release_block(g, h, b, word);
}

/* Frees a block that has neither a free block ahead nor the victim on either side. */
HW_COLD void release_apart(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if (!merges(g, h, size)) {
        release_block(g, h, b, word);
        return;
    }
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    const uint32_t next = b + size;
    if (next == load4(h, g->top_at)) {
        lower_top(g, h, b);
        return;
    }
    const uint32_t next_word = load_word(g, h, next);
    const uint32_t end = next + merge_next(g, h, next, next_word);
    if (end == next) {
        store_word(g, h, next, next_word & ~(uint32_t)HW_PREV_USED);
    }
    release_alone(g, h, b, end - b, HW_PREV_USED);
}

/* Frees a block that begins where the victim ends. */
HW_COLD void release_behind_victim(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if (!merges(g, h, size)) {
        release_block(g, h, b, word);
        return;
    }
    if (g->checks) {
        store_word(g, h, b, word & ~(uint32_t)HW_USED);
    }
    const uint32_t next = b + size;
    if (next == load4(h, g->top_at)) {
        lower_top(g, h, load4(h, g->victim_at));
        return;
    }
    const uint32_t end = next + merge_next(g, h, next, load_word(g, h, next));
    store4(h, g->victim_at + 4u, end);
    note_block_gone(h, g->overhead);
    if (end != next) {
        mark_before_used(g, h, end);
    }
}

/* Frees a block that has a free block ahead, as its word tells, or the victim on either side; 0 where it has not, and
 * nothing has changed. */
HW_HOT int release_beside_free(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t word)
{
    const uint32_t size = word_size(g, word);
    if ((word & HW_PREV_USED) == 0) {
        release_rarely(g, h, b, word);
        return 1;
    }
    if (b + size == load4(h, g->victim_at)) {
        if (!merges(g, h, size)) {
            release_rarely(g, h, b, word);
            return 1;
        }
        if (g->checks) {
            store_word(g, h, b, word & ~(uint32_t)HW_USED);
        }
        store4(h, g->victim_at, b);
        note_block_gone(h, g->overhead);
        return 1;
    }
    if (b == load4(h, g->victim_at + 4u)) {
        release_behind_victim(g, h, b, word);
        return 1;
    }
    return 0;
}

/* The free block that ends at the top; 0 where there is none. O(list), which is in order of address. */
static inline uint32_t free_below_top(const struct hw_general *g, struct hw_heap *h)
{
    uint32_t last = 0;
    uint32_t node = load_link(&g->links, h, g->lists_at);
    skip_to_last(g, h, &node);
    while (node) {
        last = node;
        node = load_link(&g->links, h, node);
    }
    if (last && last - g->node + word_size(g, load_word(g, h, last - g->node)) == load4(h, g->top_at)) {
        return last - g->node;
    }
    return 0;
}

/* Extends the free block that ends at the top by what a request lacks, because the memory above does not hold all of
 * it; 0 where there is no such block, or too little memory even so. */
static inline uint32_t extend_last(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    const uint32_t b = free_below_top(g, h);
    if (b == 0) {
        return 0;
    }
    const uint32_t top = load4(h, g->top_at);
    const uint32_t had = top - b;
    if (had > size || load4(h, g->limit_at) - b < size) {
        return 0;
    }
    if (is_wary(g) && !may_merge(g, h, b, had)) {
        return 0;
    }
    freelist_remove(g, h, b, had);
    raise_high(g, h, b + size);
    store4(h, g->top_at, b + size);
    write_used(g, h, b, size, HW_PREV_USED);
    return b;
}

/* A block that raises the high-water mark; 0 where the arena ends. */
static inline uint32_t grow_block(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    if (g->top == HW_TOP_LIST) {
        return 0;
    }
    const uint32_t more = size < g->grow_least ? g->grow_least : size;
    const uint32_t top = load4(h, g->top_at);
    if (load4(h, g->limit_at) - top < more) {
        return g->top == HW_TOP_EXTEND ? extend_last(g, h, size) : 0;
    }
    raise_high(g, h, top + more);
    const uint32_t b = cut_from_top(g, h, top, more);
    if (g->grow_least) {
        /* What a growth gives beyond the request is a free block like any other: a search finds the request's in it. */
        release_rarely(g, h, b, load_word(g, h, b));
        return search_and_take(g, h, size);
    }
    return b;
}

/* ---- resizing -------------------------------------------------------------------------------------------------- */

/* Whether a used block that has so many bytes too many gives them back. */
static inline int is_trimmed(const struct hw_general *g, uint32_t rest)
{
    return g->split && rest >= g->split_least;
}

/* Gives back what a used block has beyond `size`, where that is enough for a block of its own. */
static inline void trim_block(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size)
{
    const uint32_t word = load_word(g, h, b);
    const uint32_t rest = word_size(g, word) - size;
    note_rest(g, h, rest);
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
    if (g->top != HW_TOP_LIST && end == load4(h, g->top_at)) {
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
    if (is_wary(g) && (word & HW_USED) == 0 && !may_merge(g, h, end, word_size(g, word))) {
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
    if (is_wary(g) && size != 0 && !may_merge(g, h, b - size, size)) {
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
    freelist_remove(g, h, end, behind);
    note_block_gone(h, g->overhead);
    store_word(g, h, b, size_word(g, size + behind, word_flags(g, word)));
    keep_rover_on_block(g, h, b, end + behind);
    if (g->boundary_tags && merges(g, h, behind)) {
        mark_before_used(g, h, end + behind);
    }
}

/* Lets the used block b, of `size` bytes, slide down into the free block ahead, of `ahead` bytes. */
static inline void slide_down(const struct hw_general *g, struct hw_heap *h, uint32_t b, uint32_t size, uint32_t ahead)
{
    const uint32_t to = b - ahead;
    freelist_remove(g, h, to, ahead);
    note_block_gone(h, g->overhead);
    const uint32_t flags = word_flags(g, load_word(g, h, to));
    store_word(g, h, to, size_word(g, ahead + size, flags | HW_USED));
    keep_rover_on_block(g, h, to, b + size);
    move_payload(h, to + g->header, b + g->header, size - g->overhead);
}

/* Payload bytes of a used block of `size` bytes. */
static inline uint32_t payload_bytes(const struct hw_general *g, uint32_t b, uint32_t size)
{
    if (g->pad) {
        return b + size - g->trailer - payload_of(g, b);
    }
    return size - g->overhead;
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
    if (need <= size) {
        trim_block(g, h, b, need);
        return b;
    }
    const uint32_t end = b + size;
    uint32_t gained = 0;
    if (extend_over_boundary(g, h, end, need - size, &gained)) {
        store_word(g, h, b, size_word(g, size + gained, word_flags(g, word)));
        keep_rover_on_block(g, h, b, end + gained);
        return b;
    }
    const uint32_t behind = free_behind(g, h, end);
    uint32_t ahead = 0;
    if (g->resize == HW_RESIZE_BOTH_SIDES && size + behind != need) {
        ahead = free_ahead(g, h, b, word);
    }
    if (ahead + size + behind < need) {
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
static inline uint32_t aligned_size_for(const struct hw_general *g, uint32_t n, uint32_t alignment)
{
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

/* ---- payloads: what a heap asks of every pool, see pool.h -------------------------------------------------------- */

/* Serves n bytes from what is at hand: the address of the payload, or 0. */
HW_HOT uint32_t general_hit(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    if (g->victim_up_to) {
        return find_small(g, h, block_size_for(g, n));
    }
    const uint32_t b = find_block(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Goes on where nothing is at hand, without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t general_search(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t b = search_beside_victim(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Serves n bytes without raising the high-water mark: the address of the payload, or 0. */
static inline uint32_t general_find(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t size = block_size_for(g, n);
    if (g->victim_up_to) {
        const uint32_t at = is_small(g, size) ? find_small(g, h, size) : 0;
        return at ? at : general_search(g, h, n);
    }
    const uint32_t b = find_block(g, h, size);
    return b ? hand_out(g, h, b) : 0;
}

/* Serves n bytes from memory that was never used: the address of the payload, or 0. */
static inline uint32_t general_grow(const struct hw_general *g, struct hw_heap *h, uint32_t n)
{
    const uint32_t b = grow_block(g, h, block_size_for(g, n));
    return b ? hand_out(g, h, b) : 0;
}

/* Whether the payload lies in the pool's region. */
static inline int general_owns(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    (void)h;
    return at >= g->start && at < g->start + g->region;
}

static inline uint32_t general_capacity(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    const uint32_t word = load_word(g, h, b);
    return payload_bytes(g, b, word_size(g, word));
}

/* Whether `at` is the payload of a block in use, as far as its header tells. */
HW_HOT int general_is_used(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    if (at < g->start + g->header || at >= load4(h, g->top_at)) {
        return 0;
    }
    const uint32_t word = load_word(g, h, at - g->header);
    if (!g->pad && (g->checks == HW_CHECKS_FREES) &&
        !is_size_within(g, at - g->header, word_size(g, word), load4(h, g->top_at))) {
        return 0; /* what was written there since is not masked as headers are */
    }
    if (g->pad && (word & HW_USED) == 0) {
        const uint32_t padding = word_size(g, word);
        return padding != 0 && padding <= g->pad && at - g->header - padding >= g->start &&
               (load_word(g, h, at - g->header - padding) & HW_USED) != 0;
    }
    return (word & HW_USED) != 0;
}

/* Frees the block with this payload. */
static inline void general_release(const struct hw_general *g, struct hw_heap *h, uint32_t at)
{
    const uint32_t b = block_of(g, h, at);
    release_rarely(g, h, b, load_word(g, h, b));
}

/* Makes the object with this payload n bytes large without a search, and returns where it is; 0 where it cannot, and
 * nothing has changed. */
static inline uint32_t general_resize(const struct hw_general *g, struct hw_heap *h, uint32_t at, uint32_t n)
{
    const uint32_t b = resize_block(g, h, block_of(g, h, at), n);
    return b ? payload_of(g, b) : 0;
}

#endif
