/* calls.h: what is known of a trace without a heap. Host only; read by cffi as it stands. */
#ifndef HW_CALLS_H
#define HW_CALLS_H

#include "types.h"

/* Numbers objects so that few numbers are used; returns how many. `object` are dense indices below `objects`, and
 * `scratch` has room for 2 * objects numbers. O(count). */
uint32_t hw_assign_slots(const uint8_t *op, const uint32_t *object, uint64_t count, uint32_t objects, uint32_t *scratch,
                         uint32_t *slot);

/* Numbers objects from 0 in order of birth, for each call: an id that is used again after its free gets another number.
 * Ids are below `ids`; `latest` has room for a number for each. Returns how many objects there are. O(count). */
uint32_t hw_number_objects(const uint8_t *op, const uint32_t *id, uint64_t count, uint32_t *latest, uint32_t *object);

/* Whether every id lives before it is resized or freed, and is dead before it lives again: 1 or 0. `live` has room for
 * a byte for each id, all 0. O(count). */
int hw_is_orderly(const uint8_t *op, const uint32_t *id, uint64_t count, unsigned char *live);

/* Adds up the first `count` calls. Returns 0, or HW_NO_MEMORY, where nothing is added up. O(count). */
int hw_total(const struct hw_calls *calls, uint64_t count, struct hw_totals *totals);

/* The call that frees what each call makes, -1 where none does or the call makes nothing. `latest` has room for all
 * slots. There are fewer than 2^31 calls. O(count). */
void hw_deaths(const struct hw_calls *calls, int32_t *latest, int32_t *death);

/* The largest sum of the live objects' bytes. A request makes its object `bytes[i]` large or, where that is NULL, as
 * large as it asks for, rounded up to a multiple of `align` above 0 (`align` 0: neither). `both` counts an object twice
 * while realloc changes it, as it was and as it will be. `after` may be NULL, or have room for the sum after each call.
 * Returns HW_NO_MEMORY where the system has none. O(count). */
int64_t hw_live_bytes(const struct hw_calls *calls, const int64_t *bytes, uint32_t align, int both, int64_t *after);

#endif
