/* calls.c: what is known of a trace without a heap. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

#include "spans.h"

uint32_t hw_assign_slots(const uint8_t *op, const uint32_t *object, uint64_t count, uint32_t objects, uint32_t *scratch,
                         uint32_t *slot)
{
    uint32_t *number = scratch;           /* of each live object, plus 1 */
    uint32_t *unused = scratch + objects; /* a stack: the number freed last is in the cache */
    uint32_t unused_count = 0;
    uint32_t slots = 0;
    memset(number, 0, objects * sizeof *number);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t *mine = &number[object[i]];
        if (*mine == 0) {
            *mine = unused_count ? unused[--unused_count] : ++slots;
        }
        slot[i] = *mine - 1u;
        if (op[i] == HW_OP_FREE) {
            unused[unused_count++] = *mine;
            *mine = 0;
        }
    }
    return slots;
}

uint32_t hw_number_objects(const uint8_t *op, const uint32_t *id, uint64_t count, uint32_t *latest, uint32_t *object)
{
    uint32_t objects = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (op[i] == HW_OP_MALLOC || op[i] == HW_OP_CALLOC) {
            latest[id[i]] = objects++;
        }
        object[i] = latest[id[i]];
    }
    return objects;
}

int hw_is_orderly(const uint8_t *op, const uint32_t *id, uint64_t count, unsigned char *live)
{
    for (uint64_t i = 0; i < count; i++) {
        const int is_born = op[i] == HW_OP_MALLOC || op[i] == HW_OP_CALLOC;
        if (live[id[i]] == is_born) {
            return 0;
        }
        live[id[i]] = op[i] != HW_OP_FREE;
    }
    return 1;
}

void hw_deaths(const struct hw_calls *calls, int32_t *latest, int32_t *death)
{
    memset(latest, -1, calls->slots * sizeof *latest);
    for (uint64_t i = calls->count; i-- > 0;) {
        int32_t *next = &latest[calls->slot[i]];
        death[i] = -1;
        if (calls->op[i] == HW_OP_FREE) {
            *next = (int32_t)i;
        } else if (calls->op[i] != HW_OP_REALLOC) {
            death[i] = *next;
            *next = -1;
        }
    }
}

/* Bytes that a request makes its object, see hw_live_bytes(). */
static int64_t bytes_of(const struct hw_calls *calls, const int64_t *bytes, uint32_t align, uint64_t i)
{
    if (bytes) {
        return bytes[i];
    }
    const int64_t size = calls->size[i];
    if (align == 0) {
        return size;
    }
    return ((size ? size : 1) + align - 1) / align * align;
}

int64_t hw_live_bytes(const struct hw_calls *calls, const int64_t *bytes, uint32_t align, int both, int64_t *after)
{
    int64_t *have = calloc(calls->slots ? calls->slots : 1u, sizeof *have);
    int64_t sum = 0;
    int64_t largest = 0;
    if (have == NULL) {
        return HW_NO_MEMORY;
    }
    for (uint64_t i = 0; i < calls->count; i++) {
        int64_t *mine = &have[calls->slot[i]];
        const int64_t before = *mine;
        *mine = calls->op[i] == HW_OP_FREE ? 0 : bytes_of(calls, bytes, align, i);
        sum += *mine - before;
        const int64_t at_once = both && calls->op[i] == HW_OP_REALLOC ? sum + before : sum;
        largest = at_once > largest ? at_once : largest;
        if (after) {
            after[i] = sum;
        }
    }
    free(have);
    return largest;
}

int hw_total(const struct hw_calls *calls, uint64_t count, struct hw_totals *totals)
{
    struct hw_totals sum = {0};
    uint32_t *have = calloc(calls->slots ? calls->slots : 1u, sizeof *have);
    *totals = sum;
    if (have == NULL) {
        return HW_NO_MEMORY;
    }
    uint64_t live = 0;
    for (uint64_t i = 0; i < count; i++) {
        const int is_request = calls->op[i] != HW_OP_FREE;
        const uint32_t size = is_request ? calls->size[i] : 0;
        live += (uint64_t)size - have[calls->slot[i]];
        have[calls->slot[i]] = size;
        sum.requests += is_request ? 1u : 0;
        sum.requested_bytes += size;
        sum.requested_peak = live > sum.requested_peak ? live : sum.requested_peak;
        const double span = span_of(calls, i);
        sum.weighted += span * (double)live;
        sum.weight += span;
    }
    free(have);
    *totals = sum;
    return 0;
}
