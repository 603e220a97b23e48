/* forging.h: what an attacker writes who has read the source: headers, links, tags and whole blocks, in any pool's own
 * form, and where his bug finds a place.
 */
#ifndef HW_FORGING_H
#define HW_FORGING_H

#include "ground.h"

/* What an attacker knows of a pool: of links all but what masks them. */
static void unmask(struct hw_pool *pool)
{
    if (pool->kind == HW_GENERAL) {
        pool->general.links.hardened = 0;
    } else if (pool->kind == HW_FIXED) {
        pool->fixed.links.hardened = 0;
    } else if (pool->kind == HW_BUDDY) {
        pool->buddy.links.hardened = 0;
    }
}

/* A place outside the arena that is the attacker's, or that he wants to change. */
static uint32_t place_outside(void)
{
    return (arena_bytes + OUTSIDE + 64u * choose(8) + 15u) & ~15u;
}

/* The general pool of the recipe; NULL where it has none. */
static const struct hw_general *general_pool(void)
{
    for (uint32_t i = 0; i < policy.pool_count; i++) {
        if (policy.pools[i].kind == HW_GENERAL) {
            return &policy.pools[i].general;
        }
    }
    return NULL;
}

static uint32_t general_word(const struct hw_general *g, uint32_t size, uint32_t flags)
{
    return size_word(g, size, flags & (((uint32_t)1 << g->flag_bits) - 1u)) & UINT32_MAX >> (32u - 8u * g->word.bytes);
}

/* Writes a whole block from `from` on, and what its neighbours record about it; returns its payload. */
static uint32_t make_up_general(const struct hw_general *g, uint32_t from, uint32_t room, int is_free, uint32_t next,
                                uint32_t before)
{
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const uint32_t at = (from + g->header + 2u * g->word.bytes + g->align - 1u) & ~(g->align - 1u);
    const uint32_t b = at - g->header;
    const uint32_t most = (from + room - b - g->header - 8u) & ~(unit - 1u);
    const uint32_t wanted = block_size_for(g, choose(2) ? sizes[0] : sizes[1]);
    const uint32_t size = wanted <= most ? wanted : most;
    if (from + room < b + g->header + 8u || size < g->min_block) {
        return at;
    }
    const uint32_t ahead = has_flag_before(g) ? HW_PREV_USED : 0;
    put_word(b, g->word.bytes, general_word(g, size, is_free ? ahead : HW_USED | ahead));
    if (g->tag_in_header) {
        put_word(tag_at(g, b), g->word.bytes, 0);
    }
    put_word(b + size, g->word.bytes, general_word(g, g->min_block, is_free ? HW_USED : HW_USED | ahead));
    if (g->boundary_tags) {
        put_word(tag_at(g, b + size), g->word.bytes, is_free ? general_word(g, size, 0) : 0);
    }
    if (is_free) {
        put_link(&g->links, b + g->node, next);
        put_link(&g->links, b + g->node + g->links.field.bytes, before);
    } else {
        put_guard(at, size - g->overhead);
    }
    return at;
}

/* Writes a block of the last pool's kind; returns its payload. */
static uint32_t make_up(uint32_t from, uint32_t room, int is_free, uint32_t next, uint32_t before)
{
    const struct hw_pool *pool = &policy.pools[choose(policy.pool_count)];
    if (pool->kind == HW_FIXED && pool->fixed.header) {
        const struct hw_fixed *f = &pool->fixed;
        const uint32_t at = (from + f->header + policy.align - 1u) & ~(policy.align - 1u);
        const uint32_t class_ = choose(2) ? fixed_class_for(f, sizes[choose(2)]) : choose(f->count);
        put_word(at - f->header, f->word.bytes, class_ << 1 | (choose(4) != 0));
        return at;
    }
    if (pool->kind == HW_BUDDY) {
        const struct hw_buddy *y = &pool->buddy;
        const uint32_t order = order_for(y, sizes[choose(2)]);
        const uint32_t least = order_size(y, order <= 4u && choose(2) ? order : 0);
        const uint32_t b = y->start + ((from - y->start + least - 1u) & ~(least - 1u));
        put_word(b, y->word.bytes, order << 1 | (is_free ? 0 : HW_BUDDY_USED));
        if (is_free) {
            put_link(&y->links, b + y->header, next);
            put_link(&y->links, b + y->header + y->links.field.bytes, before);
        }
        return b + y->header;
    }
    const struct hw_general *g = general_pool();
    if (g) {
        return make_up_general(g, from, room, is_free, next, before);
    }
    return (from + policy.align - 1u) & ~(policy.align - 1u);
}

