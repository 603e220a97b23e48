/* listener.h: the replay engine listens at the core's door (csrc/replay_hooks.h). It comes before the core. */
#ifndef HW_LISTENER_H
#define HW_LISTENER_H

#ifdef HW_ENGINE_H
#error "the core was included before who listens to it"
#endif
#define HW_ENGINE

#include <stdint.h>

#include "types.h"

/* What the engine keeps with each heap. */
struct hw_engine {
    uint64_t skipped;         /* accesses counted that were not made: passed by the index, or of fill */
    struct hw_shadow *shadow; /* the index; NULL: none */
    uint8_t *stored;          /* pages of the arena, a byte each: 1 if it was stored to; NULL: not tracked */
    int seen;                 /* payloads are checked */
    int copies;               /* payloads are copied, and filled: for that, or as headers move with them */
    uint32_t bounds;          /* loads that looking at all boundaries takes; 0: they are looked at */
    uint8_t *lists;           /* the list of cached blocks of each size, in units, up to the largest; NULL: not known */
    struct hw_margins margins;
    uint64_t chosen_from; /* see same_from() */
    int last_bin;         /* 1: a search ended in the last bin */
};

#endif
