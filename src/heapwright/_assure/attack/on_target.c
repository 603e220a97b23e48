/* on_target.c: one run of an attack as an image, which the emulator restarts for each. */
#include "faults.h"

/* What a run is given, and leaves; placed by the linker script. */
struct feed {
    uint32_t count;
    const struct call *calls;
    struct object *objects;
    uint32_t slots;
    unsigned char *arena;
    uint32_t arena_bytes;
    uint32_t fault; /* FAULTS: none */
    uint32_t seed;
    uint32_t number; /* of the run among those of its fault */
    struct told told;
    uint32_t outcome; /* out */
};

extern struct feed hw_feed;

void hw_done(void);

static void end(int outcome)
{
    hw_feed.outcome = (uint32_t)outcome;
    for (;;) {
        hw_done();
    }
}

void hw_main(void)
{
    calls = hw_feed.calls;
    count = hw_feed.count;
    objects = hw_feed.objects;
    slots = hw_feed.slots;
    arena = hw_feed.arena;
    arena_bytes = hw_feed.arena_bytes;
    told = &hw_feed.told;
    carry_out((enum fault)hw_feed.fault, seed_of(hw_feed.seed, (enum fault)hw_feed.fault, hw_feed.number));
}