/* A block made up in an object in use, or outside. */
static uint32_t make_up_somewhere(int is_free, uint32_t next, uint32_t before)
{
    struct object *o = some_object(1);
    for (uint32_t i = 0; i < 4u && o && o->size < sizes[2]; i++) {
        o = some_object(1);
    }
    if (o == NULL || choose(3) == 0) {
        return make_up(place_outside(), 2048, is_free, next, before);
    }
    const uint32_t skipped = choose(3) ? 0 : choose(o->size / 2u);
    return make_up(o->at + skipped, o->size - skipped, is_free, next, before);
}

/* Where the payload's links lie; lists of general pools lead to nodes, others to payloads. */
static uint32_t node_of(uint32_t payload, const struct hw_pool *pool)
{
    return pool->kind == HW_GENERAL ? payload - pool->general.header + pool->general.node : payload;
}

static const struct hw_links *links_of(const struct hw_pool *pool)
{
    return pool->kind == HW_BUDDY     ? &pool->buddy.links
           : pool->kind == HW_FIXED   ? &pool->fixed.links
           : pool->kind == HW_GENERAL ? &pool->general.links
                                      : NULL;
}

/* The links of the blocks that a pool caches; NULL for one that they belong to. */
static const struct hw_links *links_of_cached(const struct hw_pool *pool)
{
    return pool->kind == HW_QUICK ? &pool->quick.links : NULL;
}

static int is_linked_both_ways(const struct hw_pool *pool)
{
    return pool->kind == HW_BUDDY ||
           (pool->kind == HW_GENERAL && (pool->general.free_list == HW_DOUBLE || pool->general.free_list == HW_TREE));
}

/* Where he would like a link to lead. */
static uint32_t some_target(const struct hw_pool *pool, uint32_t node)
{
    const uint32_t drawn = choose(12);
    const struct object *o = some_object((int)choose(2));
    if (drawn < 3u) {
        return place_outside();
    }
    if (drawn == 3u) {
        return arena_bytes + (1u << 20) + 16u * choose(64);
    }
    if (drawn == 4u) {
        return 4u * choose(policy.control / 4u + 1u);
    }
    if (drawn == 5u) {
        return o ? node_of(o->at, pool) + (choose(2) ? 0 : policy.align) : 0;
    }
    if (drawn == 6u) {
        return choose(2) ? node : 0;
    }
    return node_of(make_up_somewhere(1, choose(2) ? node : 0, node), pool);
}

/* The size of a block at b that covers the next block, too, or the next two. */
static uint32_t size_over_neighbours(uint32_t b, uint32_t size, int two, uint32_t unit)
{
    const struct hw_block *next = block_with(b + size);
    const struct hw_block *second = next ? block_with(next->offset + next->size) : NULL;
    if (!two) {
        return size + (next ? next->size : unit);
    }
    return size + (next ? next->size : 0) + (second ? second->size : unit);
}

/* A false size for a block of `size` bytes at b. */
static uint32_t some_false_size(const struct hw_general *g, uint32_t b, uint32_t size)
{
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const struct object *o = some_object(1);
    const uint32_t drawn = choose(10);
    if (drawn < 3u) {
        return size_over_neighbours(b, size, drawn == 2u, unit);
    }
    switch (drawn) {
    case 3:
        return load4(view, g->top_at) - b;
    case 4:
        return size > unit ? size - unit : unit;
    case 5:
        return g->min_block;
    case 6:
        return place_outside() - b;
    case 7:
        return choose(2) ? UINT32_MAX - choose(4096) : 0x7ffffff0u - unit * choose(64);
    case 8:
        return o ? o->at + policy.align * choose(o->size / policy.align + 1u) - b : unit;
    default:
        return unit * choose(200);
    }
}

/* Puts what the checks would look for at the end of a block, where that is his. */
static void match_end(const struct hw_general *g, uint32_t b, uint32_t size, int is_free)
{
    const uint32_t ahead = has_flag_before(g) && !is_free ? HW_PREV_USED : 0;
    put_word(b + size, g->word.bytes, general_word(g, choose(2) ? g->min_block : size, HW_USED | ahead));
    if (g->boundary_tags) {
        put_word(tag_at(g, b + size), g->word.bytes, is_free ? general_word(g, size, 0) : 0);
    }
}

