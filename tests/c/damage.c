/* damage.c: the checker on heaps whose block metadata was damaged, one bit at a time.
 *
 *     damage HEAPS SEED
 *
 * HEAPS is as for fuzz.c. The checker must come back from any damage without a step outside the arena, and find most of
 * it; the last line says how much: header words, links and boundary tags. Control data is left alone, and so are
 * descriptors and handles: nothing in the arena says where they end but the control data itself.
 */
#include "checked_heap.h"

enum { PARTS = 3, WORD = 0, LINKS = 1, TAG = 2 };

static uint64_t damaged[PARTS];
static uint64_t found[PARTS];
static uint32_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

/* Flips each bit of some bytes in turn. */
static void flip_bits(struct checked *c, int part, uint32_t at, uint32_t bytes)
{
    for (uint32_t bit = 0; bit < 8u * bytes; bit++) {
        unsigned char *byte = c->heap.base + at + bit / 8u;
        *byte ^= (unsigned char)(1u << bit % 8u);
        damaged[part]++;
        found[part] += hw_check(c->policy, &c->heap) != 0;
        *byte ^= (unsigned char)(1u << bit % 8u);
        if (c->policy->checks) {
            memcpy(c->heap.base + c->policy->misused_at, &c->misused, 4); /* a link that leads nowhere counts */
        }
    }
}

static void damage_general(struct checked *c, const struct hw_general *g, const struct hw_block *block)
{
    const uint32_t payload = block->offset + block->header;
    if (block->state == HW_BLOCK_VICTIM) {
        return;
    }
    flip_bits(c, WORD, block->offset, g->word.bytes);
    if (block->header > g->header) {
        flip_bits(c, WORD, payload - g->header, g->word.bytes);
    }
    if (block->state == HW_BLOCK_FREE) {
        const uint32_t links = g->free_list == HW_DOUBLE || g->free_list == HW_TREE ? 2u : g->free_list == HW_SINGLE;
        flip_bits(c, LINKS, block->offset + g->node, links * g->links.field.bytes);
        const uint32_t end = block->offset + block->size;
        if (g->boundary_tags && can_merge(g, block->size) && end < load4(&c->heap, g->top_at)) {
            flip_bits(c, TAG, tag_at(g, end), g->word.bytes);
        }
    }
    if (block->state == HW_BLOCK_CACHED) {
        flip_bits(c, LINKS, payload, g->links.field.bytes);
    }
}

static void damage_fixed(struct checked *c, const struct hw_fixed *f, const struct hw_block *block)
{
    const uint32_t payload = block->offset + block->header;
    if (f->grow) {
        flip_bits(c, WORD, block->offset, f->word.bytes);
    }
    if (f->grow && f->first_fit) {
        flip_bits(c, LINKS, fixed_chain_at(f, payload), f->links.field.bytes);
    }
    if (block->state == HW_BLOCK_CACHED || (block->state == HW_BLOCK_FREE && !f->first_fit)) {
        flip_bits(c, LINKS, payload, f->links.field.bytes);
    }
}

static void damage_buddy(struct checked *c, const struct hw_buddy *y, const struct hw_block *block)
{
    flip_bits(c, WORD, block->offset, y->word.bytes);
    if (block->state == HW_BLOCK_FREE) {
        flip_bits(c, LINKS, block->offset + block->header, 2u * y->links.field.bytes);
    }
}

static void damage_partition(struct checked *c, const struct hw_partition *g, const struct hw_block *block)
{
    const uint32_t table = partition_table(g, &c->heap);
    const uint32_t i = partition_number(g, block->offset);
    const uint32_t last = i + block->size / g->partition - 1u;
    flip_bits(c, WORD, count_at(g, table, i), g->field.bytes);
    if (g->coalesce) {
        flip_bits(c, TAG, first_at(g, table, last), g->field.bytes);
    }
    if (block->state == HW_BLOCK_FREE) {
        flip_bits(c, LINKS, next_at(g, table, i), 2u * g->field.bytes);
    }
}

static void damage(struct checked *c)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    while (hw_next_block(c->policy, &c->heap, &block)) {
        const struct hw_pool *pool = &c->policy->pools[block.pool];
        if (pool->kind == HW_FIXED) {
            damage_fixed(c, &pool->fixed, &block);
        } else if (pool->kind == HW_BUDDY) {
            damage_buddy(c, &pool->buddy, &block);
        } else if (pool->kind == HW_PARTITION) {
            damage_partition(c, &pool->partition, &block);
        } else if (pool->kind == HW_GENERAL) {
            damage_general(c, &pool->general, &block);
        }
    }
}

static void run(struct checked *c)
{
    for (uint32_t i = 0; i < 120; i++) {
        if (c->count > 0 && random_below(100) < 40) {
            do_free(c, random_below(c->count));
        } else if (!is_full(c)) {
            do_malloc(c, random_below(random_below(4) == 0 ? 600 : 60));
        }
    }
    damage(c);
    check_after(c);
    checked_close(c);
}

int main(int argc, char **argv)
{
    static struct hw_policy policy;
    static struct checked c;
    uint32_t bytes = 0;
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: damage HEAPS SEED\n");
        return 2;
    }
    random_state = (uint32_t)strtoul(argv[2], NULL, 0);
    while (fread(&bytes, sizeof bytes, 1, file) == 1 && fread(&policy, sizeof policy, 1, file) == 1) {
        if (checked_open(&c, &policy, bytes)) {
            run(&c);
        }
    }
    fclose(file);
    for (int part = 0; part < PARTS; part++) {
        printf("%llu of %llu ", (unsigned long long)found[part], (unsigned long long)damaged[part]);
    }
    printf("\n");
    return 0;
}
