/* general/tree.h: the free blocks of a general pool in a search tree.
 *
 * A node is the address of a block's links: its first word leads to what comes before it, its second to what comes
 * after. No node knows the one above it; what matters, as in a list, is the address of the word that leads to a node.
 *
 *     root -> | 40 |             The block of 40 bytes lies above those of 24 and 56. What comes before, and what is
 *            /      \            above, are two orders:
 *        | 24 |    | 56 |
 *         /  \      /  \             fit     before                    above
 *                                    best    smaller, then lower       hash of the address, so that depths are small
 *                                    first   lower                     larger, then the hash
 *
 * For a best fit it is a treap; for a first fit the Cartesian tree of Stephenson's Fast Fits, whose root is the largest
 * block, so that a search knows from a root alone whether anything below it will do. Either order makes the shape of
 * the tree a function of its blocks alone, independent of history. With n blocks it is 1.39 log2 n deep on average as
 * far as the order above has nothing to do with the order before, as hashes have; n deep at worst.
 *
 * Sources: Vuillemin, "A unifying look at data structures", CACM 23(4), 1980; Stephenson, "Fast Fits: new methods for
 * dynamic storage allocation", SOSP 1983; Seidel and Aragon, "Randomized search trees", Algorithmica 16, 1996.
 */
#ifndef HW_GENERAL_TREE_H
#define HW_GENERAL_TREE_H

#include "general/block.h"

/* The word that leads to what comes after a node; the node's first word leads to what comes before it. */
static inline uint32_t tree_after(const struct hw_general *g, uint32_t node)
{
    return node + g->links.field.bytes;
}

static inline uint32_t tree_size(const struct hw_general *g, struct hw_heap *h, uint32_t node)
{
    return word_size(g, load_word(g, h, node - g->node));
}

/* A number unique to a node and unrelated to address order: odd factors and a shift lose no bit. */
static inline uint32_t tree_hash(uint32_t node)
{
    const uint32_t mixed = node * 0x9e3779b1u;
    return (mixed ^ mixed >> 15) * 0x85ebca6bu;
}

/* Whether `node`, of a block of `size` bytes, comes before `other`. */
static inline int tree_is_before(const struct hw_general *g, uint32_t node, uint32_t size, uint32_t other,
                                 uint32_t other_size)
{
    if (g->fit == HW_BEST && size != other_size) {
        return size < other_size;
    }
    return node < other;
}

/* Whether `node`, of a block of `size` bytes, belongs above `other`. */
static inline int tree_is_above(const struct hw_general *g, uint32_t node, uint32_t size, uint32_t other,
                                uint32_t other_size)
{
    if (g->fit == HW_FIRST && size != other_size) {
        return size > other_size;
    }
    return tree_hash(node) > tree_hash(other);
}

/* Hangs the tree `below`, whose root is of a block of `below_size` bytes, under a node that belongs above all of it:
 * what comes before the node to one side, what comes after it to the other. O(depth). */
static inline void tree_unzip(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t size,
                              uint32_t below, uint32_t below_size)
{
    uint32_t before = node;
    uint32_t after = tree_after(g, node);
    while (below) {
        if (tree_is_before(g, below, below_size, node, size)) {
            store_link(&g->links, h, before, below);
            before = tree_after(g, below);
            below = load_link(&g->links, h, before);
        } else {
            store_link(&g->links, h, after, below);
            after = below;
            below = load_link(&g->links, h, after);
        }
        if (g->fit == HW_BEST && below) {
            below_size = tree_size(g, h, below);
        }
    }
    store_link(&g->links, h, before, 0);
    store_link(&g->links, h, after, 0);
}

/* Puts the node of a free block of `size` bytes into the tree to which the word `at` leads. O(depth). */
static inline void tree_insert(const struct hw_general *g, struct hw_heap *h, uint32_t at, uint32_t node, uint32_t size)
{
    uint32_t below = load_link(&g->links, h, at);
    uint32_t below_size = 0;
    while (below) {
        below_size = tree_size(g, h, below);
        if (tree_is_above(g, node, size, below, below_size)) {
            break;
        }
        at = tree_is_before(g, node, size, below, below_size) ? below : tree_after(g, below);
        below = load_link(&g->links, h, at);
    }
    store_link(&g->links, h, at, node);
    tree_unzip(g, h, node, size, below, below_size);
}

/* The word that leads to `node`, of a block of `size` bytes that is in the tree. O(depth). */
static inline uint32_t tree_before(const struct hw_general *g, struct hw_heap *h, uint32_t node, uint32_t size)
{
    uint32_t at = g->lists_at;
    uint32_t below = load_link(&g->links, h, at);
    while (below != node && (!g->links.hardened || below)) {
        const uint32_t below_size = g->fit == HW_BEST ? tree_size(g, h, below) : 0;
        at = tree_is_before(g, node, size, below, below_size) ? below : tree_after(g, below);
        below = load_link(&g->links, h, at);
    }
    return at;
}

/* Takes out the node to which the word `at` leads, and zips what lay below it. O(depth). */
static inline void tree_unlink(const struct hw_general *g, struct hw_heap *h, uint32_t at, uint32_t node)
{
    uint32_t before = load_link(&g->links, h, node);
    uint32_t after = load_link(&g->links, h, tree_after(g, node));
    while (before && after) {
        const uint32_t before_size = g->fit == HW_FIRST ? tree_size(g, h, before) : 0;
        const uint32_t after_size = g->fit == HW_FIRST ? tree_size(g, h, after) : 0;
        if (tree_is_above(g, before, before_size, after, after_size)) {
            store_link(&g->links, h, at, before);
            at = tree_after(g, before);
            before = load_link(&g->links, h, at);
        } else {
            store_link(&g->links, h, at, after);
            at = after;
            after = load_link(&g->links, h, at);
        }
    }
    store_link(&g->links, h, at, before ? before : after);
}

/* The free block for a request of `size` bytes; of equal ones the lowest. O(depth). */
static inline struct hw_found tree_search(const struct hw_general *g, struct hw_heap *h, uint32_t size)
{
    struct hw_found found = found_none();
    uint32_t at = g->lists_at;
    uint32_t node = load_link(&g->links, h, at);
    while (node) {
        const uint32_t word = load_word(g, h, node - g->node);
        if (word_size(g, word) >= size) {
            found.b = node - g->node;
            found.word = word;
            found.before = at;
            at = node;
        } else if (g->fit == HW_FIRST) {
            return found;
        } else {
            at = tree_after(g, node);
        }
        node = load_link(&g->links, h, at);
    }
    return found;
}

#endif
