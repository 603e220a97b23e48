/* techniques.h: thirteen ways to turn a bug into control of a heap, each as published, and adapted by an attacker
 * who has read the checks.
 *
 * A technique sets up the bug's one write, or the one wrong call, then calls malloc, free and realloc as any program
 * does. What is free to choose, and where several ways are known, is drawn by lot: trials are many.
 *
 * Sources: Solar Designer, "JPEG COM marker processing vulnerability", 2000 (unlink); MaXX, "Vudo malloc tricks", and
 * anonymous, "Once upon a free()", Phrack 57, 2001; Phantasmal Phantasmagoria, "The Malloc Maleficarum", 2005; Evans,
 * "The poisoned NUL byte, 2014 edition", Project Zero; Shellphish, how2heap, for today's names; blexim, "Basic integer
 * overflows", Phrack 60, 2002.
 */
#ifndef HW_TECHNIQUES_H
#define HW_TECHNIQUES_H

#include "forging.h"

enum technique {
    UNSAFE_UNLINK,
    FORGED_SIZE,
    FORGED_LINK,
    FORGED_FOOTER,
    MOVED_TOP,
    DOUBLE_FREE,
    MADE_UP_BLOCK,
    NULL_BYTE,
    BENT_BITMAP,
    NEIGHBOUR_HEADER,
    FORGED_REALLOC,
    CALLOC_OVERFLOW,
    BENT_WORD,
    TECHNIQUES
};

/* A free block's header is kept, its two links are forged: unlinking it stores either where the other leads. */
static void unsafe_unlink(void)
{
    const struct hw_block *block = NULL;
    struct object *ahead = NULL;
    if (choose(2)) {
        block = block_behind_object(1u << HW_BLOCK_FREE);
        if (block) {
            ahead = object_ahead(block);
            overflow(ahead, block->offset, block->offset + forged_bytes(block));
        }
    } else {
        const struct object *o = dangling(&block);
        if (o) {
            use_after_free(o);
        }
    }
    if (block == NULL || block->state != HW_BLOCK_FREE || !is_linked_both_ways(pool_of(block))) {
        end(UNFIT);
    }
    const struct hw_links *links = links_of(pool_of(block));
    const uint32_t node = node_of(payload_at(block), pool_of(block));
    const uint32_t forged = 1u + choose(3);
    if (forged & 1u) {
        put_link(links, node, some_target(pool_of(block), node));
    }
    if (forged & 2u) {
        put_link(links, node + links->field.bytes, some_target(pool_of(block), node));
    }
    close_window();
    touch(block, ahead);
}

/* A free block says to be larger than it is: its next owner overlaps others. */
static void forged_size(void)
{
    const struct hw_block *block = block_behind_object(1u << HW_BLOCK_FREE | 1u << HW_BLOCK_CACHED);
    if (block == NULL) {
        end(UNFIT);
    }
    struct object *ahead = object_ahead(block);
    overflow(ahead, block->offset, block->offset + block->header);
    forge_header(block);
    close_window();
    touch(block, ahead);
}

/* A list leads to where its attacker says: the second request is served there. */
static void forged_link(void)
{
    const struct hw_block *block = NULL;
    uint32_t size = 0;
    const struct object *o = choose(2) ? dangling(&block) : NULL;
    if (o) {
        use_after_free(o);
        size = o->size;
    } else {
        block = block_behind_object(1u << HW_BLOCK_FREE | 1u << HW_BLOCK_CACHED);
        if (block) {
            overflow(object_ahead(block), block->offset, block->offset + forged_bytes(block));
            size = block->size - block->header;
        }
    }
    const struct hw_links *links = block ? links_of(pool_of(block)) : NULL;
    if (links == NULL) {
        end(UNFIT);
    }
    forge_first_link(links, block);
    close_window();
    const uint32_t calls = 1u + choose(4);
    for (uint32_t i = 0; i < calls; i++) {
        (void)demand(size);
    }
}

