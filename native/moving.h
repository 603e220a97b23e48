/* moving.h: what a replay moves where objects move: of large blocks the headers alone, unless somebody looks at
 * payloads.
 */
#ifndef HW_MOVING_H
#define HW_MOVING_H

#include "wiping.h"
#include <stdlib.h>
#include "check.h"

enum { WORTH_SKIPPING = 256 }; /* bytes of a block that take longer to copy than its header to find */

/* Moves the headers of the blocks from `from` up to `end`, of which there are so many at most; 0 where there is no
 * memory to note where they are, and nothing was moved. Those moved upwards are moved last first, as their bytes would
 * be. */
static int move_headers(const struct hw_compact *c, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t end,
                        uint32_t most)
{
    const uint64_t reads = h->reads;
    uint32_t *later = to > from ? malloc(most * sizeof *later) : NULL;
    uint32_t count = 0;
    for (uint32_t b = from; b < end && (to < from || (later && count < most));) {
        const uint32_t size = header_size(c, h, b);
        if (later) {
            later[count++] = b;
        } else {
            copy_bytes(h, b - from + to, b, 2u * c->word.bytes);
        }
        b += size;
    }
    h->reads = reads;
    const int moved = to < from || (later && count < most);
    while (moved && count-- > 0) {
        copy_bytes(h, later[count] - from + to, later[count], 2u * c->word.bytes);
    }
    free(later);
    return moved;
}

/* Moves no payloads where nobody looks at them, and blocks are large. */
static inline int skip_moving(const struct hw_compact *c, struct hw_heap *h, uint32_t to, uint32_t from, uint32_t bytes)
{
    if (c->header == 0 || h->engine.copies || bytes == 0) {
        return 0;
    }
    const uint32_t blocks = h->header_bytes / c->header + 1u;
    if ((from + bytes - c->start) / blocks < WORTH_SKIPPING || !move_headers(c, h, to, from, from + bytes, blocks)) {
        copy_bytes(h, to, from, bytes);
    }
    note_moved(h, bytes);
    return 1;
}

#endif
