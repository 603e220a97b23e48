/* heapwright.h: the public interface of a heap.
 *
 * A heap lives in one arena, a piece of memory that the caller provides; all that the heap knows is stored there. There
 * are no globals: a program may have as many heaps as it likes.
 *
 * The functions are not safe to call from several threads, or from interrupts, at the same time: take a lock around
 * them. None of them blocks, and none calls anything but itself.
 *
 * Where the policy does not say otherwise, a pointer that did not come from this heap, or was freed before, makes the
 * behaviour undefined, as in C. With `checks` in the recipe, free and realloc ignore and count a pointer outside the
 * heap, one that is not aligned, and one whose block is free or cached. What they cannot detect: a pointer into the
 * middle of a block where the bytes in front look like a header.
 */
#ifndef HW_HEAPWRIGHT_H
#define HW_HEAPWRIGHT_H

#include <stddef.h>
#include <stdint.h>

struct hw_policy;
struct hw_heap;

/* The core is one translation unit; generated code exports these functions instead. */
#define HW_API static inline

/* Alignment that the arena's first byte must have, in bytes; more where block sizes are multiples of more. */
#define HW_ARENA_ALIGNMENT 16u

/* What the caller keeps for each object of a heap whose blocks have no header. `pointer` is the reference; `size` and
 * `next` are the heap's. It must stay where it is as long as the object lives. */
struct hw_handle {
    void *pointer; /* where the object is; NULL: there is none */
    size_t size;   /* of its block, in bytes */
    size_t next;   /* the handle of the block behind */
};

/* A block of the arena as hw_next_block() describes it. */
struct hw_block {
    uint32_t offset; /* of its first byte, header included, from the start of the arena */
    uint32_t size;   /* bytes, header included */
    uint32_t header; /* bytes in front of the payload */
    uint32_t state;  /* HW_BLOCK_... */
    uint32_t pool;   /* number of its pool, from 0; several pools count in the order of the recipe */
};

/* States of a block. */
#define HW_BLOCK_USED 1u   /* handed out */
#define HW_BLOCK_FREE 2u   /* to be found by a request */
#define HW_BLOCK_CACHED 3u /* free for some requests only; kept in a quick list; waits, at checks "full" */
#define HW_BLOCK_VICTIM 4u /* free, without a header: the region that small requests are cut from */

/* The result of hw_statistics(), in bytes unless noted otherwise. */
struct hw_statistics {
    uint32_t used;         /* in blocks that are handed out, headers included */
    uint32_t used_blocks;  /* number of blocks handed out */
    uint32_t unused;       /* in free blocks, headers included; also in cached blocks */
    uint32_t largest_free; /* the largest request that malloc would serve now, or less; counts cached blocks */
    uint32_t peak;         /* all memory that blocks have ever covered, control data included; never decreases */
    uint32_t refused;      /* number of requests that were refused */
    uint32_t misused;      /* number of invalid pointers that were ignored; 0 without checks */
};

/* The result of hw_counters(). */
struct hw_counters {
    uint32_t free;       /* bytes that blocks can cover, less those in blocks that are handed out */
    uint32_t least_free; /* the least that this ever was, or was since hw_reset_least_free() */
    uint32_t refused;    /* number of requests that were refused */
    uint32_t mallocs;    /* number of objects handed out; one that realloc had to copy counts again */
    uint32_t frees;      /* number of objects given back */
};

/* Classes of blocks that the heap counts, by their bytes with header: the first has blocks of less than 16, the next
 * blocks of less than 32, and so on; the last has all larger ones. */
#define HW_CLASSES 16u

/* The result of hw_usage(): the most that a heap was used for since hw_init(), in bytes unless noted otherwise. */
struct hw_usage {
    uint32_t arena;              /* that blocks and control data can cover */
    uint32_t peak;               /* that they ever covered: an arena of this size serves the same calls */
    uint32_t refused;            /* number of requests that were refused */
    uint32_t used_peak;          /* most that were in blocks handed out, headers included; 0 without `counters` */
    uint32_t largest_refused;    /* the largest request that was refused; 0 without `counters` */
    uint32_t blocks[HW_CLASSES]; /* most blocks handed out, of < 16, < 32, ... bytes; 0 without `counters` "classes" */
};

