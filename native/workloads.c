/* workloads.c: the queues of a network node in front of one link, for heapwright.traffic.workloads. Host only. */
#include <stdlib.h>

#include "native.h"

#define NONE UINT32_MAX

struct queue {
    uint32_t head, tail; /* packets waiting; the head may be on the link */
    uint32_t next, prev; /* queues with packets, in the order they were created */
    uint32_t node;       /* the object that stands for the queue while it exists */
    uint64_t deficit;    /* bytes it may still send (Shreedhar and Varghese 1995) */
};

struct server {
    const struct hw_arrivals *arrivals;
    struct hw_link link;
    struct queue *queues;
    uint32_t *behind; /* the packet behind each packet in its queue */
    uint32_t first, last;
    uint32_t current; /* queue being served */
    int fresh;        /* whether the current queue still has to be given its quantum */
    uint32_t sending; /* queue whose head is on the link, or NONE */
    int64_t finish;
    uint64_t held; /* packets in all queues */
    uint32_t nodes;
    struct hw_events *events;
};

static void emit(struct server *server, int64_t ns, uint32_t object, uint8_t op)
{
    struct hw_events *events = server->events;
    events->ns[events->count] = ns;
    events->object[events->count] = object;
    events->op[events->count] = op;
    events->count++;
}

static void open_queue(struct server *server, uint32_t number, int64_t now)
{
    struct queue *queue = &server->queues[number];
    queue->node = (uint32_t)server->arrivals->count + server->nodes++;
    queue->deficit = 0;
    queue->prev = server->last;
    queue->next = NONE;
    *(server->last == NONE ? &server->first : &server->queues[server->last].next) = number;
    server->last = number;
    if (server->link.nodes)
        emit(server, now, queue->node, HW_OP_MALLOC);
}

static void close_queue(struct server *server, uint32_t number, int64_t now)
{
    struct queue *queue = &server->queues[number];
    if (server->current == number) {
        server->current = queue->next;
        server->fresh = 1;
    }
    *(queue->prev == NONE ? &server->first : &server->queues[queue->prev].next) = queue->next;
    *(queue->next == NONE ? &server->last : &server->queues[queue->next].prev) = queue->prev;
    if (server->link.nodes)
        emit(server, now, queue->node, HW_OP_FREE);
}

/* Puts the next packet on the link; there is at least one. A queue that may not send yet is passed over and has one
 * more quantum the next time, so this ends. */
static void choose(struct server *server, int64_t now)
{
    if (server->link.restart || server->current == NONE) {
        server->current = server->first;
        server->fresh = 1;
    }
    for (;;) {
        struct queue *queue = &server->queues[server->current];
        if (server->fresh)
            queue->deficit += server->link.quantum;
        uint32_t bytes = server->arrivals->bytes[queue->head];
        if (bytes <= queue->deficit) {
            queue->deficit -= bytes;
            server->fresh = 0;
            server->sending = server->current;
            server->finish = now + server->arrivals->service_ns[queue->head];
            return;
        }
        server->current = queue->next == NONE ? server->first : queue->next;
        server->fresh = 1;
    }
}

static void arrive(struct server *server, uint32_t packet)
{
    uint32_t number = server->arrivals->queue[packet];
    int64_t now = server->arrivals->ns[packet];
    struct queue *queue = &server->queues[number];
    if (server->link.limit && server->held >= server->link.limit) {
        server->events->dropped++;
        return;
    }
    if (queue->head == NONE)
        open_queue(server, number, now);
    *(queue->head == NONE ? &queue->head : &server->behind[queue->tail]) = packet;
    queue->tail = packet;
    server->behind[packet] = NONE;
    server->held++;
    emit(server, now, packet, HW_OP_MALLOC);
    if (server->sending == NONE)
        choose(server, now);
}

static void sent(struct server *server)
{
    uint32_t number = server->sending;
    int64_t now = server->finish;
    struct queue *queue = &server->queues[number];
    uint32_t packet = queue->head;
    queue->head = server->behind[packet];
    server->held--;
    server->sending = NONE;
    emit(server, now, packet, HW_OP_FREE);
    if (queue->head == NONE)
        close_queue(server, number, now);
    if (server->held)
        choose(server, now);
}

int hw_serve(const struct hw_arrivals *arrivals, const struct hw_link *link, struct hw_events *events)
{
    struct server server = {.arrivals = arrivals, .link = *link, .events = events};
    server.first = server.last = server.current = server.sending = NONE;
    server.queues = malloc(arrivals->queues * sizeof *server.queues);
    server.behind = malloc(arrivals->count * sizeof *server.behind);
    events->count = events->dropped = 0;
    if (server.queues == NULL || server.behind == NULL) {
        free(server.queues);
        free(server.behind);
        return HW_NO_MEMORY;
    }
    for (uint32_t i = 0; i < arrivals->queues; i++)
        server.queues[i].head = NONE;
    uint64_t next = 0;
    while (next < arrivals->count || server.sending != NONE) {
        /* At equal times the packet leaves before the next one comes. */
        if (server.sending != NONE && (next == arrivals->count || server.finish <= arrivals->ns[next]))
            sent(&server);
        else
            arrive(&server, (uint32_t)next++);
    }
    free(server.queues);
    free(server.behind);
    return 0;
}
