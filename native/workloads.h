/* workloads.h: the queues of a network node in front of one link, for heapwright._traffic.workloads. Host only; read by
 * cffi as it stands. */
#ifndef HW_WORKLOADS_H
#define HW_WORKLOADS_H

#include "types.h"

/* Packets in order of arrival at a link, for the workloads: arrays of `count`. */
struct hw_arrivals {
    uint64_t count;            /* below 2^31 */
    const int64_t *ns;         /* never falling */
    const int64_t *service_ns; /* time each packet takes the link */
    const uint32_t *bytes;     /* what sending it costs its queue's deficit */
    const uint32_t *queue;     /* below `queues` */
    uint32_t queues;
};

/* How the link serves its queues (deficit round robin; with one queue, first in, first out). */
struct hw_link {
    uint64_t quantum; /* bytes a queue may send more each time it is visited, at least 1 */
    uint64_t limit;   /* packets held at most, later ones are dropped; 0 for no limit */
    int restart;      /* whether every packet is looked for from the oldest queue on, or from the queue served last */
    int nodes;        /* whether queues are objects too */
};

/* What happened: arrays with room for 2 events a packet, and 2 more with nodes. */
struct hw_events {
    int64_t *ns;
    uint32_t *object; /* packets from 0, queue nodes from `count` of the arrivals on in the order they are created */
    uint8_t *op;      /* HW_OP_MALLOC: created, HW_OP_FREE: gone */
    uint64_t count;
    uint64_t dropped; /* packets that met full queues */
};

/* Runs all packets through the link until it is idle. A queue is created by the packet that finds none, and goes with
 * its last packet; a packet is gone when it has been sent. Returns 0 or HW_NO_MEMORY. O(count) where
 * the quantum is at least the largest packet; otherwise a packet may take bytes / quantum visits of every queue. */
int hw_serve(const struct hw_arrivals *arrivals, const struct hw_link *link, struct hw_events *events);

#endif
