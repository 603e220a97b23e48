/* {{ prefix }}_heap.h: {{ title }}
 *
{% for line in about %}
 * {{ line }}
{% endfor %}
 *
 * One heap lives in one arena, a piece of memory that the caller provides; all that the heap knows is stored there.
{% if threads == "none" %}
 * There are no globals: a program may have as many heaps as it likes.
 *
 * The functions are not safe to call from several threads, or from interrupts, at the same time: take a lock around
 * them. None of them blocks, and none calls anything but itself.
{% else %}
 *
 * Several threads may call the functions at the same time, except {{ prefix }}_init(). Between two calls of a walk
 * ({{ prefix }}_next_block) the heap must not change. A heap of POSIX threads has a mutex, and survives a fork; for any
 * other platform define, in a file that {{ upper }}_HOOKS names or on the compiler's command line,
 *
 *     {{ upper }}_LOCK(heap)         takes the lock, and returns a uintptr_t: what interrupts were, or 0
 *     {{ upper }}_UNLOCK(heap, key)  releases it, given that number
{% if threads == "cached" %}
 *     {{ upper }}_THREAD(heap)       where the calling thread keeps its struct {{ prefix }}_thread, all zero at first; a
 *                            _Thread_local one where nothing else is defined
 *
 * and call {{ prefix }}_release_thread() where a thread ends. Each thread has a cache of at most {{ cache_bytes }} payload bytes,
 * an object of the heap, and allocates from it without the lock: so neither interrupts nor signal handlers may call the
 * functions. Requests beyond {{ cache_largest }} bytes take the lock, and so do those that find their list empty or full. A cache
 * serves one heap; for a second one generate again with another prefix. No thread may have a cache when {{ prefix }}_init()
 * makes a heap again where it was, but the one that calls it.
{% else %}
 *
 * With interrupts masked as the lock, interrupts may call them, too.
{% endif %}
{% endif %}
 *
{% if behind %}
 * The heap is pools in front of another allocator, {{ behind.malloc }}. {{ prefix }}_malloc() and the five other functions of
 * {{ prefix }}_behind.c offer each request to the pools, and pass on what these do not take or have no room for. An object
 * that outgrows the pools moves behind them; one that lies behind them stays there. A free finds by the address, in
 * O(1), whose the object is. {{ prefix }}_pools_malloc() and its like use the pools alone; all other functions are on the pools,
 * where a request that was passed on counts as refused. What is behind them may be defined, for {{ prefix }}_behind.c, in a file
 * that {{ upper }}_HOOKS names or on the compiler's command line:
 *
 *     {{ upper }}_BEHIND_MALLOC(size)                     memory, or NULL; the size is not 0
 *     {{ upper }}_BEHIND_REALLOC(pointer, size)           the same object at another size, or NULL
 *     {{ upper }}_BEHIND_FREE(pointer)                    NULL is allowed
 *     {{ upper }}_BEHIND_ALIGNED_ALLOC(alignment, size)   where there is one; without it {{ prefix }}_aligned_alloc() returns NULL
 *                                         where only that would serve
 *     {{ upper }}_BEHIND_USABLE_SIZE(pointer)             where there is one; without it {{ prefix }}_usable_size() returns 0
 *
 * The six functions alone call something outside the heap{{ ", without its lock" if threads == "lock" }}.
 *
{% endif %}
{% if moving %}
 * Objects move. They are reached through references, variables of type void * that the caller provides and that stay
 * where they are as long as the object lives. Any call that gives or takes memory may move objects; no other does.
{% if chained %}
 * A reference is the first member of a struct {{ prefix }}_handle. It holds the object's address, and the heap rewrites it
 * whenever the object moves: read it again after every such call.
{% else %}
 * A reference holds the object's address, and the heap rewrites it whenever the object moves: read it again after every
 * such call. It must lie within {{ reference_reach }} times a pointer's alignment of the arena's first byte, on either side.
{% endif %}
 *
{% endif %}
{% if checked and moving %}
 * Freeing and resizing ignore and count a reference that leads to no object.
{% elif checked %}
 * Checks of level "{{ checks }}": free and realloc ignore and count a pointer outside the heap, one that is not aligned, and
 * one whose block is free or waits in a quick list.
{% if checks == "full" %}
 * Headers and links are masked with a key and looked at before anything is stored, and so are the boundaries in the
 * control data. At the 4 bytes of a guard behind the object, which hold the request's size, one byte written behind an
 * object is noticed when it is freed. A freed object is filled, its first and last {{ filled }} bytes and up to {{ sampled }} words between,
 * and waits until {{ waiting }} more are freed: one that was written to is lost then. What waits is given back before a request
 * is refused.
 * What they cannot notice: a write into an allocated object, into a freed one beyond what is filled or once others have
 * waited longer, and into words of control data that are no links. Damage is counted when it is found, also by malloc;
 * what it may have reached is no longer used, as far as that is known.
 * A malloc and a free cost several times what they do without, and each object {{ guard }} bytes. For tests in the field,
 * and for products where a wrong write must not stay unseen.
{% elif checks == "neighbours" %}
 * Headers and links are masked with a key. Before a block is handed out or merged, its size, flags, tag and links are
 * looked at, and nothing is stored where they disagree: after an overflow into the next block, an underflow into the
 * block's own header, a free of a pointer into its middle, or a link that was overwritten.
 * What they cannot notice: an overflow that ends short of the next header, a write into a freed block behind its links
 * or into another one's payload. For products in the field.
{% else %}
 * What they cannot notice: a pointer into the middle of a block where the bytes in front look like a header, and
 * anything written where it should not be. For heaps whose users are trusted to stay within their blocks.
{% endif %}
{% elif moving %}
 * A reference that leads to no object of this heap makes the behaviour undefined, unless it is NULL.
{% else %}
 * A pointer that did not come from this heap, or was freed before, makes the behaviour undefined, as in C.
{% endif %}
 *
{% if not moving %}
 * Built with AddressSanitizer, or with -D{{ upper }}_VALGRIND for memcheck, the heap shuts its arena to the program but for the
 * objects, and faults are reported where they happen.
{% if not apart %}
 * AddressSanitizer marks 8 bytes at a time: what happens within such as objects share stays unseen.
{% elif align % 8 %}
 * AddressSanitizer marks 8 bytes at a time: a write into a header that shares these with its object stays unseen.
{% endif %}
 * An arena that gets another use must be opened first, by __asan_unpoison_memory_region().
 * -D{{ upper }}_UNWATCHED leaves all that out.
 *
{% endif %}
 * Generated by Heapwright {{ version }} from recipe {{ hash }}. You may use, change and distribute this file in source or
 * binary form, in any product and under any licence, without keeping this notice. It comes without any warranty.
 */