/* Makes a heap of `bytes` bytes at `arena`, which is aligned to HW_ARENA_ALIGNMENT.
 * Returns NULL if and only if arena is NULL, misaligned, or too small for the control data and all regions with a size
 * of their own. Memory beyond what the recipe's links and sizes reach is left unused. O(control data). */
#ifndef HW_EXPLORE
HW_API struct hw_heap *hw_init(const struct hw_policy *policy, void *arena, size_t bytes);
#endif

/* Memory for `size` bytes, aligned as the recipe says; its content is undefined. A size of 0 is served as 1.
 * Returns NULL if and only if the heap has no room for it; that is counted, and the heap goes on as before. A request
 * is rounded up to a bin: a free block of the bin below is no room for it, even if it is large enough. A free block of
 * other pools or sizes is no room for it. Only the first blocks of a list are examined: one behind them is no room for
 * it. Even the block of an object of this size that was just freed may be passed by. */
HW_API void *hw_malloc(const struct hw_policy *policy, struct hw_heap *heap, size_t size);

/* Memory for `size` bytes as of hw_malloc(), for a class of call sites: first from the pools that serve it alone. Class
 * 0, and one that no pool names, is that of hw_malloc(). An object that realloc has to move stays with its class. */
HW_API void *hw_malloc_at(const struct hw_policy *policy, struct hw_heap *heap, uint32_t site, size_t size);

/* Memory for `count` objects of `size` bytes, all zero. Returns NULL also where count * size overflows. O(count *
 * size). */
HW_API void *hw_calloc(const struct hw_policy *policy, struct hw_heap *heap, size_t count, size_t size);

/* Memory for `count` objects of `size` bytes as of hw_calloc(), for a class of call sites as of hw_malloc_at(). O(count
 * * size). */
HW_API void *hw_calloc_at(const struct hw_policy *policy, struct hw_heap *heap, uint32_t site, size_t count,
                          size_t size);

/* Makes the object at `pointer` `size` bytes large, in place where it can, else by moving it. NULL asks for a new
 * object; a size of 0 is served as 1. Returns NULL if and only if there is no room: the object then lives on as it was.
 * To make it smaller never fails. An object of hw_aligned_alloc() keeps its alignment only where it stays in place: one
 * that has to move is aligned as of hw_malloc(). */
HW_API void *hw_realloc(const struct hw_policy *policy, struct hw_heap *heap, void *pointer, size_t size);

/* Memory for `size` bytes at an address that is a multiple of `alignment`, a power of two. Returns NULL also if
 * alignment is no power of two. Only pools with headers serve an alignment above HW_ALIGNMENT. Returns
 * NULL for an alignment above HW_ALIGNMENT if no pool has headers. */
HW_API void *hw_aligned_alloc(const struct hw_policy *policy, struct hw_heap *heap, size_t alignment, size_t size);

/* Gives an object back. NULL is allowed. */
HW_API void hw_free(const struct hw_policy *policy, struct hw_heap *heap, void *pointer);

/* Usable bytes of the object at `pointer`: at least the requested size. 0 for NULL. */
HW_API size_t hw_usable_size(const struct hw_policy *policy, struct hw_heap *heap, const void *pointer);

/* Bytes of the arena that the object's block takes, header included: what hw_statistics() adds to `used` for it. 0 for
 * NULL and, if the recipe has checks, for an invalid pointer. O(1); with checks at the cost of hw_free()'s. */
HW_API size_t hw_block_bytes(const struct hw_policy *policy, struct hw_heap *heap, const void *pointer);

#ifdef HW_SHARED
/* ---- Caches of threads ---- */

