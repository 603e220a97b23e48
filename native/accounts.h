/* accounts.h: what the calls of a replay add up to: their costs, and live bytes over time. */
#ifndef HW_ACCOUNTS_H
#define HW_ACCOUNTS_H

#include "calls.h"
#include "costs.h"
#include "replay.h"
#include "spans.h"

struct accounts {
    struct costs allocating; /* malloc and calloc */
    struct costs freeing;
    uint64_t realloc_max;
    double weighted; /* live requested bytes times microseconds, or times calls */
    double weight;
};

/* Books what a call cost where it arose. */
static inline void account_cost(struct accounts *a, uint8_t op, uint64_t cost)
{
    if (op == HW_OP_REALLOC) {
        a->realloc_max = cost > a->realloc_max ? cost : a->realloc_max;
        return;
    }
    costs_add(op == HW_OP_FREE ? &a->freeing : &a->allocating, cost);
}

static void account_time(struct accounts *a, const struct replay *r, uint64_t i)
{
    const double span = span_of(r->calls, i);
    a->weighted += span * (double)r->requested;
    a->weight += span;
}

/* Takes the sums of calls that were all served. */
static void take_totals(struct replay *r, struct accounts *a, const struct hw_totals *totals)
{
    r->metrics->requested_bytes = r->metrics->admitted_bytes = totals->requested_bytes;
    r->metrics->requested_peak = totals->requested_peak;
    a->weighted = totals->weighted;
    a->weight = totals->weight;
}

/* Keeps sums call by call from now on: the call i is the first that was refused. 0 without memory. */
static HW_NOINLINE int begin_to_tally(struct replay *r, struct accounts *a, uint64_t i)
{
    struct hw_totals totals;
    if (hw_total(r->calls, i, &totals) != 0) {
        return 0;
    }
    take_totals(r, a, &totals);
    r->metrics->requested_bytes += r->calls->size[i];
    r->tallies = 1;
    return 1;
}

static void tell_accounts(const struct accounts *a, struct hw_metrics *metrics)
{
    metrics->malloc_max = a->allocating.max;
    metrics->malloc_p999 = costs_p999(&a->allocating);
    metrics->realloc_max = a->realloc_max;
    metrics->free_max = a->freeing.max;
    metrics->free_p999 = costs_p999(&a->freeing);
    metrics->mean_requested = a->weight > 0.0 ? a->weighted / a->weight : 0.0;
}

/* Allocates what a replay needs in addition to the heap; 0 if there is no memory. */
static int accounts_open(struct accounts *a, const struct hw_calls *calls)
{
    uint64_t frees = 0;
    uint64_t reallocs = 0;
    for (uint64_t i = 0; i < calls->count; i++) {
        frees += calls->op[i] == HW_OP_FREE;
        reallocs += calls->op[i] == HW_OP_REALLOC;
    }
    return costs_open(&a->freeing, frees) && costs_open(&a->allocating, calls->count - frees - reallocs);
}

static void accounts_close(struct accounts *a)
{
    if (a) {
        free(a->freeing.dear);
        free(a->allocating.dear);
    }
    free(a);
}

#endif