#ifndef {{ upper }}_HEAP_H
#define {{ upper }}_HEAP_H

#include <stddef.h>
#include <stdint.h>

{% if keyed %}
/* {{ upper }}_SECRET(heap) is a random word of 32 bits. {{ prefix }}_init() asks for {{ "four" if checks == "full" else "one" }}, keeps {{ "them" if checks == "full" else "it" }} in the arena, and masks
 * headers and links{{ " and guards" if checks == "full" else "" }} with {{ "them" if checks == "full" else "it" }}, so that no one forges one who cannot read the heap. Where it is not defined,
{% if entropy %}
 * {{ entropy[1] }} of <{{ entropy[0] }}> is called;
{% else %}
 * getrandom() of Linux is called; elsewhere the source does not compile;
{% endif %}
 * with {{ upper }}_SECRET_OF_ADDRESS it is made of the arena's address, which attackers may know. */

{% endif %}
/* What the heap reports to the program, by its macros, in a file that {{ upper }}_HOOKS names or on the command line of
 * the compiler that translates {{ prefix }}_heap.c. One that is not defined costs nothing.
 *
 *     {{ upper }}_ALLOCATED(heap, pointer, size)      a request was served
 *     {{ upper }}_RESIZED(heap, from, pointer, size)  an object lies at `pointer` now, where it is `size` bytes large; one that
 *                                         had to be copied may be reported as allocated and freed
 *     {{ upper }}_FREED(heap, pointer)                an object is about to be freed
 *     {{ upper }}_REFUSED(heap, size)                 a request is refused; SIZE_MAX where count * size overflows
{% if checked %}
 *     {{ upper }}_MISUSED(heap)                       an invalid pointer was ignored, and counted: {{ "stops here where it is not" if traps else "go on, call a function," }}
 *                                         {{ "defined; to go on, define it as ((void)0)" if traps else "or stop, as __builtin_trap() does" }}
{% endif %}
 *
{% if moving %}
 * Pointers are references here. The macros must not allocate from the heap or free. */
{% elif threads != "none" %}
 * They are called by the thread whose call it is, most of them under the lock, and must not call the heap. */
{% else %}
 * They may look at the heap, and must not allocate from it or free. */
{% endif %}