/* Gives back all that the calling thread's cache holds, and the cache; the last one, what the depot holds, too. A
 * thread that allocates again gets a new one. The platform's hooks call it where a thread ends; where there is no such
 * hook, a thread calls it last. O(blocks in the cache and the depot) releases, a batch of them under the lock at a
 * time. */
HW_API void hw_release_thread(const struct hw_policy *policy, struct hw_heap *heap);

/* For the child of a fork, whose other threads are gone: gives back what their caches hold, and the caches. Needs the
 * lock to have been held during the fork, and released in the child. The hooks for POSIX call it. O(blocks in all
 * caches) releases. */
HW_API void hw_after_fork(const struct hw_policy *policy, struct hw_heap *heap);

/* Memory for `size` bytes out of the calling thread's cache, without the lock; NULL where that has none at hand: no
 * refusal, hw_malloc() serves then. For platforms. O(1). */
HW_API void *hw_take_cached(const struct hw_policy *policy, struct hw_heap *heap, size_t size);

/* Frees an object into the calling thread's cache, without the lock; 0 if the cache does not take it, and the caller
 * has to use hw_free(). Calls no hook. For platforms. O(1). */
HW_API int hw_keep_cached(const struct hw_policy *policy, struct hw_heap *heap, void *pointer);

/* Payload bytes that the caches of threads and the depot behind them hold now, each block counted as the largest of its
 * class; the other functions take them for used. O(threads). */
HW_API size_t hw_cached_bytes(const struct hw_policy *policy, struct hw_heap *heap);
#endif

/* ---- Heaps that move their objects ----
 *
 * Recipes with a compact pool have these functions instead of the ones above. An object is reached through a
 * reference, a variable of type void * that the caller provides and that stays in place for the object's lifetime. Any
 * call that allocates or frees may move objects; no other does.
 *
 * If the caller keeps the handles, the reference holds the object's address, and the heap rewrites it whenever the
 * object moves: load it again after every call. It must lie near enough to the arena for the header's field: with
 * 4-byte headers within 32767 times a pointer's alignment of the arena's first byte, on either side. If blocks have no
 * header, the reference is the first member of a struct hw_handle. If handles are in the arena, the reference
 * identifies the handle and may be copied; hw_handle_pointer() returns the object's address. */

/* Memory for `size` bytes, aligned as the recipe says; its content is undefined. A size of 0 is served as 1. Returns 1,
 * or 0 if and only if the heap has no room for it or the reference is too far away; that is counted, and *reference is
 * NULL. What *reference held before is lost. O(1), O(objects) where blocks have no header, and the time of a compaction
 * if there is one: O(objects) and a copy of what is live. */
HW_API int hw_handle_alloc(const struct hw_policy *policy, struct hw_heap *heap, void **reference, size_t size);

/* Makes an object `size` bytes large; what lies behind it in the arena moves. A reference that is NULL asks for a new
 * object; a size of 0 is served as 1. Returns 1, or 0 if and only if there is no room: the object then lives on as it
 * was, though perhaps elsewhere. O(objects), and a copy of what lies behind it. */
HW_API int hw_handle_realloc(const struct hw_policy *policy, struct hw_heap *heap, void **reference, size_t size);

/* Gives an object back and sets the reference to NULL, which it may be already. */
HW_API void hw_handle_free(const struct hw_policy *policy, struct hw_heap *heap, void **reference);

/* Where the object is now; NULL for NULL. O(1). */
HW_API void *hw_handle_pointer(const struct hw_policy *policy, struct hw_heap *heap, void **reference);

/* Usable bytes of the object: at least the requested size. 0 for NULL. O(1). */
HW_API size_t hw_handle_usable_size(const struct hw_policy *policy, struct hw_heap *heap, void **reference);

/* Whether a pointer leads into the part of the arena where objects lie: 1 for all that this heap handed out, 0 for all
 * that another one did. O(1). */
HW_API int hw_owns(const struct hw_policy *policy, struct hw_heap *heap, const void *pointer);

