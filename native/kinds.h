/* kinds.h: what a replay knows of the kinds of pools, beyond what it asks them (csrc/pool.h): what their blocks bring
 * with them, where the index helps. No other file here knows which kinds there are, but for marks.h and those that
 * index blocks of any size.
 */
#ifndef HW_KINDS_H
#define HW_KINDS_H

#include "shadow_merging.h"
#include "shadow_moving.h"
#include "shadow_searches.h"
#include "arena_margin.h"
#include "margins.h"
#include "wiping.h"

/* ---- objects that move ------------------------------------------------------------------------------------------- */

/* Whether objects move, and are reached through references. */
static int moves(const struct hw_policy *policy)
{
    return pool_moves(&policy->pools[0]);
}

/* Size of an object's reference in pointers, including what the heap keeps next to it. */
static size_t reference_words(const struct hw_policy *policy)
{
    const struct hw_compact *c = &policy->pools[0].compact;
    return c->header == 0 ? sizeof(struct hw_handle) / sizeof(void *) : 1u;
}

/* Makes true what the arena says of the object with this reference, or of all where that is NULL. */
static void settle_object(const struct hw_policy *policy, struct hw_heap *h, void **reference)
{
    const struct hw_compact *c = &policy->pools[0].compact;
    if (!moves(policy)) {
        return;
    }
    if (reference == NULL) {
        settle_blocks(c, h);
    } else if (*reference) {
        const uint64_t reads = h->reads;
        settle_handle(c, h, reference_number(h, reference));
        h->reads = reads;
    }
}

/* See hw_front_bytes(). */
static size_t front_bytes(const struct hw_policy *policy, const struct hw_calls *calls)
{
    return moves(policy) ? calls->slots * reference_words(policy) * sizeof(void *) : 0;
}

/* ---- what a block brings with it --------------------------------------------------------------------------------- */

/* Metadata bytes that a block brings with it; the descriptors of partitions lie elsewhere. */
static uint32_t overhead_of(const struct hw_pool *pool, uint32_t capacity)
{
    if (pool->kind == HW_FIXED) {
        return pool->fixed.header + pool->fixed.trailer;
    }
    if (pool->kind == HW_BUDDY) {
        return pool->buddy.header + pool->buddy.trailer;
    }
    if (pool->kind == HW_PARTITION) {
        return (capacity + pool->partition.trailer) / pool->partition.partition * pool->partition.descriptor;
    }
    return pool->general.overhead;
}

/* Payload bytes of a block; padding counts as overhead on either side of the payload. */
static uint32_t capacity_of(const struct hw_pool *pool, struct hw_heap *h, uint32_t at)
{
    if (pool->kind == HW_GENERAL && pool->general.pad) {
        const struct hw_general *g = &pool->general;
        return word_size(g, load_word(g, h, block_of(g, h, at))) - g->overhead;
    }
    return pool_capacity(pool, h, at);
}

