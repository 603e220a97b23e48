/* ordinary.h: replays of recipes that leave most switches where nearly all recipes have them. The code is made at build
 * time: build_copies.py. */
#ifndef HW_ORDINARY_H
#define HW_ORDINARY_H

#include "types.h"

/* What replays as hw_replay() does. */
typedef int hw_replaying(const struct hw_policy *policy, const struct hw_calls *calls, void *memory, size_t bytes,
                         const struct hw_options *options, struct hw_metrics *metrics);

/* Whether a policy is ordinary: 1 or 0. */
int hw_leaves_switches(const struct hw_policy *policy);

/* For ordinary policies. */
hw_replaying hw_replay_ordinary;

#endif
