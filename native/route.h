/* route.h: a program with several heaps, each in memory of its own: which heap each call goes to.
 *
 * A request goes to the heaps that take its size, in order, until one serves it. An object is resized by its heap; if
 * that fails it moves to the first other heap that serves the new size. It is freed by its heap. The calls of each heap
 * are recorded, so that it can be replayed by itself.
 */
#ifndef HW_ROUTE_H
#define HW_ROUTE_H

#include "accounts.h"

/* One of the heaps, with the calls that it has got. */
struct routed {
    struct replay replay;
    struct hw_calls calls;
    struct hw_metrics metrics;
    struct hw_memory *memory;
    const uint64_t *now; /* the program's call */
};

struct route {
    struct routed *heaps;
    uint32_t count;
    const struct hw_calls *calls;
    uint64_t now;    /* the call under way */
    uint32_t *owner; /* of each object, from 1; 0 where it is not alive */
    struct accounts accounts;
    struct hw_metrics *metrics;
};

/* Lets a heap do one call, and writes it down; returns the metadata accesses. */
static uint64_t ask(struct routed *heap, uint8_t op, uint32_t slot, uint32_t size, uint32_t align)
{
    struct hw_memory *m = heap->memory;
    const uint64_t k = m->count++;
    m->op[k] = op;
    m->slot[k] = slot;
    m->size[k] = size;
    m->align[k] = align;
    m->call[k] = *heap->now;
    return replay_call(&heap->replay, k);
}

/* Asks one heap for an object, if it takes the size; whether it served it. */
static int serves(struct routed *heap, uint32_t slot, uint32_t size, uint32_t align, uint64_t *cost)
{
    const uint32_t n = size ? size : 1u;
    if (n < heap->memory->least || n > heap->memory->most) {
        return 0;
    }
    *cost += ask(heap, HW_OP_MALLOC, slot, size, align);
    if (heap->replay.objects[slot].at) {
        return 1;
    }
    *cost += ask(heap, HW_OP_FREE, slot, 0, 0); /* of nothing: so that its calls are a trace */
    return 0;
}

/* Finds an object a place in the heaps but one (0: in all, else from 1); returns whose it is, 0 where all refuse. */
static uint32_t place(struct route *r, uint32_t but, uint32_t slot, uint32_t size, uint32_t align, uint64_t *cost)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (i + 1u != but && serves(&r->heaps[i], slot, size, align, cost)) {
            return i + 1u;
        }
    }
    return 0;
}

/* Whether the object could be resized, where it is or by a move to another heap. */
static int resize_routed(struct route *r, uint32_t slot, uint32_t size, uint64_t *cost)
{
    const uint32_t owner = r->owner[slot];
    struct routed *heap = &r->heaps[owner - 1u];
    const uint64_t failed = heap->metrics.failed;
    *cost += ask(heap, HW_OP_REALLOC, slot, size, 0);
    if (heap->metrics.failed == failed) {
        return 1;
    }
    const struct object *object = &heap->replay.objects[slot];
    const uint32_t had = heap->memory->policy->checks == HW_CHECKS_FULL ? object->size : object->capacity;
    const uint32_t other = place(r, owner, slot, size, 0, cost);
    if (other == 0) {
        return 0;
    }
    *cost += ask(heap, HW_OP_FREE, slot, 0, 0);
    r->metrics->moved += had < size ? had : size;
    r->owner[slot] = other;
    return 1;
}

/* Performs a call of the program; returns the metadata accesses. */
static uint64_t route_call(struct route *r, uint64_t i)
{
    const uint8_t op = r->calls->op[i];
    const uint32_t slot = r->calls->slot[i];
    const uint32_t size = r->calls->size[i];
    uint64_t cost = 0;
    if (op == HW_OP_FREE) {
        if (r->owner[slot]) {
            cost = ask(&r->heaps[r->owner[slot] - 1u], HW_OP_FREE, slot, 0, 0);
            r->owner[slot] = 0;
        }
        return cost;
    }
    int served = 0;
    if (op != HW_OP_REALLOC) {
        r->owner[slot] = place(r, 0, slot, size, r->calls->align ? r->calls->align[i] : 0, &cost);
        served = r->owner[slot] != 0;
    } else if (r->owner[slot] == 0) {
        return 0;
    } else {
        served = resize_routed(r, slot, size, &cost);
    }
    r->metrics->requested_bytes += size;
    r->metrics->admitted_bytes += served ? size : 0;
    r->metrics->failed += !served;
    return cost;
}

/* Notes what the call i has come to: live bytes, and where its object lies. */
static void note_call(struct route *r, uint64_t i, uint64_t cost, uint32_t *where, uint32_t *at)
{
    uint64_t requested = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        requested += r->heaps[k].replay.requested;
    }
    if (requested > r->metrics->requested_peak) {
        r->metrics->requested_peak = requested;
    }
    const uint32_t slot = r->calls->slot[i];
    where[i] = r->owner[slot];
    at[i] = where[i] ? r->heaps[where[i] - 1u].replay.objects[slot].at : 0;
    account_cost(&r->accounts, r->calls->op[i], cost);
    const struct replay all = {.calls = r->calls, .requested = requested};
    account_time(&r->accounts, &all, i);
}

/* Begins the next of the heaps. Returns 0, HW_NO_MEMORY or HW_NO_ROOM. */
static int route_start(struct route *r, struct hw_memory *memory)
{
    struct routed *heap = &r->heaps[r->count];
    const struct hw_calls *calls = r->calls;
    heap->memory = memory;
    heap->now = &r->now;
    memory->count = 0;
    heap->calls.count = 2u * calls->count;
    heap->calls.slots = calls->slots;
    heap->calls.op = memory->op;
    heap->calls.slot = memory->slot;
    heap->calls.size = memory->size;
    heap->calls.align = memory->align;
    heap->calls.threads = 1;
    return replay_start(&heap->replay, memory->policy, &heap->calls, memory->memory, memory->bytes, HW_CHECK_NOTHING,
                        &heap->metrics);
}

/* Plays all calls on heaps that have begun, and ends them. Returns 0 or HW_NO_MEMORY. */
static int route_all(struct route *r, uint32_t *where, uint32_t *at)
{
    struct hw_metrics *m = r->metrics;
    memset(m, 0, sizeof *m);
    for (r->now = 0; r->now < r->calls->count; r->now++) {
        note_call(r, r->now, route_call(r, r->now), where, at);
    }
    tell_accounts(&r->accounts, m);
    int lost = 0;
    for (uint32_t k = 0; k < r->count; k++) {
        lost |= replay_end(&r->heaps[k].replay) != 0;
        m->reads += r->heaps[k].metrics.reads;
        m->writes += r->heaps[k].metrics.writes;
        m->moved += r->heaps[k].metrics.moved;
    }
    return lost ? HW_NO_MEMORY : 0;
}

#endif