/* Metadata bytes of an object that moves. */
static uint32_t overhead_of_moving(const struct hw_policy *policy)
{
    const struct hw_compact *c = &policy->pools[0].compact;
    return c->header;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* How a pool stores links; NULL of one that has none. */
static inline struct hw_links *links_of(struct hw_pool *pool)
{
    switch (pool->kind) {
    case HW_QUICK:
        return &pool->quick.links;
    case HW_GENERAL:
        return &pool->general.links;
    case HW_FIXED:
        return &pool->fixed.links;
    case HW_BUDDY:
        return &pool->buddy.links;
    default:
        return NULL;
    }
}

/* ---- quick lists ------------------------------------------------------------------------------------------------- */

static inline int skip_to_list(const struct hw_quick *q, struct hw_heap *h, size_t size, uint32_t block, uint32_t *list)
{
    if (h->engine.lists == NULL) {
        return 0;
    }
    *list = exceeds(size, q->largest) ? q->count : h->engine.lists[block >> q->block_unit_shift];
    return 1;
}

enum { HEADS = 32 }; /* bytes of heads to look at together */

/* Whether the heads from `at` on lead to nothing, where they are not masked. */
static inline int is_blank(struct hw_heap *h, uint32_t at)
{
    uint64_t heads[HEADS / 8];
    memcpy(heads, arena_pointer(h, at), sizeof heads);
    return (heads[0] | heads[1] | heads[2] | heads[3]) == 0;
}

/* The first list from `list` on that has a block from this turn (`now`) or an older one (`older`); otherwise the last
 * list. */
static HW_NOINLINE uint32_t next_list(const struct hw_quick *q, struct hw_heap *h, uint32_t list, int now, int older)
{
    const uint64_t reads = h->reads;
    const uint32_t beside = HEADS / q->links.field.bytes;
    const int masked = q->links.hardened && q->links.keyed;
    const uint32_t behind = quick_head(q, quick_older(q, 0)) - quick_head(q, 0);
    int found = 0;
    while (!found && list + 1u < q->count) {
        uint32_t head = quick_head(q, list);
        const uint32_t end = least_of(list + beside, q->count - 1u);
        if (!masked && end == list + beside && (!now || is_blank(h, head)) && (!older || is_blank(h, head + behind))) {
            list = end;
            continue;
        }
        for (; !found && list < end; list += !found, head += q->links.field.bytes) {
            found = (now && raw_link(&q->links, h, head)) || (older && raw_link(&q->links, h, head + behind));
        }
    }
    h->reads = reads;
    return list;
}

static inline void skip_empty_lists(const struct hw_quick *q, struct hw_heap *h, uint32_t *list, const int now,
                                    const int older)
{
    const uint32_t next = next_list(q, h, *list, now, older);
    count_skipped(h, (uint64_t)(next - *list) * loads_of(&q->links.field) * (uint32_t)(now + older));
    *list = next;
}

/* Notes which sizes of blocks have a quick list, so that none is looked for, where all lists are of one pool: another
 * that stands further behind makes the blocks of several pools come by the first (`mixed`). */
static int note_lists(const struct hw_policy *p, struct hw_heap *h)
{
    const struct hw_quick *q = &p->pools[0].quick;
    if (p->pools[0].kind != HW_QUICK || p->pools[1].kind == HW_QUICK || p->threads == HW_THREADS_CACHED || q->by_size ||
        q->mixed || q->block_doubles) {
        return 1;
    }
    const uint32_t end = (quick_block(q, q->largest) >> q->block_unit_shift) + 1u;
    h->engine.lists = malloc(end);
    if (h->engine.lists == NULL) {
        return 0;
    }
    memset(h->engine.lists, (int)q->count, end);
    for (uint32_t list = q->count; list-- > 0;) {
        h->engine.lists[(q->sizes[list] + q->block_header) >> q->block_unit_shift] = (uint8_t)list;
    }
    return 1;
}

/* ---- classes of blocks of one size ------------------------------------------------------------------------------- */

static HW_NOINLINE void flag_changed(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at,
                                     uint32_t size)
{
    struct shadow_pool *s = shadow_of(f, h);
    struct spot spot;
    struct sequence *q = sequence_with(&s->nodes, at, &spot);
    if (q) {
        sequence_resize(q, spot, size);
        return;
    }
    q = &s->lists[class_];
    const struct spot end = {q->places, 0};
    sequence_insert(q, end, at, size);
    drop_failed(h, &s->nodes);
}

static inline void note_flag(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t at, uint32_t taken)
{
    if (h->engine.shadow) {
        flag_changed(f, h, class_, at, taken == 0);
    }
}

/* Rank of the first block of a class that is not taken, with its address; the number of all where there is none. */
static HW_NOINLINE uint32_t first_free_in(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(f, h)->lists[class_];
    const struct spot spot = first_sized(q, first, 1u, INT32_MAX);
    *at = is_end(q, spot) ? 0 : address_at(q, spot);
    return rank_of(q, spot);
}

static inline void skip_taken(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *at)
{
    if (h->engine.shadow) {
        uint32_t found;
        const uint32_t passed = first_free_in(f, h, class_, &found);
        count_skipped(h, (uint64_t)passed * (loads_of(&f->links.field) + loads_of(&f->word)));
        *at = found;
    }
}

static inline int skip_flags(const struct hw_fixed *f, struct hw_heap *h, uint32_t class_, uint32_t *i)
{
    if (h->engine.shadow) {
        uint32_t found;
        *i = first_free_in(f, h, class_, &found);
        count_skipped(h, *i);
        return found != 0;
    }
    return 1;
}

/* Adds the blocks of a class, in order of carving, by their payloads or by their flags. */
static void fill_class(const struct hw_fixed *f, struct hw_heap *h, struct sequence *q, uint32_t class_)
{
    if (f->grow) {
        for (uint32_t at = load_link(&f->links, h, fixed_head(f, class_)); at;
             at = load_link(&f->links, h, fixed_chain_at(f, at))) {
            const struct spot end = {q->places, 0};
            sequence_insert(q, end, at, (load_class(f, h, at) & HW_FIXED_TAKEN) == 0);
        }
        return;
    }
    const uint32_t carved = load4(h, f->carved_at + 4u * class_);
    for (uint32_t at = f->flags_at[class_]; at < f->flags_at[class_] + carved; at++) {
        const struct spot end = {q->places, 0};
        sequence_insert(q, end, at, load1(h, at) == 0);
    }
}

/* Indexes a fixed pool whose flags are searched. */
static int shadow_fixed(struct shadow_pool *s, const struct hw_fixed *f, struct hw_heap *h, uint32_t bytes)
{
    s->list_count = f->count;
    s->lists = calloc(f->count, sizeof *s->lists);
    if (s->lists == NULL || !chunks_open(&s->nodes, bytes, f->grow ? f->header : 1u)) {
        return 0;
    }
    for (uint32_t class_ = 0; class_ < f->count; class_++) {
        s->lists[class_].chunks = &s->nodes;
        fill_class(f, h, &s->lists[class_], class_);
    }
    return !s->nodes.failed;
}

/* ---- groups of partitions ---------------------------------------------------------------------------------------- */

static HW_NOINLINE void group_written(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count)
{
    struct spot spot;
    struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, i, &spot);
    if (q) {
        sequence_resize(q, spot, count);
    }
}

