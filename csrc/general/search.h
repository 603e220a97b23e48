/* general/search.h: the free block for a request in one list, or among all blocks. */
#ifndef HW_GENERAL_SEARCH_H
#define HW_GENERAL_SEARCH_H

#include "general/merge.h"

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

/* ---- a list ------------------------------------------------------------------------------------------------------ */

/* Searches one list from the word `before` on for the first block that will do. The search fails at the node `end`. */
static inline struct hw_found list_first(const struct hw_general *g, struct hw_heap *h, uint32_t before, uint32_t end,
                                         uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t left = g->search_most;
    uint32_t most = most_nodes(g, h);
    skip_nodes(g, h, &before, end, size, &left);
    uint32_t node = load_link(&g->links, h, before);
    while (node) {
        skip_quiet_nodes(g, h, &before, &node, end, size);
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
        skip_worse_nodes(g, h, &before, &node, size, best, &budget);
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
        if (checks_links(g) && !link_is_valid(g, h, head, node - g->node, word)) {
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

/* ---- all blocks -------------------------------------------------------------------------------------------------- */

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

#endif
