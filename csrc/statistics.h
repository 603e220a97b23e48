/* statistics.h: sums over the blocks of all pools. */
#ifndef HW_STATISTICS_H
#define HW_STATISTICS_H

#include "heapwright.h"

/* Moves blocks, taken for used ones before, to those that are not. */
static inline void count_listed(struct hw_statistics *stats, uint32_t blocks, uint32_t size)
{
    stats->used -= blocks * size;
    stats->used_blocks -= blocks;
    stats->unused += blocks * size;
}

#endif
