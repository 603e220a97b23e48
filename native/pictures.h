/* pictures.h: all of the arena in pieces, in the order of addresses. */
#ifndef HW_PICTURES_H
#define HW_PICTURES_H

#include "replay.h"

/* Where pieces go. */
struct map {
    struct hw_piece *pieces;
    uint64_t room;
    uint64_t count;
};

static void add_piece(struct map *map, const struct hw_piece *piece)
{
    if (piece->size == 0) {
        return;
    }
    if (map->count < map->room) {
        map->pieces[map->count] = *piece;
    }
    map->count++;
}

/* Adds a stretch outside all blocks. */
static void add_run(struct map *map, uint32_t offset, uint32_t size, uint32_t state)
{
    const struct hw_piece piece = {offset, size, 0, state, HW_MAX_POOLS};
    add_piece(map, &piece);
}

/* A block that its pool holds for handed out but no object lives in waits in a quick list; where there is none, it is
 * one of a class whose free blocks are listed. `live` is NULL where no block can wait so. */
static void add_block(struct map *map, const struct replay *r, uint32_t pool, const struct hw_block *block,
                      const unsigned char *live)
{
    uint32_t state = HW_RUN_FREE;
    if (block->state == HW_BLOCK_USED && (live == NULL || live[block->offset + block->header])) {
        state = HW_RUN_USED;
    } else if (block->state == HW_BLOCK_USED && r->policy->pools[pool].cached) {
        state = HW_RUN_CACHED;
    }
    const struct hw_piece piece = {block->offset, block->size, block->header, state, pool};
    add_piece(map, &piece);
}

/* The pools' numbers in the order in which they lie in the arena; returns how many hold blocks of their own. */
static uint32_t order_pools(struct replay *r, uint32_t *order)
{
    uint32_t starts[HW_MAX_POOLS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->policy->pool_count; i++) {
        struct hw_block first = {0, 0, 0, 0, 0};
        const struct hw_pool *pool = &r->policy->pools[i];
        if (!holds_blocks(pool) || !pool_block_at(pool, &r->heap, 0, &first)) {
            continue;
        }
        uint32_t place = count++;
        for (; place > 0 && starts[place - 1u] > first.offset; place--) {
            starts[place] = starts[place - 1u];
            order[place] = order[place - 1u];
        }
        starts[place] = first.offset;
        order[place] = i;
    }
    return count;
}

/* Descriptors of the pools whose descriptors lie between `from` and `to`; returns where they end, or `from`. */
static uint32_t add_descriptors(struct map *map, struct replay *r, uint32_t from, uint32_t to)
{
    uint32_t used = 0;
    uint32_t end = 0;
    for (uint32_t i = 0; i < r->policy->pool_count; i++) {
        uint32_t table = from;
        if (descriptor_table(&r->heap, &r->policy->pools[i], &table, &used, &end) && table >= from && end <= to) {
            add_run(map, from, table - from, HW_RUN_UNTOUCHED);
            add_run(map, table, used, HW_RUN_HEADER);
            from = table + used;
        }
    }
    return from;
}

static void add_arena(struct map *map, struct replay *r, const unsigned char *live)
{
    const struct hw_policy *p = r->policy;
    uint32_t order[HW_MAX_POOLS];
    const uint32_t pools = order_pools(r, order);
    uint32_t end = p->control;
    add_run(map, 0, p->control, HW_RUN_CONTROL);
    for (uint32_t i = 0; i < pools; i++) {
        struct hw_block block = {0, 0, 0, 0, 0};
        while (pool_block_at(&p->pools[order[i]], &r->heap, block.offset + block.size, &block)) {
            end = add_descriptors(map, r, end, block.offset);
            add_run(map, end, block.offset - end, HW_RUN_UNTOUCHED);
            add_block(map, r, order[i], &block, live);
            end = block.offset + block.size;
        }
    }
    const uint32_t arena = (uint32_t)r->bytes;
    end = add_descriptors(map, r, end, arena);
    add_run(map, end, arena - end, HW_RUN_UNTOUCHED);
}

#endif
