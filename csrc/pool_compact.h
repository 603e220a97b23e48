/* pool_compact.h: blocks that move, reached through handles.
 *
 *   start                                        top         high-water mark                   limit
 *   |                                            |           |                                 |
 *   +------+------+------+--------+------+-------+-----------+---------------------------------+
 *   | used | hole | used | hole   | used | used  | was used  | never used                      |
 *   +------+------+------+--------+------+-------+-----------+---------------------------------+
 *
 * Every request is served at the top. Holes are closed by sliding the blocks above them down and updating their
 * handles: as soon as a block is freed (eager), or when the memory between the top and the high-water mark cannot serve
 * a request (lazy). So the live blocks always fit into the memory that was ever used, and the high-water mark is the
 * smallest arena that serves the same requests.
 *
 * A block is described by its header, or by its handle:
 *
 *     header:     | size | handle | not used |      handle 0: a hole
 *     no header:  handle = | address | size | next block's handle |
 *
 * A handle is a reference in the caller's memory, known by its distance from the arena. With headers it holds only the
 * address, and the blocks are found one behind the other; without, the handles are chained in order of address, and a
 * hole is where a block does not begin at the end of the one before.
 *
 * Sources: Das et al., "A low overhead dynamic memory management system for constrained memory embedded systems",
 * section V.B (ST_COMPACT_MEMMGR: headers of 2 + 2 bytes, references that the heap rewrites); Contiki's managed memory
 * (mmem: chained handles with the caller, eager).
 */
#ifndef HW_POOL_COMPACT_H
#define HW_POOL_COMPACT_H

#include "compact/check.h"
#include "compact/entries.h"

#endif
