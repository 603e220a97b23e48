/* usage.h: the most that a heap was used for, which the maker of its recipe compares with the recording. */
#ifndef HW_USAGE_H
#define HW_USAGE_H

#include "entries.h"

static inline struct hw_usage hw_usage(const struct hw_policy *p, struct hw_heap *heap)
{
    struct hw_usage usage = {0};
    const uint32_t end = load4(heap, p->shared_end_at);
    usage.arena = end + p->end_mark;
    usage.peak = load4(heap, p->shared_high_at) + p->end_mark;
    if (p->grows_down) {
        usage.peak += end - load4(heap, p->shared_limit_at);
    }
    usage.refused = load4(heap, p->refused_at);
    if (p->counters_at) {
        usage.used_peak = most_used(p, heap);
        usage.largest_refused = load4(heap, p->counters_at + HW_COUNT_REFUSED);
    }
    if (p->classes_at) {
        for (uint32_t of = 0; of < HW_CLASSES; of++) {
            usage.blocks[of] = class_peak(p, heap, of);
        }
    }
    return usage;
}

#endif
