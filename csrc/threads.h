/* threads.h: one heap for several threads.
 *
 * With a lock each call is made under it, and nothing else differs. With caches each thread has lists of free blocks
 * of its own before the lock: what it frees, it is given again without asking anybody. Lists that are empty are filled,
 * and lists that hold too much are emptied, several blocks at a time.
 *
 *     malloc:   the thread's list of that size -> under the lock: a block, and others for half of the list
 *     free:     the thread's list of that size -> under the lock: half of the list goes back
 *
 * Sizes come in classes, eight to an octave, so that few lists serve all requests: a request is given the smallest
 * block of the next class, or a larger one of that class.
 *
 * Between the lists and the heap lies the depot: a list of each class, which a batch of blocks joins and leaves without
 * a look at its neighbours. It holds at most a share of what the heap has ever covered; what is more goes back to the
 * heap. What the depot does not have is cut, a batch at one go, from free memory, else taken from there block by block;
 * only then does the heap grow.
 *
 * A cache is an object of the heap, which its thread's first call takes, so what it costs is part of the arena:
 *
 *     next cache | bytes that its lists may hold | the list that shrank last | head, numbers | head, numbers | ...
 *
 * How many blocks a list may hold follows what is asked for: twice as many after each miss and each overflow, as long
 * as all lists together stay within the recipe's bytes. Where they would not, another list, each in its turn, gives up
 * half for a list that missed.
 *
 * Nobody but the thread itself looks at its cache, except in the child of a fork, where that thread is gone. A list is
 * whole at every moment: the head is written last.
 *
 * The platform is reached through hooks: HW_LOCK() and HW_UNLOCK(); HW_THREAD(), where the calling thread keeps its
 * struct hw_thread; HW_STARTED() of a new heap; HW_THREAD_BEGINS() once a thread has a cache to be given back;
 * HW_PREFETCH(), where memory is slower than the processor by far.
 *
 * Sources: Bonwick and Adams 2001 (magazines and their depot); Ghemawat and Menage, TCMalloc (classes, caches of
 * threads that are bounded in bytes and start slowly, batches).
 */
#ifndef HW_THREADS_H
#define HW_THREADS_H

#include "threads/cached.h"
#include "threads/locked.h"

#endif