static inline void note_group(const struct hw_partition *g, struct hw_heap *h, uint32_t i, uint32_t count)
{
    if (h->engine.shadow) {
        group_written(g, h, i, count);
    }
}

/* Its size is noted with its descriptor, before a search sees it. */
static HW_NOINLINE void group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i)
{
    struct shadow_pool *s = shadow_of(g, h);
    struct spot spot = {0, 0};
    struct sequence *q = before ? sequence_with(&s->nodes, before, &spot) : &s->lists[(head - g->head_at) / 4u];
    sequence_insert(q, before ? spot_behind(q, spot) : spot, i, 0);
    drop_failed(h, &s->nodes);
}

static inline void note_group_linked(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t before,
                                     uint32_t i)
{
    if (h->engine.shadow) {
        group_linked(g, h, head, before, i);
    }
}

static HW_NOINLINE void group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    struct spot spot;
    struct sequence *q = sequence_with(&shadow_of(g, h)->nodes, i, &spot);
    sequence_remove(q, spot);
}

static inline void note_group_unlinked(const struct hw_partition *g, struct hw_heap *h, uint32_t i)
{
    if (h->engine.shadow) {
        group_unlinked(g, h, i);
    }
}

struct between {
    uint32_t before;
    uint32_t next;
};

static HW_NOINLINE struct between way_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head,
                                                     uint32_t i, uint32_t count)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const struct spot spot = g->order == HW_SIZE ? first_sized(q, first, count, INT32_MAX) : spot_above(q, i);
    count_skipped(h, (uint64_t)rank_of(q, spot) * loads_of(&g->field) * (g->order == HW_SIZE ? 2u : 1u));
    const struct between found = {q->total ? address_before(q, spot, 0) : 0, is_end(q, spot) ? 0 : address_at(q, spot)};
    return found;
}

