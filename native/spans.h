/* spans.h: how long a heap stays as a call leaves it. */
#ifndef HW_SPANS_H
#define HW_SPANS_H

#include "types.h"

/* Microseconds that a heap stays as the call i leaves it; 1 where there are no times. */
static inline double span_of(const struct hw_calls *calls, uint64_t i)
{
    if (calls->ts_us == NULL) {
        return 1.0;
    }
    return i + 1u < calls->count ? (double)(calls->ts_us[i + 1u] - calls->ts_us[i]) : 0.0;
}

#endif
