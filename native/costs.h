/* costs.h: how often each cost of a call occurred. */
#ifndef HW_COSTS_H
#define HW_COSTS_H

#include <stdint.h>
#include <stdlib.h>
#include "lanes.h"

enum { CHEAP = 4096 };

/* How often each cost occurred among `count` calls; of those beyond the table the largest are kept, a thousandth of all
 * calls and one more: a heap whose root is the least of them. */
struct costs {
    uint32_t often[CHEAP];
    uint32_t *dear;
    uint64_t dear_count;
    uint64_t dear_room;
    uint64_t count;
    uint64_t max;
};

static int costs_open(struct costs *costs, uint64_t calls)
{
    costs->count = calls;
    costs->dear_room = calls / 1000u + 1u;
    costs->dear = malloc(costs->dear_room * sizeof *costs->dear);
    return costs->dear != NULL;
}

/* Puts a cost in the place of the least one that is kept. */
static void replace_least(struct costs *costs, uint32_t cost)
{
    uint32_t *dear = costs->dear;
    uint64_t i = 0;
    for (;;) {
        uint64_t child = 2u * i + 1u;
        child += child + 1u < costs->dear_count && dear[child + 1u] < dear[child];
        if (child >= costs->dear_count || dear[child] >= cost) {
            break;
        }
        dear[i] = dear[child];
        i = child;
    }
    dear[i] = cost;
}

static HW_NOINLINE void keep_dear(struct costs *costs, uint32_t cost)
{
    uint32_t *dear = costs->dear;
    if (costs->dear_count == costs->dear_room) {
        if (cost > dear[0]) {
            replace_least(costs, cost);
        }
        return;
    }
    uint64_t i = costs->dear_count++;
    for (; i > 0 && dear[(i - 1u) / 2u] > cost; i = (i - 1u) / 2u) {
        dear[i] = dear[(i - 1u) / 2u];
    }
    dear[i] = cost;
}

static inline void costs_add(struct costs *costs, uint64_t cost)
{
    if (cost > costs->max) {
        costs->max = cost;
    }
    if (cost < CHEAP) {
        costs->often[cost]++;
    } else {
        keep_dear(costs, cost > UINT32_MAX ? UINT32_MAX : (uint32_t)cost);
    }
}

/* The smallest cost that at least 99.9 % of the calls do not exceed. */
static uint64_t costs_p999(const struct costs *costs)
{
    uint64_t left = costs->count - costs->count / 1000u; /* ceil(0.999 count) calls are at or below it */
    if (costs->count == 0) {
        return 0;
    }
    for (uint32_t cost = 0; cost < CHEAP; cost++) {
        if (costs->often[cost] >= left) {
            return cost;
        }
        left -= costs->often[cost];
    }
    return costs->dear[0]; /* a thousandth of the calls cost more, or as much */
}

#endif
