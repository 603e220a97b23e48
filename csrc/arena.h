/* arena.h: the one door to the metadata in the arena.
 *
 * All metadata is addressed by its offset from the arena's base, so a 64-bit host lays out exactly the bytes that a
 * 32-bit target would. In exploration builds (HW_EXPLORE) every access is counted; in firmware each is a plain load or
 * store, and the heap is the arena itself.
 *
 * One access moves at most 4 bytes. A field that is not aligned to its width is accessed byte by byte.
 */
#ifndef HW_ARENA_H
#define HW_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "heapwright.h"
#include "policy.h"

#ifdef HW_EXPLORE
struct hw_heap {
    unsigned char *base;
    uint64_t reads;         /* metadata loads */
    uint64_t writes;        /* metadata stores */
    uint64_t moved_bytes;   /* payload bytes copied by realloc */
    uint32_t covered_bytes; /* arena bytes that a block has ever covered */
    uint32_t header_bytes;  /* headers of all blocks, used and free */
};
#endif

/* The application owns the payload bytes around the metadata and types them as it likes. */
#if defined(__GNUC__)
typedef uint16_t __attribute__((__may_alias__)) hw_u16;
typedef uint32_t __attribute__((__may_alias__)) hw_u32;
#else
typedef uint16_t hw_u16;
typedef uint32_t hw_u32;
#endif

/* Where offset 0 lies. */
static inline unsigned char *arena_base(struct hw_heap *h)
{
#ifdef HW_EXPLORE
    return h->base;
#else
    return (unsigned char *)h;
#endif
}

static inline void *arena_pointer(struct hw_heap *h, uint32_t at)
{
    return arena_base(h) + at;
}

static inline uint32_t load1(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
    return *(const unsigned char *)arena_pointer(h, at);
}

static inline uint32_t load2(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
    return *(const hw_u16 *)arena_pointer(h, at);
}

static inline uint32_t load4(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
    return *(const hw_u32 *)arena_pointer(h, at);
}

static inline void store1(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
#endif
    *(unsigned char *)arena_pointer(h, at) = (unsigned char)value;
}

static inline void store2(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
#endif
    *(hw_u16 *)arena_pointer(h, at) = (uint16_t)value;
}

static inline void store4(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
#endif
    *(hw_u32 *)arena_pointer(h, at) = value;
}

static inline uint32_t load_field(const struct hw_field *field, struct hw_heap *h, uint32_t at)
{
    if (field->natural) {
        if (field->bytes == 4) {
            return load4(h, at);
        }
        if (field->bytes == 2) {
            return load2(h, at);
        }
        return load1(h, at);
    }
    uint32_t value = 0;
    for (uint32_t byte = field->bytes; byte-- > 0;) {
        value = value << 8 | load1(h, at + byte);
    }
    return value;
}

static inline void store_field(const struct hw_field *field, struct hw_heap *h, uint32_t at, uint32_t value)
{
    if (field->natural) {
        if (field->bytes == 4) {
            store4(h, at, value);
            return;
        }
        if (field->bytes == 2) {
            store2(h, at, value);
            return;
        }
        store1(h, at, value);
        return;
    }
    for (uint32_t byte = 0; byte < field->bytes; byte++) {
        store1(h, at + byte, value >> (8u * byte));
    }
}

/* A link read from the arena, as the address of a node; 0 is none. */
static inline uint32_t load_link(const struct hw_links *links, struct hw_heap *h, uint32_t at)
{
    return load_field(&links->field, h, at) << links->shift;
}

static inline void store_link(const struct hw_links *links, struct hw_heap *h, uint32_t at, uint32_t node)
{
    store_field(&links->field, h, at, node >> links->shift);
}

/* Copies `bytes` payload bytes, counted as word accesses; the areas do not overlap. */
static inline void copy_payload(struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    unsigned char *target = arena_pointer(h, to);
    const unsigned char *source = arena_pointer(h, from);
    for (uint32_t i = 0; i < bytes; i++) {
        target[i] = source[i];
    }
#ifdef HW_EXPLORE
    h->reads += (bytes + 3u) / 4u;
    h->writes += (bytes + 3u) / 4u;
    h->moved_bytes += bytes;
#endif
}

/* Exploration builds keep account of what no metadata in the arena says. */
static inline void note_covered(struct hw_heap *h, uint32_t bytes)
{
#ifdef HW_EXPLORE
    h->covered_bytes += bytes;
#else
    (void)h;
    (void)bytes;
#endif
}

static inline void note_block_made(struct hw_heap *h, uint32_t header)
{
#ifdef HW_EXPLORE
    h->header_bytes += header;
#else
    (void)h;
    (void)header;
#endif
}

static inline void note_block_gone(struct hw_heap *h, uint32_t header)
{
#ifdef HW_EXPLORE
    h->header_bytes -= header;
#else
    (void)h;
    (void)header;
#endif
}

#endif
