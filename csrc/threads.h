/* threads.h: one heap for several threads.
 *
 * With a lock each call takes it, and nothing else differs. With caches each thread has free lists of its own in front
 * of the lock: blocks that it frees are reused by the same thread without synchronization. Empty lists are refilled,
 * and lists over their limit are flushed, several blocks at a time.
 *
 *     malloc:   the thread's list of that size -> under the lock: a block, and others for half of the list
 *     free:     the thread's list of that size -> under the lock: half of the list goes back
 *
 * Sizes come in classes, eight to an octave, so that few lists serve all requests: a request gets the smallest block of
 * the next class, or a larger one of that class.
 *
 * Between the lists and the heap lies the depot: one list per class, which takes and returns blocks in batches without
 * coalescing, so that blocks of a class stay side by side. Once the heap has grown by a share, the depot is emptied.
 * If it has no block, a batch is cut from free memory at once, or else block by block; only then does the heap grow.
 *
 * A cache is an object of the heap, allocated by its thread's first call, so its cost is part of the arena:
 *
 *     next cache | bytes that its lists may hold | the list that shrank last | head, numbers | head, numbers | ...
 *
 * The limit of a list follows demand: it doubles after each miss and each overflow, as long as all lists together stay
 * within the recipe's bytes. If they would not, another list, in round-robin order, yields half of its limit to the
 * list that missed.
 *
 * Only the thread itself accesses its cache, except in the child of a fork, where that thread no longer exists. A list
 * is consistent at every moment: the head is written last.
 *
 * The platform is reached through hooks: HW_LOCK() and HW_UNLOCK(); HW_THREAD(), where the calling thread keeps its
 * struct hw_thread; HW_STARTED() of a new heap; HW_THREAD_BEGINS() once a thread has a cache that must be returned;
 * HW_PREFETCH(), if memory is far slower than the processor.
 *
 * Sources: Bonwick and Adams 2001 (magazines and their depot); Ghemawat and Menage, TCMalloc (classes, thread caches
 * that are bounded in bytes and start slowly, batches).
 */
#ifndef HW_THREADS_H
#define HW_THREADS_H

#include "threads/cached.h"
#include "threads/locked.h"

#endif