/* Makes a block in use believe that a free block lies ahead of it, at any distance that the attacker likes. */
static void forged_footer(void)
{
    const struct hw_block *block = block_behind_object(1u << HW_BLOCK_USED);
    if (block == NULL || !reads_footers(block) || object_in(block) == NULL) {
        end(UNFIT);
    }
    const uint32_t bytes = word_bytes(block);
    struct object *ahead = object_ahead(block);
    overflow(ahead, block->offset - bytes, block->offset + 2u * bytes);
    forge_footer(block, ahead);
    forge_size(block, block->size, 0);
    close_window();
    give_back(object_in(block));
}

/* A block in use claims to reach the top, or the last remainder: its free lets the heap give out what lies between. */
static void moved_top(void)
{
    const struct hw_block *block = block_behind_object(1u << HW_BLOCK_USED);
    struct object *o = block ? object_in(block) : NULL;
    if (o == NULL || !tells_top(block)) {
        end(UNFIT);
    }
    struct object *ahead = object_ahead(block);
    overflow(ahead, block->offset, block->offset + block->header);
    forge_up_to_top(block);
    close_window();
    if (choose(3)) {
        give_back(o);
    } else {
        resize(o, choose(2) ? sizes[2] : 1u);
    }
}

/* Overwrites what marks a cached block behind its link. */
static void forget_mark(const struct object *freed)
{
    look_around();
    const struct hw_block *block = block_with(freed->at);
    const struct hw_links *links = links_of_cached(&policy.pools[0]);
    if (block && block->state == HW_BLOCK_CACHED && links) {
        const uint32_t bytes = links->field.bytes;
        use_after_free(freed);
        put(freed->at + bytes, bytes, choose(2) ? 0 : choose(UINT32_MAX));
        close_window();
    }
}

/* A block is freed twice, others perhaps in between: two objects get it. What marks it may be overwritten first. */
static void double_free(void)
{
    struct object *o = some_object(1);
    if (o == NULL) {
        end(UNFIT);
    }
    const struct object freed = *o;
    give_back(o);
    const uint32_t others = choose(3) ? choose(3) : choose(12);
    for (uint32_t i = 0; i < others; i++) {
        struct object *other = some_object(1);
        if (other) {
            give_back(other);
        }
    }
    if (choose(2)) {
        forget_mark(&freed);
    }
    DO_FREE(pointer_to(freed.at));
    const uint32_t calls = 2u + choose(5);
    for (uint32_t i = 0; i < calls; i++) {
        (void)demand(freed.size);
    }
}

/* An address is freed that no call handed out, where bytes in front read like a header. */
static void made_up_block(void)
{
    uint32_t made_up = make_up_somewhere(0, 0, 0);
    if (choose(8) == 0) {
        made_up = policy.align * choose(policy.control / policy.align + 1u);
    }
    if (object_at(made_up)) {
        end(UNFIT);
    }
    DO_FREE(pointer_to(made_up));
    (void)demand(sizes[choose(2)]);
}

/* One zero byte is written behind an object. */
static void null_byte(void)
{
    const struct hw_block *block = block_behind_object(1u << HW_BLOCK_USED | 1u << HW_BLOCK_FREE);
    if (block == NULL) {
        end(UNFIT);
    }
    struct object *ahead = object_ahead(block);
    ahead->size = (uint32_t)DO_USABLE(pointer_to(ahead->at));
    if (has_footers(block) && choose(2)) {
        forge_footer(block, ahead);
    }
    window_from = ahead->at + ahead->size;
    window_end = window_from + 1u;
    put(window_from, 1, 0);
    close_window();
    struct object *o = object_in(block);
    if (o && choose(2)) {
        give_back(o);
    } else {
        touch(block, ahead);
    }
}

/* One word of the control data is overwritten that says which lists hold blocks, which blocks are in use, or where a
 * list begins. */
static void bent_bitmap(void)
{
    const struct hw_pool *pool = &policy.pools[choose(policy.pool_count)];
    const uint32_t marks = some_marks(pool);
    const uint32_t head = marks == 0 || choose(2) ? some_head(pool) : 0;
    const uint32_t at = head ? head : marks;
    if (at == 0) {
        end(UNFIT);
    }
    window_from = at;
    window_end = at + 4u;
    if (head) {
        bend_head(pool, at);
    } else {
        const uint32_t had = load4(view, at);
        const uint32_t bit = (uint32_t)1 << choose(32);
        const uint32_t any = choose(UINT32_MAX);
        const uint32_t forged[] = {0, UINT32_MAX, had | bit, had & ~bit, bit, had + 1u, had + choose(4096), any};
        put(at, 4, forged[choose(8)]);
    }
    close_window();
}

