/* statistics.h: sums over the blocks of all pools. */
#ifndef HW_STATISTICS_H
#define HW_STATISTICS_H

#include "heapwright.h"

/* Adds what one request could have to the statistics. */
static inline void raise_largest_free(struct hw_statistics *told, uint32_t payload)
{
    if (payload > told->largest_free) {
        told->largest_free = payload;
    }
}

/* Moves blocks, taken for used ones before, to those that are not. */
static inline void count_listed(struct hw_statistics *told, uint32_t blocks, uint32_t size)
{
    told->used -= blocks * size;
    told->used_blocks -= blocks;
    told->unused += blocks * size;
}

#endif