{% if threads == "cached" %}
/* Payload bytes that the cache of a thread has at most. */
#define {{ upper }}_CACHES {{ cache_bytes }}u

{% endif %}
#ifdef __cplusplus
extern "C" {
#endif

/* Alignment that the arena's first byte must have, in bytes. */
#define {{ upper }}_ARENA_ALIGNMENT {{ arena_alignment }}u

/* Bytes of the smallest arena that {{ prefix }}_init() accepts: its control data, and regions with a size of their own. Other
 * objects need more. */
#define {{ upper }}_LEAST_ARENA {{ least_arena }}u

/* Alignment of every object, in bytes. C wants of malloc that of max_align_t: 8 on 32-bit Arm, 16 on most 64-bit
 * machines and on RISC-V. {{ prefix }}_heap.c does not compile where that is more than this heap gives. Define
 * {{ unchecked }} where no object needs it, or to try the heap of a smaller target on a larger one. */
#define {{ upper }}_ALIGNMENT {{ align }}u

{% if sites %}
/* Call sites that pools serve alone, for {{ prefix }}_malloc_at() and {{ prefix }}_calloc_at(): each is the number of
 * its class. {{ prefix }}_largest_free() and the same number of the statistics leave these pools out. */
enum {
{% for word, number, site in sites %}
    {{ upper }}_SITE_{{ word }} = {{ number }}, /* {{ site }} */
{% endfor %}
};

{% endif %}
{% if behind %}
/* Bytes of the arena: what the pools need. They cannot use more. */
#define {{ upper }}_ARENA_BYTES {{ arena_bytes }}u

{% endif %}
{{ interface }}
{% include "field.h" %}
{% if behind %}

/* ---- The pools, and what is behind them ---- */

/* Memory for `size` bytes; its content is undefined. A size of 0 is served as 1. NULL where neither has room. */
void *{{ prefix }}_malloc(struct {{ prefix }}_heap *heap, size_t size);

/* Memory for `count` objects of `size` bytes, all zero. Returns NULL also where count * size overflows. */
void *{{ prefix }}_calloc(struct {{ prefix }}_heap *heap, size_t count, size_t size);

/* Makes the object at `pointer` `size` bytes large, by moving it behind the pools where they have no room. NULL asks for
 * a new object; a size of 0 is served as 1. Returns NULL where there is no room: the object then lives on as it was. */
void *{{ prefix }}_realloc(struct {{ prefix }}_heap *heap, void *pointer, size_t size);

/* Memory for `size` bytes at an address that is a multiple of `alignment`, a power of two; else NULL. */
void *{{ prefix }}_aligned_alloc(struct {{ prefix }}_heap *heap, size_t alignment, size_t size);

/* Gives an object back to where it came from. NULL is allowed. */
void {{ prefix }}_free(struct {{ prefix }}_heap *heap, void *pointer);

/* Bytes that the object at `pointer` may use: at least the size of the request. 0 if that is not known, and for NULL. */
size_t {{ prefix }}_usable_size(struct {{ prefix }}_heap *heap, const void *pointer);
{% endif %}
#ifdef __cplusplus
}
#endif

#endif
