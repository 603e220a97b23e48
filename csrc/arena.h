/* arena.h: the one door to the metadata in the arena.
 *
 * All metadata is addressed by its offset from the arena's base, so a 64-bit host lays out exactly the bytes that a
 * 32-bit target would. In exploration builds (HW_EXPLORE) every access is counted; in firmware each is a plain load or
 * store, and the heap is the arena itself.
 *
 * Where threads read headers without a lock (HW_SHARED), each is one that no other can tear: what a used block's header
 * says of its size stays, while another thread marks in it that the block before is free.
 *
 * One access moves at most 4 bytes. A field that is not aligned to its width is accessed byte by byte.
 */
#ifndef HW_ARENA_H
#define HW_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "replay_hooks.h"
#include "heapwright.h"

/* Hot and cold paths of malloc and free. Generated code forces the hot ones inline into its entry points and keeps the
 * cold ones out of line, so that the cost of the common call does not depend on a compiler's heuristics; the core
 * itself leaves both to the compiler. */
#define HW_HOT static inline
#define HW_COLD static inline

#ifdef HW_EXPLORE
struct hw_heap {
    unsigned char *base;
    uint64_t reads;         /* metadata loads */
    uint64_t writes;        /* metadata stores */
    uint64_t moved_bytes;   /* bytes copied by realloc, and where objects move */
    uint32_t covered_bytes; /* arena bytes that a block has ever covered; the peak if two ends grow toward each other */
    uint32_t returned_bytes; /* of them, those that went back to the memory between such ends and count again */
    uint32_t header_bytes;   /* headers of all blocks, used and free */
    struct hw_engine engine;
    struct hw_thread *thread; /* what the calling thread keeps */
};
#endif

/* The application owns the payload bytes around the metadata and types them as it likes. */
#if defined(__GNUC__)
typedef uint16_t __attribute__((__may_alias__)) hw_u16;
typedef uint32_t __attribute__((__may_alias__)) hw_u32;
typedef uint64_t __attribute__((__may_alias__)) hw_u64;
#else
typedef uint16_t hw_u16;
typedef uint32_t hw_u32;
typedef uint64_t hw_u64;
#endif

/* Compares in a function of its own: a size_t of 16 bits never exceeds some bounds, and compilers warn of that. */
static inline int exceeds(size_t bytes, uint32_t most)
{
    return bytes > most;
}

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

/* Bytes from the arena's base to a pointer; of one below it a number beyond all addresses. */
static inline uintptr_t arena_offset(struct hw_heap *h, const void *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)arena_base(h);
}

static inline uint32_t load1(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
#ifdef HW_SHARED
    return __atomic_load_n(arena_base(h) + at, __ATOMIC_RELAXED);
#else
    return arena_base(h)[at];
#endif
}

static inline uint32_t load2(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
#ifdef HW_SHARED
    return __atomic_load_n((const hw_u16 *)(const void *)(arena_base(h) + at), __ATOMIC_RELAXED);
#else
    return *(const hw_u16 *)(const void *)(arena_base(h) + at);
#endif
}

static inline uint32_t load4(struct hw_heap *h, uint32_t at)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
#ifdef HW_SHARED
    return __atomic_load_n((const hw_u32 *)(const void *)(arena_base(h) + at), __ATOMIC_RELAXED);
#else
    return *(const hw_u32 *)(const void *)(arena_base(h) + at);
#endif
}

/* The word a constant number of bytes behind the one at `at`: the address is computed once for both. */
static inline uint32_t load4_behind(struct hw_heap *h, uint32_t at, const uint32_t bytes)
{
#ifdef HW_EXPLORE
    h->reads++;
#endif
#ifdef HW_SHARED
    return __atomic_load_n((const hw_u32 *)(const void *)(arena_base(h) + (size_t)at + bytes), __ATOMIC_RELAXED);
#else
    return *(const hw_u32 *)(const void *)(arena_base(h) + (size_t)at + bytes);
#endif
}

static inline void store1(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
    note_stored(h, at);
#endif
#ifdef HW_SHARED
    __atomic_store_n(arena_base(h) + at, (unsigned char)value, __ATOMIC_RELAXED);
#else
    arena_base(h)[at] = (unsigned char)value;
#endif
}