/* Writes another header to a block. */
static void forge_header(const struct hw_block *block)
{
    const struct hw_pool *pool = pool_of(block);
    if (pool->kind == HW_GENERAL) {
        const struct hw_general *g = &pool->general;
        const uint32_t unit = (uint32_t)1 << g->unit_shift;
        const uint32_t size = some_false_size(g, block->offset, block->size) & ~(unit - 1u);
        const int was_free = block->state == HW_BLOCK_FREE;
        const int is_free = choose(4) ? was_free : !was_free;
        const uint32_t ahead = has_flag_before(g) && choose(4) ? HW_PREV_USED : 0;
        if (choose(4)) {
            match_end(g, block->offset, size, is_free);
        }
        put_word(block->offset, g->word.bytes, general_word(g, size, (is_free ? 0 : HW_USED) | ahead));
    } else if (pool->kind == HW_FIXED) {
        const uint32_t class_ = choose(4) ? choose(pool->fixed.count) : choose(256);
        put_word(block->offset, pool->fixed.word.bytes, class_ << 1 | (choose(4) != 0));
    } else {
        const uint32_t order = choose(4) ? choose(12) : choose(256);
        put_word(block->offset, pool->buddy.word.bytes, order << 1 | (choose(4) != 0));
    }
}

/* The link that leads to what a list holds next; of quick lists it lies where the payload begins. */
static void forge_first_link(const struct hw_links *links, const struct hw_block *block)
{
    const struct hw_pool *pool = pool_of(block);
    const int is_cached = block->state == HW_BLOCK_CACHED;
    const uint32_t node = is_cached ? payload_at(block) : node_of(payload_at(block), pool);
    uint32_t target = some_target(pool, node);
    if (is_cached && pool->kind == HW_GENERAL && choose(2)) {
        target = target + pool->general.header - pool->general.node;
    }
    const int chained = pool->kind == HW_FIXED && pool->fixed.first_fit;
    put_link(links, chained ? fixed_chain_at(&pool->fixed, node) : node, target);
}

/* Whether a free block leaves a footer in front of the next block's header. */
static int reads_footers(const struct hw_block *block)
{
    return pool_of(block)->kind == HW_GENERAL;
}

static int has_footers(const struct hw_block *block)
{
    return reads_footers(block) && pool_of(block)->general.boundary_tags;
}

/* Whether a block's size says where the memory in use ends. */
static int tells_top(const struct hw_block *block)
{
    return pool_of(block)->kind == HW_GENERAL || pool_of(block)->kind == HW_BUDDY;
}

static uint32_t word_bytes(const struct hw_block *block)
{
    return pool_of(block)->general.word.bytes;
}

/* Writes another size to a block in use. */
static void forge_size(const struct hw_block *block, uint32_t size, uint32_t flags)
{
    const struct hw_general *g = &pool_of(block)->general;
    put_word(block->offset, g->word.bytes, general_word(g, size, HW_USED | flags));
}

/* Makes a block in use believe that a free block lies ahead of it, at any distance that the attacker likes. */
static void forge_footer(const struct hw_block *block, struct object *ahead)
{
    const struct hw_general *g = &pool_of(block)->general;
    uint32_t made_up = make_up_somewhere(1, choose(2) ? 0 : place_outside(), choose(2) ? 0 : place_outside());
    if (choose(2) && ahead->size > 32u) {
        made_up = make_up_general(g, ahead->at, ahead->size, 1, choose(2) ? 0 : place_outside(), place_outside());
    }
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const uint32_t b = made_up - g->header;
    const struct hw_block *lower = block_with(ahead->at);
    uint32_t size = choose(4) ? block->offset - b : block->offset - (lower ? lower->offset : 0);
    size &= ~(unit - 1u);
    put_word(block->offset - size, g->word.bytes, general_word(g, size, has_flag_before(g) ? HW_PREV_USED : 0));
    put_word(tag_at(g, block->offset), g->word.bytes, general_word(g, size, 0));
}

/* Writes to a block in use that it reaches the top, the mark, the end of the memory, or the last remainder. */
static void forge_up_to_top(const struct hw_block *block)
{
    if (pool_of(block)->kind == HW_GENERAL) {
        const struct hw_general *g = &pool_of(block)->general;
        uint32_t to = load4(view, choose(2) ? g->top_at : g->high_at);
        to = choose(3) ? to : g->victim_up_to ? load4(view, g->victim_at) : load4(view, g->limit_at);
        forge_size(block, to - block->offset, has_flag_before(g) ? HW_PREV_USED : 0);
    } else {
        const struct hw_buddy *y = &pool_of(block)->buddy;
        const uint32_t order = highest_bit((load4(view, y->top_at) - block->offset) | 1u) - y->min_block_log2;
        put_word(block->offset, y->word.bytes, (order + choose(2)) << 1 | HW_BUDDY_USED);
    }
}