static inline void skip_to_group_place(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t *before,
                                       uint32_t *next, uint32_t i, uint32_t count)
{
    if (h->engine.shadow) {
        const struct between found = way_to_group_place(g, h, head, i, count);
        *before = found.before;
        *next = found.next;
    }
}

static HW_NOINLINE uint32_t first_group(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count)
{
    const struct spot first = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const struct spot spot = first_sized(q, first, count, INT32_MAX);
    count_skipped(h, (uint64_t)rank_of(q, spot) * loads_of(&g->field) * 2u);
    return is_end(q, spot) ? 0 : address_at(q, spot);
}

static HW_NOINLINE struct hw_group best_group(const struct hw_partition *g, struct hw_heap *h, uint32_t head,
                                              uint32_t count)
{
    struct hw_group found = {0, 0};
    struct sequence *q = &shadow_of(g, h)->lists[(head - g->head_at) / 4u];
    const uint64_t pass = 2u * loads_of(&g->field);
    const struct spot spot = q->total ? best_sized(q, q->total, count) : (struct spot){0, 0};
    if (!is_end(q, spot)) {
        found.first = address_at(q, spot);
        found.count = size_at(q, spot);
    }
    count_skipped(h, found.count == count ? rank_of(q, spot) * pass + loads_of(&g->field) : q->total * pass);
    return found;
}

static inline int skip_groups(const struct hw_partition *g, struct hw_heap *h, uint32_t head, uint32_t count,
                              uint32_t *i, struct hw_group *found)
{
    if (h->engine.shadow == NULL) {
        return 0;
    }
    if (g->fit == HW_FIRST) {
        *i = first_group(g, h, head, count);
        return 0;
    }
    *found = best_group(g, h, head, count);
    return 1;
}

/* Indexes a partition pool: its lists of free groups, by their first partitions. */
static int shadow_partition(struct shadow_pool *s, const struct hw_partition *g, struct hw_heap *h)
{
    const uint32_t table = partition_table(g, h);
    s->list_count = g->lists;
    s->lists = calloc(g->lists, sizeof *s->lists);
    if (s->lists == NULL || !chunks_open(&s->nodes, g->most + 1u, 1)) {
        return 0;
    }
    for (uint32_t list = 0; list < g->lists; list++) {
        struct sequence *q = &s->lists[list];
        q->chunks = &s->nodes;
        for (uint32_t i = load4(h, g->head_at + 4u * list); i; i = load_number(g, h, next_at(g, table, i))) {
            const struct spot end = {q->places, 0};
            sequence_insert(q, end, i, load_number(g, h, count_at(g, table, i)) >> 1);
        }
    }
    return !s->nodes.failed;
}

/* ---- blocks of any size ------------------------------------------------------------------------------------------ */

/* Accesses of long walks beyond which an index is made, and those a call that take no longer than keeping it. */
struct walking {
    uint64_t patience;
    uint64_t bearable;
};

enum { FEW_OBJECTS = 2048 }; /* the processor's caches hold what is looked at */

/* Where neighbours are merged at times, keeping the index is cheap, less so in order of size, and walks go over all
 * blocks. Where objects move, one is kept from the first call on. */
