/* references.h: references and handles in the caller's memory, outside the arena.
 *
 * A heap that moves its objects has to find the reference of a block, on hosts of 64 bits as on targets of 32: so the
 * arena holds the distance of a reference, not its address.
 */
#ifndef HW_REFERENCES_H
#define HW_REFERENCES_H

#include "arena.h"

/* A reference by its distance from the arena's base in steps of a pointer's alignment, so that it has few bits, and the
 * same ones on every machine where it lies in front of the arena; 0 if it is out of range. Bit 0 holds the sign. */
static inline uint32_t reference_number(struct hw_heap *h, void **reference)
{
    const uintptr_t base = (uintptr_t)arena_base(h);
    const uintptr_t at = (uintptr_t)reference;
    const uintptr_t distance = (at < base ? base - at : at - base) / _Alignof(void *);
    if (exceeds(distance, 0x7fffffffu)) {
        return 0;
    }
    return (uint32_t)distance << 1 | (at < base ? 0u : 1u);
}

static inline void **reference_of(struct hw_heap *h, uint32_t number)
{
    const uintptr_t base = (uintptr_t)arena_base(h);
    const uintptr_t distance = (uintptr_t)(number >> 1) * _Alignof(void *);
    return (void **)(number & 1u ? base + distance : base - distance);
}

/* The address to which a reference leads. */
static inline uint32_t load_reference(struct hw_heap *h, uint32_t number)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
    return (uint32_t)arena_offset(h, *reference_of(h, number));
}

static inline void store_reference(struct hw_heap *h, uint32_t number, uint32_t at)
{
#ifdef HW_EXPLORE
    h->writes++;
#endif
    *reference_of(h, number) = arena_pointer(h, at);
}

/* What a reference is part of where blocks have no header. */
static inline struct hw_handle *handle_outside(struct hw_heap *h, uint32_t number)
{
    return (struct hw_handle *)(void *)reference_of(h, number);
}

static inline uint32_t load_outside(struct hw_heap *h, const size_t *word)
{
#ifdef HW_EXPLORE
    h->reads++;
#else
    (void)h;
#endif
    return (uint32_t)*word;
}

static inline void store_outside(struct hw_heap *h, size_t *word, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
#else
    (void)h;
#endif
    *word = (size_t)value;
}

#endif