/* Walks the heap: fill *block with zeros, call until it returns 0. Blocks come in address order. With several pools,
 * they come pool by pool. The heap must not change in between. O(1) per block. A block that looks used is searched for
 * in its quick list. After hw_flush() these lists are empty. A block that looks used is searched for in its class's
 * list of free blocks. */
HW_API int hw_next_block(const struct hw_policy *policy, struct hw_heap *heap, struct hw_block *block);

/* Counts what the heap holds. O(blocks). Of each quick list, largest_free counts the first 64 blocks. */
HW_API struct hw_statistics hw_statistics(const struct hw_policy *policy, struct hw_heap *heap);

/* The largest request that hw_malloc() would serve now, or less: a lower bound, never too large. Looks at no more than
 * `looks` free blocks; the bound is exact where the list that holds the largest is not longer, and then that of
 * hw_statistics(). Cached blocks do not count, unless hw_flush() is called first. O(looks), and O(lists). */
HW_API size_t hw_largest_free(const struct hw_policy *policy, struct hw_heap *heap, uint32_t looks);

/* Frees the cached blocks, as a request does that would otherwise fail. Then hw_largest_free() counts all free memory.
 * O(cached blocks). */
HW_API void hw_flush(const struct hw_policy *policy, struct hw_heap *heap);

/* What the heap counted; all numbers wrap around at 2^32. Needs `counters` in the recipe. O(1). */
HW_API struct hw_counters hw_counters(const struct hw_policy *policy, struct hw_heap *heap);

/* Memory for a request of low priority, as of hw_malloc(). Returns NULL also where less than the recipe's `reserve`
 * would stay free: bytes that blocks can cover, less those in blocks that are handed out, less `size`. Free memory may
 * lie in pieces: the reserve is no promise that one request of its size is served. O(1) more. */
HW_API void *hw_malloc_low(const struct hw_policy *policy, struct hw_heap *heap, size_t size);

/* Another size for an object, at low priority, as of hw_realloc(). Returns NULL also where what the object lacks would
 * not leave the reserve free; it then lives on as it was. To make it smaller never fails. O(1) more. */
HW_API void *hw_realloc_low(const struct hw_policy *policy, struct hw_heap *heap, void *pointer, size_t size);

/* Lets the least bytes ever free be those that are free now. Needs `counters` in the recipe. O(1). */
HW_API void hw_reset_least_free(const struct hw_policy *policy, struct hw_heap *heap);

/* The most that the heap was used for, without a walk. O(classes). */
HW_API struct hw_usage hw_usage(const struct hw_policy *policy, struct hw_heap *heap);

/* Number of invalid pointers that free and realloc ignored; 0 if the recipe has no checks. O(1). */
HW_API uint32_t hw_misused(const struct hw_policy *policy, struct hw_heap *heap);

/* Checks every invariant of the heap's data. Returns 0 if all hold, else one of HW_BROKEN_... O(blocks). With long
 * quick lists it takes longer. It cannot detect an overflow that wrote what was there before, or damage to payloads. */
HW_API int hw_check(const struct hw_policy *policy, struct hw_heap *heap);

#define HW_BROKEN_BOUNDS 1    /* a block or boundary lies outside its part of the arena */
#define HW_BROKEN_SIZE 2      /* a block's size is impossible */
#define HW_BROKEN_FLAGS 3     /* a block's flags contradict its neighbour; or its boundary tag does */
#define HW_BROKEN_MERGE 4     /* two free neighbours that should have been merged */
#define HW_BROKEN_LIST 5      /* a list holds what it should not, or in the wrong order */
#define HW_BROKEN_LINK 6      /* a link back does not match */
#define HW_BROKEN_COUNT 7     /* the lists and the walk disagree on the number of free blocks */
#define HW_BROKEN_QUICK 8     /* a quick list holds a block of another size, or more than its limit */
#define HW_BROKEN_CLASS 9     /* a free list leads to no block; a header names no class */
#define HW_BROKEN_COUNTERS 10 /* the counters and the walk disagree */

#endif