static inline void store2(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
    note_stored(h, at);
#endif
#ifdef HW_SHARED
    __atomic_store_n((hw_u16 *)(void *)(arena_base(h) + at), (uint16_t)value, __ATOMIC_RELAXED);
#else
    *(hw_u16 *)(void *)(arena_base(h) + at) = (uint16_t)value;
#endif
}

static inline void store4(struct hw_heap *h, uint32_t at, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
    note_stored(h, at);
#endif
#ifdef HW_SHARED
    __atomic_store_n((hw_u32 *)(void *)(arena_base(h) + at), value, __ATOMIC_RELAXED);
#else
    *(hw_u32 *)(void *)(arena_base(h) + at) = value;
#endif
}

static inline void store4_behind(struct hw_heap *h, uint32_t at, const uint32_t bytes, uint32_t value)
{
#ifdef HW_EXPLORE
    h->writes++;
    note_stored(h, at + bytes);
#endif
#ifdef HW_SHARED
    __atomic_store_n((hw_u32 *)(void *)(arena_base(h) + (size_t)at + bytes), value, __ATOMIC_RELAXED);
#else
    *(hw_u32 *)(void *)(arena_base(h) + (size_t)at + bytes) = value;
#endif
}

#ifdef HW_SHARED
/* A store that no other thread sees before the stores that precede it (release order). */
static inline void store4_last(struct hw_heap *h, uint32_t at, uint32_t value)
{
    __atomic_store_n((hw_u32 *)(void *)(arena_base(h) + at), value, __ATOMIC_RELEASE);
}
#else
static inline void store4_last(struct hw_heap *h, uint32_t at, uint32_t value)
{
    store4(h, at, value);
}
#endif

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

/* An invariant that no program can violate as long as it writes only to its own objects. Generated code lets the user
 * define the macro; by default the condition, which has no side effects, is not evaluated. */
#ifndef HW_ASSERT
#define HW_ASSERT(condition) ((void)0)
#endif

/* Reports an invalid pointer or damaged metadata to the platform, after it was counted: generated code lets the user
 * define the macro. */
#ifndef HW_MISUSED
#define HW_MISUSED(heap) ((void)(heap))
#endif

/* A random number, a word of a heap's keys: generated code lets the user define it. */
#ifndef HW_SECRET
#define HW_SECRET(heap) ((void)(heap), UINT32_C(0x5bd1e995))
#endif

/* Counts an invalid pointer or damaged metadata, and notifies the platform. */
HW_COLD void count_misuse(const uint32_t misused_at, struct hw_heap *h)
{
    store4(h, misused_at, load4(h, misused_at) + 1u);
    HW_MISUSED(h);
}

/* A word that only init() writes: compilers keep it in a register, so no access is counted. */
static inline uint32_t peek4(struct hw_heap *h, uint32_t at)
{
    return *(const hw_u32 *)(const void *)(arena_base(h) + at);
}

/* Mixes a number with four words of key, in rounds of multiplication and shifts, so that the mask of one address has no
 * simple relation to the mask of another. This is no cipher: it resists an attacker who reads a few words, not one who
 * reads many and computes for hours. */
static inline uint32_t mixed(struct hw_heap *h, uint32_t keys_at, uint32_t number)
{
    uint32_t x = (number ^ peek4(h, keys_at)) * 0x85ebca6bu;
    x = ((x ^ x >> 15) + peek4(h, keys_at + 4u)) * 0xc2b2ae35u;
    x = ((x ^ x >> 13) ^ peek4(h, keys_at + 8u)) * 0x9e3779b1u;
    return (x ^ x >> 16) + peek4(h, keys_at + 12u);
}

/* Adds a word to a seal: two words never give the same one. */
static inline uint32_t with_bound(uint32_t sum, uint32_t word)
{
    return ((sum ^ word) + 0x6a09e667u) * 0x9e3779b1u;
}

