/* stress_test.h: long-run loops at constant live bytes, for heapwright._replay.stress_test. Host only.
 *
 * A program that runs for years repeats its requests. Each loop here repeats them in a different pattern, with sizes
 * drawn from a trace, and keeps live bytes below a bound; memory that a heap covers beyond that is overhead or
 * fragmentation. The engine that replays traces makes the calls one by one. They are the same for every heap as long as
 * no request fails: then they can be recorded once, and replayed.
 */
#ifndef HW_STRESS_TEST_H
#define HW_STRESS_TEST_H

#include <stdlib.h>

#include "replay.h"

enum {
    OBJECT = 8 /* bytes that a live object counts for in addition to its size */
};

struct loop {
    struct replay replay;
    struct hw_calls calls; /* room for one call */
    struct hw_metrics metrics;
    uint8_t op;
    uint32_t slot;
    uint32_t size;
    uint32_t align;
    uint32_t thread;
    const struct hw_loop *loop;
    uint64_t random;
    uint64_t made;   /* calls */
    uint64_t blocks; /* most bytes that live blocks took, with headers */
    uint32_t *live;  /* slots of live objects: a ring, `first` the oldest */
    uint32_t first;
    uint32_t objects; /* live */
    uint32_t *unused; /* slots of none, a stack */
    uint32_t phase;   /* what a loop makes of it */
    struct hw_points points;
    uint32_t point;                   /* the next */
    const struct hw_written *written; /* where calls are written down instead of made; NULL */
};

/* Marsaglia's xorshift, 64 bits. */
static uint32_t draw(struct loop *l, uint32_t below)
{
    l->random ^= l->random << 13;
    l->random ^= l->random >> 7;
    l->random ^= l->random << 17;
    return (uint32_t)((l->random >> 32) * below >> 32);
}

/* What live objects count for: the bytes they asked for, and some for the header and the rounding of each. Without
 * these the number of small objects would drift, and with it what any heap needs. */
static uint64_t weight(const struct loop *l)
{
    return l->replay.requested + (uint64_t)l->objects * OBJECT;
}

/* Whether an object of this size can come to what is live. */
static int has_room(const struct loop *l, uint32_t size)
{
    return weight(l) + OBJECT + size <= l->loop->live;
}

static uint32_t room_of(const struct loop *l)
{
    return l->calls.slots;
}

/* The place in the ring of the object that is the nth oldest. */
static uint32_t ring_place(const struct loop *l, uint32_t n)
{
    return (l->first + n) % room_of(l);
}

/* Writes a call down, and takes it as served. */
static void write_down(struct loop *l, uint8_t op, uint32_t slot, uint32_t size, uint32_t align)
{
    const struct hw_written *w = l->written;
    struct object *object = &l->replay.objects[slot];
    const uint64_t i = l->made++;
    if (i < w->room) {
        w->op[i] = op;
        w->slot[i] = slot;
        w->size[i] = size;
        w->align[i] = align;
        w->thread[i] = l->thread;
    }
    l->replay.requested += size;
    l->replay.requested -= object->at ? object->size : 0;
    object->at = op != HW_OP_FREE;
    object->size = size;
}

static void call(struct loop *l, uint8_t op, uint32_t slot, uint32_t size, uint32_t align)
{
    struct replay *r = &l->replay;
    if (l->written) {
        write_down(l, op, slot, size, align);
        return;
    }
    l->op = op;
    l->slot = slot;
    l->size = size;
    l->align = align;
    r->walked_at--; /* it is call 0 again, and one later */
    replay_call(r, 0);
    l->made++;
    if (r->capacity + r->headers > l->blocks) {
        l->blocks = r->capacity + r->headers;
    }
    while (l->point < l->points.count && l->made >= l->points.calls[l->point]) {
        l->points.covered[l->point++] = (struct hw_covered){r->policy->fixed_end + shared_bytes(r), l->blocks};
    }
}

