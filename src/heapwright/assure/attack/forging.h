/* forging.h: what an attacker writes who has read the source: headers, links, tags and whole blocks, in any pool's own
 * form, and where his bug finds a place.
 */
#ifndef HW_FORGING_H
#define HW_FORGING_H

#include "ground.h"

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

/* Writes a whole block from `from` on, with all that the blocks beside it would say; returns its payload. */
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

/* Writes a block of whatever kind the last pool has; returns its payload. */
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

/* A size that a block of `size` bytes at b might be said to have. */
static uint32_t some_false_size(const struct hw_general *g, uint32_t b, uint32_t size)
{
    const uint32_t unit = (uint32_t)1 << g->unit_shift;
    const struct hw_block *behind = block_with(b + size);
    const struct hw_block *beyond = behind ? block_with(behind->offset + behind->size) : NULL;
    const struct object *o = some_object(1);
    switch (choose(10)) {
    case 0:
    case 1:
        return size + (behind ? behind->size : unit);
    case 2:
        return size + (behind ? behind->size : 0) + (beyond ? beyond->size : unit);
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
