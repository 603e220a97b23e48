/* same_folded.c: a policy known at run time, the same as a constant, and the explorer's build do the same.
 *
 * policies.h, written by the test, defines the constants POLICY_0, POLICY_1, ... and EACH_POLICY(X), which is X(0) X(1)
 * ... Every byte of the arenas must agree in the end, and every address on the way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "same_program.h"

#include "policies.h"

enum { ARENA = 40000 };

uint32_t run_explored(const struct hw_policy *policy, void *arena, size_t bytes, struct hw_handle *handles,
                      uint32_t *trail);

/* What one way of running the program left behind. */
struct outcome {
    _Alignas(4096) unsigned char arena[ARENA];
    struct hw_handle handles[OBJECTS];
    uint32_t trail[CALLS];
    uint32_t peak;
};

static struct outcome folded;
static struct outcome at_run_time;
static struct outcome explored;

static void prepare(struct outcome *outcome)
{
    memset(outcome, 0xdb, sizeof *outcome);
    memset(outcome->handles, 0, sizeof outcome->handles);
    outcome->peak = 0;
}

#define RUN_FOLDED(i)                                                                                                  \
    static void run_folded_##i(void)                                                                                   \
    {                                                                                                                  \
        struct hw_heap *heap = hw_init(&POLICY_##i, folded.arena, ARENA);                                              \
        folded.peak = heap ? run_program(&POLICY_##i, heap, folded.handles, folded.trail) : 0;                         \
    }
EACH_POLICY(RUN_FOLDED)

/* Not inlined: the compiler must not know the policy. */
static __attribute__((noinline)) void run_at_run_time(const struct hw_policy *policy)
{
    struct hw_heap *heap = hw_init(policy, at_run_time.arena, ARENA);
    at_run_time.peak = heap ? run_program(policy, heap, at_run_time.handles, at_run_time.trail) : 0;
}

static void compare(unsigned policy, const char *what, const struct outcome *other)
{
    for (unsigned i = 0; i < CALLS; i++) {
        if (folded.trail[i] != other->trail[i]) {
            printf("policy %u, %s: call %u returned %u, folded %u\n", policy, what, i, (unsigned)other->trail[i],
                   (unsigned)folded.trail[i]);
            exit(1);
        }
    }
    if (folded.peak != other->peak || folded.peak == 0 || memcmp(folded.arena, other->arena, ARENA) != 0) {
        printf("policy %u, %s: arenas or peaks differ: %u, folded %u\n", policy, what, (unsigned)other->peak,
               (unsigned)folded.peak);
        exit(1);
    }
}

static void check(unsigned i, void (*run_folded)(void), const struct hw_policy *policy)
{
    static struct hw_policy copy;
    copy = *policy;
    prepare(&folded);
    prepare(&at_run_time);
    prepare(&explored);
    run_folded();
    run_at_run_time(&copy);
    explored.peak = run_explored(&copy, explored.arena, ARENA, explored.handles, explored.trail);
    compare(i, "at run time", &at_run_time);
    compare(i, "explored", &explored);
    printf("policy %u peak %u\n", i, (unsigned)folded.peak);
}

#define CHECK(i) check(i, run_folded_##i, &POLICY_##i);

int main(void)
{
    EACH_POLICY(CHECK)
    return 0;
}
