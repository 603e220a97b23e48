/* same_program.h: one random program, to be compiled for several kinds of heap that must all do the same. */
#ifndef SAME_PROGRAM_H
#define SAME_PROGRAM_H

#include <string.h>

#include "check.h"

enum { CALLS = 4000, OBJECTS = 64 };

struct objects {
    unsigned char *at[OBJECTS];
    struct hw_handle *handles; /* in place of that where objects move */
    uint32_t random;
};

static inline uint32_t next_random(struct objects *o)
{
    o->random = o->random * 1664525u + 1013904223u;
    return o->random >> 8;
}

static inline size_t next_size(struct objects *o)
{
    const uint32_t kind = next_random(o) % 16u;
    if (kind == 0) {
        return HW_MAX_REQUEST + next_random(o) % 3u;
    }
    return kind < 6u ? 16u + kind * 20u : next_random(o) % (kind < 14u ? 120u : 3000u);
}

/* One call on one object: what it returned, as an offset from the arena; UINT32_MAX for NULL. */
static inline uint32_t call(const struct hw_policy *policy, struct hw_heap *heap, struct objects *o)
{
    unsigned char **object = &o->at[next_random(o) % OBJECTS];
    const uint32_t kind = next_random(o) % 8u;
    unsigned char *at = NULL;
    if (*object && kind < 6u) {
        hw_free(policy, heap, *object);
        *object = NULL;
        return 0;
    }
    if (*object) {
        at = hw_realloc(policy, heap, *object, next_size(o));
        *object = at ? at : *object;
    } else if (kind == 0) {
        *object = at = hw_aligned_alloc(policy, heap, (size_t)1 << next_random(o) % 8u, next_size(o));
    } else if (kind == 1) {
        *object = at = hw_calloc(policy, heap, next_random(o) % 5u, next_size(o));
    } else {
        *object = at = hw_malloc(policy, heap, next_size(o));
    }
    if (at) {
        memset(at, (int)(next_random(o) & 0xffu), hw_usable_size(policy, heap, at));
    }
    return at ? (uint32_t)(at - arena_base(heap)) : UINT32_MAX;
}

/* The same on an object that moves. */
static inline uint32_t call_moving(const struct hw_policy *policy, struct hw_heap *heap, struct objects *o)
{
    void **reference = &o->handles[next_random(o) % OBJECTS].pointer;
    const uint32_t kind = next_random(o) % 8u;
    if (*reference && kind < 6u) {
        hw_handle_free(policy, heap, reference);
        return 0;
    }
    const size_t size = next_size(o);
    if (!(*reference ? hw_handle_realloc(policy, heap, reference, size)
                     : hw_handle_alloc(policy, heap, reference, size))) {
        return UINT32_MAX;
    }
    unsigned char *at = hw_handle_pointer(policy, heap, reference);
    memset(at, (int)(next_random(o) & 0xffu), hw_handle_usable_size(policy, heap, reference));
    return (uint32_t)(at - arena_base(heap));
}

/* Runs the program; trail[i] becomes what call i returned. Returns the peak that the statistics report. `handles`, all
 * zero and always as far from the arena, are there for objects that move. */
static inline uint32_t run_program(const struct hw_policy *policy, struct hw_heap *heap, struct hw_handle *handles,
                                   uint32_t *trail)
{
    struct objects objects;
    memset(&objects, 0, sizeof objects);
    objects.handles = handles;
    for (uint32_t i = 0; i < CALLS; i++) {
        if (policy->pools[0].kind == HW_COMPACT) {
            trail[i] = call_moving(policy, heap, &objects);
        } else {
            trail[i] = call(policy, heap, &objects);
        }
    }
    return hw_statistics(policy, heap).peak;
}

#endif