/* Frees the nth oldest object; unless it was the oldest, the newest one takes its index. */
static void let_go(struct loop *l, uint32_t n)
{
    const uint32_t slot = l->live[ring_place(l, n)];
    call(l, HW_OP_FREE, slot, 0, 0);
    if (n == 0) {
        l->first = ring_place(l, 1);
    } else {
        l->live[ring_place(l, n)] = l->live[ring_place(l, l->objects - 1u)];
    }
    l->objects--;
    l->unused[room_of(l) - l->objects - 1u] = slot;
}

static void let_any_go(struct loop *l)
{
    let_go(l, draw(l, l->objects));
}

/* Frees objects until `size` more bytes are within the bound on live bytes. */
static void make_room(struct loop *l, uint32_t size, int oldest)
{
    while (l->objects && (l->objects == room_of(l) || !has_room(l, size))) {
        l->thread = l->loop->kind == HW_LOOP_QUEUE; /* the consumer's */
        if (oldest) {
            let_go(l, 0);
        } else {
            let_any_go(l);
        }
        l->thread = 0;
    }
}

/* Asks for an object, once there is room; 0 where the heap refuses. */
static int obtain(struct loop *l, uint32_t size, uint32_t align, int oldest)
{
    make_room(l, size, oldest);
    const uint32_t slot = l->unused[room_of(l) - l->objects - 1u];
    call(l, HW_OP_MALLOC, slot, size, align);
    if (l->replay.objects[slot].at == 0) {
        return 0;
    }
    l->live[ring_place(l, l->objects)] = slot;
    l->objects++;
    return 1;
}

static uint32_t youngest(const struct loop *l)
{
    return l->live[ring_place(l, l->objects - 1u)];
}

static uint32_t any_size(struct loop *l)
{
    const uint32_t size = l->loop->sizes[draw(l, l->loop->count)];
    return size ? size : 1u;
}

/* One of the smaller half of the sizes, which are in order, or of the larger. */
static uint32_t size_of_half(struct loop *l, uint32_t half)
{
    const uint32_t middle = l->loop->count / 2u;
    const uint32_t size =
        l->loop->sizes[half ? middle + draw(l, l->loop->count - middle) : draw(l, middle ? middle : 1u)];
    return size ? size : 1u;
}

/* Resizes an object where that leaves no more live than may be. */
static void resize(struct loop *l, uint32_t slot, uint32_t size)
{
    if (weight(l) - l->replay.objects[slot].size + size <= l->loop->live) {
        call(l, HW_OP_REALLOC, slot, size, 0);
    }
}

/* malloc n, realloc to half of it, free: what is cut off comes back before the rest does. */
static void shrink(struct loop *l)
{
    const uint32_t size = any_size(l);
    if (obtain(l, size, 0, 0)) {
        resize(l, youngest(l), size / 2u + 1u);
        if (l->phase++ % 2u == 0) {
            let_go(l, l->objects - 1u); /* at once, as in a parser; the others live on */
        }
    }
}

static void grow(struct loop *l)
{
    const uint32_t size = any_size(l);
    make_room(l, size, 0);
    if (obtain(l, size / 2u + 1u, 0, 0)) {
        resize(l, youngest(l), size);
    }
}

static void resize_any(struct loop *l)
{
    if (l->objects == 0 || draw(l, 4) == 0) {
        (void)obtain(l, any_size(l), 0, 0);
        return;
    }
    resize(l, l->live[ring_place(l, draw(l, l->objects))], any_size(l));
    if (weight(l) > l->loop->live / 8u * 7u) {
        let_any_go(l);
    }
}

/* Small objects give way to large ones, and these to small ones again. */
static void change_phase(struct loop *l)
{
    if (l->made / l->loop->period % 2u != l->phase) {
        l->phase ^= 1u;
    }
    (void)obtain(l, size_of_half(l, l->phase), 0, 0);
}

/* What one thread asks for another frees, in order. */
static void queue(struct loop *l)
{
    (void)obtain(l, any_size(l), 0, 1);
}