static struct walking walking_of(const struct hw_policy *policy, const struct hw_calls *calls)
{
    static const struct walking merging = {1u << 13, 16};
    static const struct walking sorting = {1u << 19, 64};
    static const struct walking other = {1u << 17, 128};
    static const struct walking moving = {0, 128};
    if (moves(policy)) {
        return moving;
    }
    for (uint32_t i = 0; i < policy->pool_count && calls->slots >= FEW_OBJECTS; i++) {
        if (policy->pools[i].kind == HW_GENERAL && merges_recent(&policy->pools[i].general)) {
            return sorts_by_size(&policy->pools[i].general) ? sorting : merging;
        }
    }
    return other;
}

/* Whether free blocks are linked both ways, in two words behind a header of one. */
static int has_plain_links(const struct hw_pool *pool)
{
    const struct hw_general *g = &pool->general;
    return pool->kind == HW_GENERAL && g->free_list == HW_DOUBLE && g->header == 4u && g->node == 4u &&
           g->links.field.bytes == 4u && g->links.shift == 0;
}

/* ---- making an index --------------------------------------------------------------------------------------------- */

/* Indexes a pool, if it is of a kind that walks. `front` bytes ahead of the arena are references, each of a number. */
static int shadow_any(struct shadow_pool *s, const struct hw_pool *pool, struct hw_heap *h, uint32_t bytes,
                      size_t front)
{
    if (pool->kind == HW_COMPACT) {
        return shadow_moving(s, &pool->compact, h, (uint32_t)(2u * front / sizeof(void *)));
    }
    if (pool->kind == HW_GENERAL) {
        return shadow_general(s, &pool->general, h, bytes);
    }
    if (pool->kind == HW_FIXED && pool->fixed.first_fit) {
        return shadow_fixed(s, &pool->fixed, h, bytes);
    }
    if (pool->kind == HW_PARTITION) {
        return shadow_partition(s, &pool->partition, h);
    }
    return 1;
}

static void shadow_free(struct hw_shadow *shadow)
{
    if (shadow == NULL) {
        return;
    }
    for (uint32_t i = 0; i < HW_MAX_POOLS; i++) {
        struct shadow_pool *s = &shadow->pools[i];
        moving_free(s->moving);
        for (uint32_t list = 0; s->lists && list < s->list_count; list++) {
            sequence_close(&s->lists[list]);
        }
        free(s->lists);
        free(s->filings);
        sequence_close(&s->blocks);
        free(s->recent);
        places_close(&s->starts);
        chunks_close(&s->nodes);
        chunks_close(&s->all);
    }
    free(shadow);
}

/* Indexes a heap as it is; NULL without memory. */
static struct hw_shadow *shadow_make(const struct hw_policy *policy, struct hw_heap *h, size_t bytes, size_t front)
{
    struct hw_shadow *shadow = calloc(1, sizeof *shadow);
    if (shadow == NULL) {
        return NULL;
    }
    shadow->policy = policy;
    const uint64_t reads = h->reads;
    const uint32_t end = bytes > policy->reach ? policy->reach : (uint32_t)bytes;
    for (uint32_t i = 0; i < policy->pool_count; i++) {
        if (!shadow_any(&shadow->pools[i], &policy->pools[i], h, end + policy->end_header, front)) {
            shadow_free(shadow);
            shadow = NULL;
            break;
        }
    }
    h->reads = reads;
    return shadow;
}

/* ---- what of the arena is metadata ------------------------------------------------------------------------------- */

/* Finds a pool's descriptors, with the used ones first or, if they grow downwards, last. 0 if it has none. */
static int descriptor_table(struct hw_heap *h, const struct hw_pool *pool, uint32_t *from, uint32_t *used,
                            uint32_t *end)
{
    if (pool->kind != HW_PARTITION) {
        return 0;
    }
    const struct hw_partition *g = &pool->partition;
    const uint32_t covered = (partition_number(g, load4(h, g->high_at)) - 1u) * g->descriptor;
    *from = g->grow ? load4(h, g->limit_at) : g->descriptors;
    *used = covered;
    *end = g->grow ? *from + covered : g->descriptors + g->most * g->descriptor;
    return 1;
}

#endif