/* The mask of the field at `at`, cut to the field's width. */
HW_HOT uint32_t mask_at(const struct hw_links *links, const struct hw_field *field, struct hw_heap *h, uint32_t at)
{
    if (links->keyed == HW_KEYS_MIXED) {
        return mixed(h, links->keys_at, at) >> (32u - 8u * field->bytes);
    }
    if (links->keyed == HW_KEYS_PLAIN) {
        return (peek4(h, links->keys_at) ^ at) & UINT32_MAX >> (32u - 8u * field->bytes);
    }
    return 0;
}

/* A number of a header or tag, masked if there are keys. It is multiplied as well, so that overwriting one byte changes
 * all bytes above it and yields an impossible size. */
HW_HOT uint32_t load_masked(const struct hw_links *links, const struct hw_field *field, struct hw_heap *h, uint32_t at)
{
    if (links->keyed) {
        const uint32_t all = UINT32_MAX >> (32u - 8u * field->bytes);
        return ((load_field(field, h, at) * 0x0e8b2f51u) & all) ^ mask_at(links, field, h, at);
    }
    return load_field(field, h, at);
}

HW_HOT void store_masked(const struct hw_links *links, const struct hw_field *field, struct hw_heap *h, uint32_t at,
                         uint32_t value)
{
    const uint32_t masked = value ^ mask_at(links, field, h, at);
    store_field(field, h, at, links->keyed ? masked * 0x9e3779b1u : masked);
}

/* A link as it is stored in the arena, unchecked: the address of a node unless it was damaged; 0 if there is none. */
static inline uint32_t raw_link(const struct hw_links *links, struct hw_heap *h, uint32_t at)
{
    return (links->hardened ? load_masked(links, &links->field, h, at) : load_field(&links->field, h, at))
           << links->shift;
}

/* Whether a node can be there. */
static inline int is_inside(const struct hw_links *links, struct hw_heap *h, uint32_t node)
{
    return node <= peek4(h, links->end_at) - (links->pairs ? 2u : 1u) * links->field.bytes;
}

/* A link read from the arena, as the address of a node; 0 is none, or one that leads elsewhere, which is counted. */
static inline uint32_t load_link(const struct hw_links *links, struct hw_heap *h, uint32_t at)
{
    const uint32_t node = raw_link(links, h, at);
    if (links->hardened && node && !is_inside(links, h, node)) {
        count_misuse(links->misused_at, h);
        return 0;
    }
    return node;
}

static inline void store_link(const struct hw_links *links, struct hw_heap *h, uint32_t at, uint32_t node)
{
    if (links->hardened) {
        store_masked(links, &links->field, h, at, node >> links->shift);
        return;
    }
    store_field(&links->field, h, at, node >> links->shift);
}

/* Whether both links of a node lead to words that lead back to it, where a list is linked both ways. */
HW_COLD int is_listed(const struct hw_links *links, struct hw_heap *h, uint32_t node)
{
    const uint32_t next = raw_link(links, h, node);
    const uint32_t before = raw_link(links, h, node + links->field.bytes);
    return is_inside(links, h, before) && is_inside(links, h, next) && raw_link(links, h, before) == node &&
           (next == 0 || raw_link(links, h, next + links->field.bytes) == node);
}

/* A copy counts as accesses of whole words. */
static inline void note_moved(struct hw_heap *h, uint32_t bytes)
{
#ifdef HW_EXPLORE
    h->reads += (bytes + 3u) / 4u;
    h->writes += (bytes + 3u) / 4u;
    h->moved_bytes += bytes;
#else
    (void)h;
    (void)bytes;
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

/* The same of memory between two ends that grow toward each other, some of which may have been given back. */
static inline void note_shared_covered(struct hw_heap *h, uint32_t bytes)
{
#ifdef HW_EXPLORE
    const uint32_t again = bytes < h->returned_bytes ? bytes : h->returned_bytes;
    h->returned_bytes -= again;
    h->covered_bytes += bytes - again;
#else
    (void)h;
    (void)bytes;
#endif
}

/* Covered bytes are given back to the memory between two such ends. */
static inline void note_returned(struct hw_heap *h, uint32_t bytes)
{
#ifdef HW_EXPLORE
    h->returned_bytes += bytes;
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