/* Where a pool keeps a random list's head; 0 where it has none. */
static uint32_t some_head(const struct hw_pool *pool)
{
    if (pool->kind == HW_QUICK) {
        return quick_head(&pool->quick, choose(pool->quick.count));
    }
    if (pool->kind == HW_GENERAL && pool->general.free_list != HW_IMPLICIT) {
        const struct hw_general *g = &pool->general;
        const uint32_t any = g->lists_at + choose(g->bins ? g->bins : 1u) * g->list_stride;
        return choose(4) ? list_head(g, block_size_for(g, some_size())) : any;
    }
    if (pool->kind == HW_FIXED && (pool->fixed.grow || !pool->fixed.first_fit)) {
        return fixed_head(&pool->fixed, choose(pool->fixed.count));
    }
    if (pool->kind == HW_BUDDY) {
        return order_head(&pool->buddy, choose(pool->buddy.orders));
    }
    return pool->kind == HW_PARTITION ? pool->partition.head_at + 4u * choose(pool->partition.lists) : 0;
}

/* Where a pool keeps a random word that marks lists as filled, or blocks as used, or counts them, in the control
 * data; 0 where it has none. */
static uint32_t some_marks(const struct hw_pool *pool)
{
    if (pool->kind == HW_GENERAL && pool->general.bins) {
        const int summary = pool->general.bins > 32u && choose(3) == 0;
        return summary ? pool->general.summary_at
                       : pool->general.bitmap_at + 4u * choose((pool->general.bins + 31u) / 32u);
    }
    if (pool->kind == HW_PARTITION && pool->partition.lists > 1u) {
        return pool->partition.bitmap_at;
    }
    if (pool->kind == HW_FIXED && !pool->fixed.grow) {
        const uint32_t class_ = choose(pool->fixed.count);
        const int flags = pool->fixed.flags && choose(2);
        const uint32_t flag = pool->fixed.flags_at[class_] + choose(pool->fixed.counts[class_]);
        return flags ? flag & ~3u : pool->fixed.carved_at + 4u * class_;
    }
    return 0;
}

/* A list's head is overwritten, which is in the control data. */
static void bend_head(const struct hw_pool *pool, uint32_t at)
{
    if (pool->kind == HW_PARTITION) {
        put(at, 4, choose(3) ? choose(4096) : choose(UINT32_MAX));
        return;
    }
    const struct hw_links *links = links_of_cached(pool) ? links_of_cached(pool) : links_of(pool);
    const uint32_t target = some_target(pool->kind == HW_QUICK ? &policy.pools[policy.pool_count - 1u] : pool, at);
    put_link(links, at, target);
}

/* ---- finding a place for the bug ----------------------------------------------------------------------------------
 */

static int has_header(const struct hw_block *block)
{
    const struct hw_pool *pool = pool_of(block);
    return pool->kind == HW_GENERAL || pool->kind == HW_BUDDY || (pool->kind == HW_FIXED && pool->fixed.header);
}

/* A random block in one of the states (bits) whose neighbour ahead is an object in use; NULL where there is none. */
static const struct hw_block *block_behind_object(uint32_t states)
{
    look_around();
    const uint32_t from = choose(block_count ? block_count : 1u);
    for (uint32_t i = 0; i < block_count; i++) {
        const struct hw_block *block = &blocks[(from + i) % block_count];
        if ((states >> block->state & 1u) && has_header(block) && object_ahead(block)) {
            return block;
        }
    }
    return NULL;
}

/* A random freed object whose block is free or cached still; NULL where there is none. */
static const struct object *dangling(const struct hw_block **block)
{
    look_around();
    const uint32_t from = choose(object_count ? object_count : 1u);
    for (uint32_t i = 0; i < object_count; i++) {
        const struct object *o = &objects[(from + i) % object_count];
        *block = block_with(o->at);
        if (!o->live && *block && object_in(*block) == NULL && (*block)->state != HW_BLOCK_VICTIM) {
            return o;
        }
    }
    return NULL;
}

/* Bytes that a free block's header and links take. */
static uint32_t forged_bytes(const struct hw_block *block)
{
    const struct hw_links *links = links_of(pool_of(block));
    return block->header + (links ? 2u * links->field.bytes : 0);
}

/* What a program would call next on what the bug has touched. */
static void touch(const struct hw_block *block, struct object *ahead)
{
    struct object *behind = object_in(block_with(block->offset + block->size));
    const uint32_t drawn = choose(5);
    if (drawn == 0 && ahead) {
        give_back(ahead);
    } else if (drawn == 1u && behind) {
        give_back(behind);
    } else if (drawn == 2u && ahead) {
        resize(ahead, choose(2) ? ahead->size + block->size : ahead->size / 2u + 1u);
    } else if (drawn == 3u) {
        (void)demand(block->size - block->header);
    }
}

#endif
