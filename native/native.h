/* native.h: what Python calls. Host only; read by cffi as it stands. */
#ifndef HW_NATIVE_H
#define HW_NATIVE_H

#include "types.h"

/* Bytes of the references of objects that move, which a replay keeps in front of the arena; 0 where objects stay. */
size_t hw_front_bytes(const struct hw_policy *policy, const struct hw_calls *calls);

/* Reserves address space for arenas, and `front` bytes ahead of it; memory is taken as it is touched. It is aligned to
 * a power of two of at least `bytes`, so that aligned requests find the same addresses in every run. NULL where the
 * system refuses. */
void *hw_reserve(size_t front, size_t bytes);
void hw_unreserve(void *memory, size_t front, size_t bytes);

/* Zeroes the first `bytes` of what was reserved, for a heap that looks at payloads: earlier replays left theirs there.
 */
void hw_forget(void *memory, size_t bytes);

/* Replays the calls on a fresh heap of `bytes` bytes at `memory`, in front of which there are hw_front_bytes(). Failed
 * requests are counted, and later calls of the failed object are skipped. If the options' watch says no, the replay is
 * abandoned, and its other numbers are invalid. Returns 0, HW_NO_MEMORY or HW_NO_ROOM. O(count) calls of the heap.
 */
int hw_replay(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
              const struct hw_options *options, struct hw_metrics *metrics);

/* Replays the calls once with each of `count` policies, unwatched and without checks, on fresh heaps of `bytes` bytes
 * or as many as the policy reaches, at `memory`, in front of which there are the most hw_front_bytes() of any. All of
 * the policies have checks or none has; where they do, the memory is all 0. metrics[k] are the results of policies[k].
 * Returns how many were replayed: if fewer than `count`, *code is the result of hw_replay() for the next. O(count *
 * calls). */
uint32_t hw_replay_each(const struct hw_policy *const *policies, uint32_t count, const struct hw_calls *calls,
                        void *memory, size_t bytes, struct hw_metrics *metrics, int *code);

/* Replays the calls on `count` heaps, tried in this order. No heap moves its objects or has thread caches. `where` and
 * `at` have room for a number per call: the heap that has the object after it, from 1, and its address there; 0 if it
 * is not allocated. Metrics are totals over all heaps; covered, capacity, headers and shared are left out. Returns 0,
 * HW_NO_MEMORY or HW_NO_ROOM. O(count) calls of each heap. */
int hw_route(struct hw_memory *memories, uint32_t count, const struct hw_calls *calls, uint32_t *where, uint32_t *at,
             struct hw_metrics *metrics);

/* Whether hw_replay() has code of its own for policies like this one, which leave most switches where nearly all
 * recipes have them (ordinary.h). */
int hw_is_ordinary(const struct hw_policy *policy);

/* Whether a fresh heap of `bytes` bytes at `memory` serves all of the calls: 1 or 0, or a negative number as
 * hw_replay() returns. Ends at the first refusal. *wiped is as of struct hw_metrics. */
int hw_serves(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes, int *wiped);

/* A replay that stops to be looked at. */
struct hw_film;

/* Begins to replay as hw_replay() does, without checks. Returns NULL where it cannot, and why in `code`. */
struct hw_film *hw_film_open(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                             int *code);

/* Leaves out the object that the call `birth` makes and `death` frees, with all calls of it; before the first call.
 * `death` is the number of calls where none frees it. */
void hw_film_leave_out(struct hw_film *film, uint64_t birth, uint64_t death);

/* Replaces the calls, once all of them were made, by those that follow: so a heap can be fed with calls as they arrive.
 * Object and thread numbers stay below the bounds given to open. The first of the new calls is call 0, and the reported
 * call that grew last is no longer valid. */
void hw_film_follow(struct hw_film *film, const struct hw_calls *calls);

/* What the replay has come to so far; costs of calls and means excepted. O(slots). */
void hw_film_counts(struct hw_film *film, struct hw_metrics *metrics);

/* Advances until `call` has been made, unless it has been, and describes the whole arena in address order. Writes at
 * most `room` pieces; returns how many there are, or HW_NO_MEMORY. `room` 0: only advances. O(blocks) in addition to
 * the calls. */
int64_t hw_film_show(struct hw_film *film, uint64_t call, struct hw_piece *pieces, uint64_t room);

/* Adds to each cell the share of it that each state takes: shares[state * rows + row], where `rows` cells divide the
 * first `extent` bytes of the arena evenly. What lies beyond counts for nothing. O(pieces) and O(rows). */
void hw_cell_shares(const struct hw_piece *pieces, uint64_t count, uint64_t extent, uint32_t rows, float *shares);

/* The live objects by number; `alive` has room for all slots. Returns how many there are. O(slots). */
uint32_t hw_film_alive(struct hw_film *film, struct hw_alive *alive);
void hw_film_extent(struct hw_film *film, struct hw_extent *extent);

/* Ends the replay; `metrics` receives its results, except costs per call and means. Returns 0, or HW_NO_MEMORY if
 * memory ran out and the snapshots are invalid. */
int hw_film_close(struct hw_film *film, struct hw_metrics *metrics);

/* Replays, leaves the heap in `memory`, and marks in `marks` (one byte for each of the arena's) what is metadata:
 * control data, headers, links and boundary tags of free blocks, links of cached blocks, guards. Returns the address
 * behind the last marked byte, or a negative number as hw_replay() does. */
int64_t hw_metadata(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                    unsigned char *marks);

/* Replays, and writes what hw_usage() then returns to `usage`, one number for each of its HW_USAGE. Returns 0, or a
 * negative number as hw_replay() does. */
int hw_usage_after(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                   uint32_t *usage);

/* Runs a loop on a fresh heap of `bytes` bytes at `memory`, up to the last of the points. Returns 0, HW_NO_MEMORY or
 * HW_NO_ROOM. */
int hw_endure(const struct hw_policy *policy, const struct hw_loop *loop, void *memory, size_t bytes,
              const struct hw_points *points, struct hw_endured *endured);

/* Records the calls of hw_endure() on a heap whose requests never fail, up to the end of the turn in which `calls` is
 * reached. Returns how many there are, whether or not there is room for all, or HW_NO_MEMORY. O(calls). */
int64_t hw_loop_calls(const struct hw_loop *loop, uint64_t calls, const struct hw_written *written);

#endif