/* Sizes drift from half of those of the trace to one and a half of them, and back at once. */
static void drift(struct loop *l)
{
    const uint64_t part = l->made % l->loop->period * 1024u / l->loop->period;
    const uint64_t size = any_size(l) * (512u + part) / 1024u + 1u;
    if (size <= l->loop->live / 2u) {
        (void)obtain(l, (uint32_t)size, 0, l->phase++ % 2u == 0);
    } else {
        (void)obtain(l, 1u, 0, 0);
    }
}

/* Up to all that may be live, then most of it goes, in any order. */
static void saw(struct loop *l)
{
    const uint32_t size = any_size(l);
    if (l->objects == room_of(l) || !has_room(l, size)) {
        while (l->objects && weight(l) > l->loop->live / 8u) {
            let_any_go(l);
        }
    }
    (void)obtain(l, size, 0, 0);
}

/* One in eight asks for 64 bytes' alignment. */
static void align_some(struct loop *l)
{
    (void)obtain(l, any_size(l), draw(l, 8) == 0 ? 64u : 0, 0);
}

/* Fills the bound with objects of one size, and frees them; then with those of another. */
static void refill(struct loop *l)
{
    const uint32_t size = any_size(l);
    do {
        if (!obtain(l, size, 0, 0)) {
            break;
        }
    } while (l->objects < room_of(l) && has_room(l, size));
    while (l->objects) {
        let_go(l, l->objects - 1u);
    }
}

typedef void turn(struct loop *l);

/* In the order of HW_LOOP_... */
static turn *const turns[] = {shrink, grow, resize_any, change_phase, queue, drift, saw, align_some, refill};

static int is_flat(const struct loop *l)
{
    const uint32_t last = l->point;
    const uint32_t decade = l->loop->decade;
    return last > decade && l->made >= l->loop->enough &&
           l->points.covered[last - 1u].footprint == l->points.covered[last - 1u - decade].footprint;
}

/* Begins with no object; 0 without memory. */
static int loop_open(struct loop *l, const struct hw_loop *loop)
{
    memset(l, 0, sizeof *l);
    l->loop = loop;
    l->random = loop->seed * 2u - 1u;
    l->calls.count = 1;
    l->calls.slots = loop->objects;
    l->calls.op = &l->op;
    l->calls.slot = &l->slot;
    l->calls.size = &l->size;
    l->calls.align = &l->align;
    l->calls.thread = &l->thread;
    l->calls.threads = 2;
    l->live = calloc(loop->objects, sizeof *l->live);
    l->unused = calloc(loop->objects, sizeof *l->unused);
    for (uint32_t slot = 0; l->unused && slot < loop->objects; slot++) {
        l->unused[slot] = slot;
    }
    return l->live && l->unused;
}

static void loop_close(struct loop *l)
{
    free(l->live);
    free(l->unused);
}

int hw_endure(const struct hw_policy *policy, const struct hw_loop *loop, void *memory, size_t bytes,
              const struct hw_points *points, struct hw_endured *endured)
{
    struct loop l;
    int failed = loop_open(&l, loop) ? 0 : HW_NO_MEMORY;
    l.points = *points;
    if (failed == 0) {
        failed = replay_start(&l.replay, policy, &l.calls, memory, bytes, HW_CHECK_NOTHING, &l.metrics);
    }
    if (failed == 0) {
        while (l.point < points->count && !(loop->at_refusal && l.metrics.failed) && !is_flat(&l)) {
            turns[loop->kind](&l);
        }
        endured->calls = l.made;
        endured->failed = l.metrics.failed;
        endured->blocks = l.blocks;
        endured->points = l.point;
        failed = replay_end(&l.replay);
    }
    loop_close(&l);
    return failed;
}

int64_t hw_loop_calls(const struct hw_loop *loop, uint64_t calls, const struct hw_written *written)
{
    struct loop l;
    int64_t made = HW_NO_MEMORY;
    const int opened = loop_open(&l, loop);
    l.written = written;
    l.replay.objects = calloc(loop->objects, sizeof *l.replay.objects);
    if (opened && l.replay.objects) {
        while (l.made < calls) {
            turns[loop->kind](&l);
        }
        made = (int64_t)l.made;
    }
    free(l.replay.objects);
    loop_close(&l);
    return made;
}

#endif
