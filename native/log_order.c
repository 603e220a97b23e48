/* Events that do not yet say what became of a block: out of order, of kinds of blocks, or calls and returns. */
#include "logs.h"

static int precedes(const struct hw_log_order *const order, const uint64_t a, const uint64_t b)
{
    const int64_t first = order->heap[a].now_ns, second = order->heap[b].now_ns;
    return first < second || (first == second && order->place[a] < order->place[b]);
}

static void swap(struct hw_log_order *const order, const uint64_t a, const uint64_t b)
{
    const struct hw_log_event event = order->heap[a];
    const uint64_t place = order->place[a];
    order->heap[a] = order->heap[b];
    order->place[a] = order->place[b];
    order->heap[b] = event;
    order->place[b] = place;
}

static void sift_up(struct hw_log_order *const order, uint64_t at)
{
    while (at != 0 && precedes(order, at, (at - 1) / 2)) {
        swap(order, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static struct hw_log_event earliest(struct hw_log_order *const order)
{
    const struct hw_log_event result = order->heap[0];
    swap(order, 0, --order->held);
    for (uint64_t at = 0, lower = 1; lower < order->held; lower = 2 * at + 1) {
        lower += lower + 1 < order->held && precedes(order, lower + 1, lower);
        if (!precedes(order, lower, at)) {
            break;
        }
        swap(order, at, lower);
        at = lower;
    }
    return result;
}

uint32_t hw_log_order(struct hw_log_order *const order, const struct hw_log_event *const events, const uint32_t count,
                      struct hw_log_event *const ordered)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < count; i++) {
        order->late += events[i].now_ns < order->latest;
        order->heap[order->held] = events[i];
        order->place[order->held] = order->count++;
        sift_up(order, order->held++);
        if (order->held > order->room) {
            ordered[written] = earliest(order);
            order->latest = ordered[written++].now_ns;
        }
    }
    return written;
}

uint32_t hw_log_order_end(struct hw_log_order *const order, const uint32_t most, struct hw_log_event *const ordered)
{
    uint32_t written = 0;
    while (order->held != 0 && written < most) {
        ordered[written++] = earliest(order);
    }
    return written;
}

static void add_block(struct hw_log_newest *const newest, struct hw_log_event *const event)
{
    const uint64_t kind = event->address;
    newest->born++;
    if (kind >= newest->kinds) {
        event->kind = HW_LOG_SKIPPED;
        return;
    }
    const uint32_t slot = newest->free_slot != 0 ? newest->free_slot : ++newest->slots;
    struct hw_log_slot *const block = &newest->slot[slot];
    newest->free_slot = newest->free_slot != 0 ? block->below : 0;
    block->born = newest->born;
    block->below = newest->kind[kind].newest;
    newest->kind[kind].newest = slot;
    event->kind = HW_LOG_MALLOC;
    event->address = newest->born;
    event->size = newest->kind[kind].size;
}

static void take_block(struct hw_log_newest *const newest, struct hw_log_event *const event)
{
    const uint64_t kind = event->address;
    if (kind >= newest->kinds || newest->kind[kind].newest == 0) {
        event->kind = HW_LOG_SKIPPED;
        return;
    }
    const uint32_t slot = newest->kind[kind].newest;
    struct hw_log_slot *const block = &newest->slot[slot];
    newest->kind[kind].newest = block->below;
    block->below = newest->free_slot;
    newest->free_slot = slot;
    event->kind = HW_LOG_FREE;
    event->address = block->born;
}

void hw_log_newest(struct hw_log_newest *const newest, struct hw_log_event *const events, const uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct hw_log_event *const event = &events[i];
        if (event->kind == HW_LOG_KIND) {
            newest->kind[newest->kinds].size = event->size;
            newest->kind[newest->kinds++].newest = 0;
            event->kind = HW_LOG_NOTHING;
        } else if (event->kind == HW_LOG_OF_KIND) {
            add_block(newest, event);
        } else if (event->kind == HW_LOG_NEWEST) {
            take_block(newest, event);
        }
    }
}

static struct hw_log_event *put(struct hw_log_event *const to, const struct hw_log_event *const event,
                                const uint32_t kind)
{
    *to = *event;
    to->kind = kind;
    return to + 1;
}

/* Forgets a call whose return was lost. */
static struct hw_log_event *lose(struct hw_log_call *const call, const struct hw_log_event *const event,
                                 struct hw_log_event *to)
{
    if (call->function == HW_LOG_NO_FUNCTION) {
        return to;
    }
    if (call->function == HW_LOG_REALLOC) {
        to = put(to, event, HW_LOG_CANCEL);
    }
    const struct hw_log_call none = {0};
    *call = none;
    return put(to, event, HW_LOG_SKIPPED);
}

static struct hw_log_event *called(struct hw_log_call *const call, const struct hw_log_event *const event,
                                   struct hw_log_event *to)
{
    const uint32_t function = (uint32_t)event->old;
    if (function == HW_LOG_MEMALIGN && call->function == function && call->align == event->align &&
        call->size == event->size) {
        return to; /* two names of one function, on which both probes are */
    }
    if (call->function != HW_LOG_NO_FUNCTION && function != call->function && call->seen < HW_LOG_MOST_NESTED) {
        call->seen++;
        if (function != HW_LOG_FREES) {
            call->nested[call->depth++] = function;
        }
        return to;
    }
    to = lose(call, event, to);
    if (function == HW_LOG_FREES) {
        return put(to, event, HW_LOG_FREE);
    }
    call->function = function;
    call->size = event->size;
    call->align = event->align;
    return function == HW_LOG_REALLOC ? put(to, event, HW_LOG_BEGIN) : to;
}

static struct hw_log_event *returned(struct hw_log_call *const call, const struct hw_log_event *const event,
                                     struct hw_log_event *const to)
{
    const uint32_t function = (uint32_t)event->old;
    if (call->depth != 0 && call->nested[call->depth - 1] == function) {
        call->depth--;
        return to;
    }
    if (call->function != function) {
        return function == HW_LOG_MEMALIGN ? to : put(to, event, HW_LOG_SKIPPED);
    }
    const uint32_t kind = function == HW_LOG_REALLOC     ? HW_LOG_END
                          : function == HW_LOG_CALLOC_OF ? HW_LOG_CALLOC
                                                         : HW_LOG_MALLOC;
    (void)put(to, event, kind);
    to->size = call->size;
    to->align = call->align;
    const struct hw_log_call none = {0};
    *call = none;
    return to + 1;
}

uint32_t hw_log_calls(struct hw_log_call *const calls, const uint32_t *const thread,
                      const struct hw_log_event *const events, const uint32_t count, struct hw_log_event *const made)
{
    struct hw_log_event *to = made;
    for (uint32_t i = 0; i < count; i++) {
        struct hw_log_call *const call = &calls[thread[i]];
        if (events[i].kind == HW_LOG_CALL) {
            to = called(call, &events[i], to);
        } else if (events[i].kind == HW_LOG_RETURN) {
            to = returned(call, &events[i], to);
        } else {
            to = put(to, &events[i], events[i].kind);
        }
    }
    return (uint32_t)(to - made);
}