/* A number that a word of the control data may hold: where a block begins, where its payload or its links do, as an
 * address, in the units of links or of partitions; or an address beyond the blocks or the arena. */
static uint32_t some_place(void)
{
    look_around();
    if (block_count == 0 || choose(4) == 0) {
        const uint32_t beyond[] = {policy.control,      arena_bytes, arena_bytes + choose(OUTSIDE),
                                   choose(arena_bytes), 0,           choose(UINT32_MAX)};
        return beyond[choose(6)] & ~(policy.align - 1u);
    }
    const struct hw_block *block = &blocks[choose(block_count)];
    const uint32_t places[] = {block->offset, payload_at(block), node_of(payload_at(block), pool_of(block)),
                               block->offset + block->size};
    return places[choose(4)];
}

/* One word of the control data, any but the number of misuses, leads to a block in use, to a free one or beyond. */
static void bent_word(void)
{
    const uint32_t at = 4u * choose(policy.control / 4u);
    if (at == policy.misused_at) {
        end(UNFIT);
    }
    static const uint32_t shifts[] = {0, 0, 0, 2, 3, 4};
    window_from = at;
    window_end = at + 4u;
    put(at, 4, some_place() >> shifts[choose(6)]);
    close_window();
}

/* An object whose header was overwritten from the one ahead of it. */
static struct object *object_overwritten(void)
{
    const struct hw_block *block = block_behind_object(1u << HW_BLOCK_USED);
    struct object *o = block ? object_in(block) : NULL;
    if (o == NULL) {
        end(UNFIT);
    }
    overflow(object_ahead(block), block->offset, block->offset + block->header);
    forge_header(block);
    close_window();
    return o;
}

/* The header of the object behind is overwritten, then that one is freed. */
static void neighbour_header(void)
{
    give_back(object_overwritten());
}

/* The same, and it is resized; or what is resized was never handed out. */
static void forged_realloc(void)
{
    const size_t to = choose(2) ? 1u + choose(64) : some_size() + choose(2) * sizes[2];
    if (choose(3) == 0) {
        const uint32_t made_up = make_up_somewhere(0, 0, 0);
        if (object_at(made_up)) {
            end(UNFIT);
        }
        const void *moved = DO_REALLOC(pointer_to(made_up), to);
        if (moved != pointer_to(made_up)) {
            (void)adopt(moved, to); /* the same address again proves nothing yet */
        }
        return;
    }
    resize(object_overwritten(), to);
}

/* Sizes whose product, or whose sum with what a block needs, is beyond what a number holds. */
static void calloc_overflow(void)
{
    const size_t much = SIZE_MAX - choose(64);
    struct object *o = some_object(1);
    const size_t factor = (size_t)2 << choose(16);
    switch (choose(6)) {
    case 0:
        (void)adopt(DO_CALLOC(SIZE_MAX / factor + 1u + choose(4), factor), SIZE_MAX);
        return;
    case 1:
        (void)adopt(DO_CALLOC(factor, SIZE_MAX / factor + 1u + choose(4)), SIZE_MAX);
        return;
    case 2:
        (void)adopt(DO_CALLOC((size_t)1 << 16, ((size_t)1 << 16) - choose(2)), UINT32_MAX);
        return;
    case 3:
        (void)adopt(DO_MALLOC(choose(2) ? much : UINT32_MAX - choose(64)), UINT32_MAX - 64u);
        return;
    case 4:
        (void)adopt(DO_ALIGNED((size_t)1 << choose(31), choose(2) ? much : UINT32_MAX - choose(64)), UINT32_MAX - 64u);
        return;
    default:
        if (o) {
            resize(o, choose(2) ? much : UINT32_MAX - choose(64));
        }
    }
}

static void (*const techniques[TECHNIQUES])(void) = {
    unsafe_unlink, forged_size, forged_link,      forged_footer,  moved_top,       double_free, made_up_block,
    null_byte,     bent_bitmap, neighbour_header, forged_realloc, calloc_overflow, bent_word,
};

#endif
