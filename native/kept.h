/* kept.h: memory that a thread keeps from one replay to the next, with its pages mapped: mapping them again for every
 * replay costs more than a short replay, and threads contend for the kernel's lock meanwhile.
 */
#ifndef HW_KEPT_H
#define HW_KEPT_H

#include <stddef.h>

/* What it is for: numbers of chunks, sets of places, pages that were stored to. */
enum hw_kept { HW_KEPT_NUMBERS, HW_KEPT_PLACES, HW_KEPT_PAGES, HW_KEPT_KINDS };

enum { PAGE_LOG2 = 12 }; /* of what memory is taken in */

/* `bytes` bytes, all 0; NULL if the system has none. */
void *hw_take_kept(enum hw_kept kind, size_t bytes);

/* Gives them back, all 0 again. At most `used` bytes are in pages that were touched: where they are many it is not
 * kept.
 */
void hw_give_back(enum hw_kept kind, void *memory, size_t bytes, size_t used);

#endif
