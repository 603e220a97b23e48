/* ordinary.c: takes the place of the replays that build_copies.py makes, in a build without them: no policy is
 * ordinary. */
#include "ordinary.h"

#include <stdlib.h>

int hw_leaves_switches(const struct hw_policy *policy)
{
    (void)policy;
    return 0;
}

int hw_replay_ordinary(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                       const struct hw_options *options, struct hw_metrics *metrics)
{
    (void)policy, (void)calls, (void)memory, (void)bytes, (void)options, (void)metrics;
    abort();
}
