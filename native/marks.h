/* marks.h: which bytes of the arena are metadata, block by block, as each kind of pool has it. */
#ifndef HW_MARKS_H
#define HW_MARKS_H

#include <string.h>

#include "kinds.h"

struct marks {
    unsigned char *bytes; /* one for each of the arena's */
    uint32_t end;         /* behind the last marked one */
    struct hw_heap *heap;
};

static void mark(struct marks *m, uint32_t from, uint32_t bytes)
{
    memset(m->bytes + from, 1, bytes);
    if (from + bytes > m->end) {
        m->end = from + bytes;
    }
}

static void general_mark(const struct hw_general *g, const struct hw_block *block, struct marks *m)
{
    const uint32_t payload = block->offset + block->header;
    mark(m, block->offset, block->header ? g->word.bytes : 0);
    if (block->header > g->header) {
        mark(m, payload - g->header, g->word.bytes);
    }
    if (block->state == HW_BLOCK_FREE) {
        const uint32_t links = g->free_list == HW_DOUBLE || g->free_list == HW_TREE ? 2u : g->free_list == HW_SINGLE;
        mark(m, block->offset + g->node, links * g->links.field.bytes);
        if (has_flag_before(g) && can_merge(g, block->size)) {
            mark(m, tag_at(g, block->offset + block->size), g->word.bytes);
        }
    }
    if (g->tag_in_header) {
        mark(m, tag_at(g, block->offset), g->word.bytes);
    }
    if (block->state == HW_BLOCK_CACHED) {
        mark(m, payload, g->links.field.bytes);
    }
}

static void fixed_mark(const struct hw_fixed *f, const struct hw_block *block, struct marks *m)
{
    if (f->header) {
        mark(m, block->offset, f->grow ? f->word.bytes : 0);
    }
    if (f->grow && f->first_fit) {
        mark(m, block->offset + 4u, f->links.field.bytes);
    }
    if (block->state == HW_BLOCK_CACHED || (block->state == HW_BLOCK_FREE && !f->first_fit)) {
        mark(m, block->offset + block->header, f->links.field.bytes);
    }
}

static void buddy_mark(const struct hw_buddy *y, const struct hw_block *block, struct marks *m)
{
    const uint32_t payload = block->offset + block->header;
    mark(m, block->offset, y->word.bytes);
    if (block->state == HW_BLOCK_FREE) {
        mark(m, payload, 2u * y->links.field.bytes);
    }
}

static void partition_mark(const struct hw_partition *g, const struct hw_block *block, struct marks *m)
{
    const uint32_t table = partition_table(g, m->heap);
    const uint32_t i = partition_number(g, block->offset);
    const uint32_t last = i + block->size / g->partition - 1u;
    const uint32_t width = g->field.bytes;
    mark(m, count_at(g, table, i), width);
    if (g->coalesce) {
        mark(m, first_at(g, table, last), width);
    }
    if (block->state == HW_BLOCK_FREE) {
        mark(m, next_at(g, table, i), 2u * width);
    }
}

static void compact_mark(const struct hw_compact *c, const struct hw_block *block, struct marks *m)
{
    if (c->header) {
        mark(m, block->offset, 2u * c->word.bytes);
    }
}

/* A block that waits in a quick list holds a link. */
static void mark_cached(const struct hw_policy *policy, const struct hw_block *block, struct marks *m)
{
    if (block->state == HW_BLOCK_CACHED) {
        for (uint32_t i = 0; i < block->pool; i++) {
            if (policy->pools[i].kind == HW_QUICK) {
                mark(m, block->offset + block->header, policy->pools[i].quick.links.field.bytes);
            }
        }
    }
}

#endif
