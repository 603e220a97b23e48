/* types.h: input and output of replays. Host only, independent of the core; read by cffi unchanged. */
#ifndef HW_TYPES_H
#define HW_TYPES_H

#include <stddef.h>
#include <stdint.h>

struct hw_policy;

/* Operations of a trace. */
enum { HW_OP_MALLOC = 0, HW_OP_CALLOC = 1, HW_OP_REALLOC = 2, HW_OP_FREE = 3 };

/* How closely a replay looks at the heap: at the payloads before they go, and at all invariants after every call. */
enum { HW_CHECK_NOTHING = 0, HW_CHECK_PAYLOAD = 1, HW_CHECK_INVARIANTS = 2 };

/* What is broken, in addition to HW_BROKEN_... */
enum { HW_BROKEN_PAYLOAD = -1 };

/* Accesses of a call that has walked no further than any list allows. */
enum { HW_SHORT_WALK = 64 };

/* Why a replay could not begin: the system has no memory; the arena does not hold the control data and all regions. */
enum { HW_NO_MEMORY = -1, HW_NO_ROOM = -2 };

/* Numbers of struct hw_usage, the last 16 of which are its classes. */
enum { HW_USAGE = 21 };

/* What calls add up to where every request is served. */
struct hw_totals {
    uint64_t requests;        /* 0 where nothing was added up */
    uint64_t requested_bytes; /* sum of all requests */
    uint64_t requested_peak;  /* largest sum of live requested bytes */
    double weighted;          /* live requested bytes times microseconds, or times calls where there are no times */
    double weight;            /* microseconds, or calls */
};

/* A trace, ready to be replayed: arrays of `count` calls. */
struct hw_calls {
    uint64_t count;
    uint32_t slots;          /* objects are numbered so that no number is in use twice at a time; this many numbers */
    const uint8_t *op;       /* HW_OP_... */
    const uint32_t *slot;    /* the object's number */
    const uint32_t *size;    /* bytes requested; ignored for a free */
    const uint32_t *align;   /* alignment requested, 0 for the heap's own; NULL where no call asks for one */
    const int64_t *ts_us;    /* microseconds since the first call; NULL where there are no times */
    const uint8_t *low;      /* 1 where a request has low priority; NULL where none has */
    const uint32_t *thread;  /* the calling thread's number; NULL where there is one */
    uint32_t threads;        /* how many there are */
    const uint8_t *site;     /* class of the call sites that each asks for, from 1, 0: none; NULL where none has one */
    struct hw_totals totals; /* of all calls; not needed, but replays are faster with it */
};

/* How far two thresholds of a heap's only pool of blocks of any size may be moved, in bytes, while every comparison of
 * a replay comes out as it did: each to above its `over`, and up to its `up_to`. */
struct hw_margins {
    uint32_t split_over;  /* largest remainder that was not split off; 0: none was left */
    uint32_t split_up_to; /* smallest that was; UINT32_MAX: none */
    uint32_t merge_over;  /* largest free block that was too small to merge, where some sizes are; 0: none */
    uint32_t merge_up_to; /* smallest that was large enough; UINT32_MAX: none */
};

/* What one replay found; bytes unless said otherwise. */
struct hw_metrics {
    uint64_t requested_peak;  /* largest sum of live requested bytes */
    uint64_t requested_bytes; /* sum of all requests */
    uint64_t admitted_bytes;  /* sum of the requests that were served */
    uint64_t failed;          /* requests refused */
    uint64_t failed_low;      /* of these, those of low priority */
    uint64_t reads;           /* metadata loads */
    uint64_t writes;          /* metadata stores */
    uint64_t moved;           /* copied by realloc */
    uint64_t covered;         /* ever covered by blocks */
    uint64_t peak_requested;  /* live requested bytes when the last block was first covered */
    uint64_t peak_capacity;   /* payload capacity of live blocks at that time */
    uint64_t peak_headers;    /* headers of all blocks, used and free, at that time */
    uint64_t malloc_max;      /* accesses of the worst-case malloc or calloc */
    uint64_t malloc_p999;     /* accesses that 99.9 % of these calls do not exceed */
    uint64_t realloc_max;     /* accesses of the worst-case realloc, without its copy */
    uint64_t free_max;        /* as for malloc */
    uint64_t free_p999;
    uint64_t shared;         /* covered in the shared part of the arena */
    uint64_t live_blocks;    /* objects alive at the end */
    uint64_t skipped;        /* metadata accesses that were counted and not made: passed by the index, or of fill */
    uint64_t walked;         /* metadata accesses that it did not spare: what a call made beyond HW_SHORT_WALK */
    double mean_requested;   /* live requested bytes, averaged over time (over calls where there are no times) */
    uint64_t abandoned_call; /* the call after which the replay was abandoned; count if none */
    uint64_t broken_call;    /* first call after which a payload or an invariant was found broken; count if none */
    int broken;              /* what was broken: HW_BROKEN_... */
    int wiped;               /* 1: the arena is as it was, all 0; else the replay has left its bytes there */
    struct hw_margins margins;
    uint64_t same_from; /* the replay places all blocks the same in every arena from this size on, if its own is one of
                           these and no request failed; 0: not known */
};

/* What a replay has come to; none of it ever falls. */
struct hw_so_far {
    uint64_t calls;
    uint64_t used; /* bytes of the arena, control data and regions included */
    uint64_t reads;
    uint64_t writes;
    uint64_t moved;
    uint64_t malloc_max;
    uint64_t realloc_max;
    uint64_t free_max;
};

enum {
    HW_GROWING = 8
}; /* what never falls: bytes used, accesses, and the members of struct hw_so_far after these two */

/* Decides whether a replay goes on. The callback runs after each `every` calls, at least 1, if it did not run in the
 * last `latest`, or when the replay has reached all levels of some corner. It may change all these. */
struct hw_watch {
    uint64_t every;
    int (*go_on)(void *watcher, const struct hw_so_far *so_far);
    void *watcher;
    uint64_t latest;
    uint64_t corners;
    const uint64_t *levels;  /* uint64[corners][HW_GROWING] */
    const uint64_t *to_come; /* accesses that count as made, after k * stretch calls; NULL: none */
    uint64_t stretch;
};

/* A heap after a call. */
struct hw_moment {
    uint64_t call;
    uint32_t requested; /* live bytes */
    uint32_t allocated; /* bytes of live blocks with headers */
    uint32_t covered;   /* bytes ever covered */
    uint32_t unused;
};

/* How far a heap's memory came by some call. */
struct hw_covered {
    uint64_t footprint; /* bytes of the arena used so far */
    uint64_t blocks;    /* most bytes that live blocks took, with their headers */
};

/* A replay in stretches of calls, the kth up to the call before ends[k], which are ascending: of each, the first moment
 * with the fewest bytes requested, moments[2 k], and the first with the most. Or, where `covered` is not NULL, how far
 * memory came by its end, the most blocks within it alone; all 0 before. */
struct hw_timeline {
    const uint64_t *ends;
    struct hw_moment *moments;
    struct hw_covered *covered;
};

/* What a replay reports in addition to its metrics. */
struct hw_options {
    int check;                          /* HW_CHECK_... */
    const struct hw_watch *watch;       /* NULL: it is never abandoned */
    const struct hw_timeline *timeline; /* NULL, or stretches that hold all calls */
};

/* What bytes of the arena are. */
enum {
    HW_RUN_HEADER = 0,
    HW_RUN_USED = 1, /* payload of a live object */
    HW_RUN_FREE = 2,
    HW_RUN_CACHED = 3, /* payload of a block that waits to be used again */
    HW_RUN_CONTROL = 4,
    HW_RUN_UNTOUCHED = 5
};

/* A piece of the arena: a block, or a stretch that belongs to none. */
struct hw_piece {
    uint32_t offset;
    uint32_t size;   /* header included */
    uint32_t header; /* bytes of it before the payload; 0 outside all blocks */
    uint32_t state;  /* HW_RUN_... of what lies behind the header */
    uint32_t pool;   /* whose block it is; HW_MAX_POOLS outside all blocks */
};

/* A live object. */
struct hw_alive {
    uint32_t at;   /* address of its payload */
    uint32_t slot; /* its number */
    uint32_t size; /* bytes requested */
};

/* How far the part of the arena that has no regions of a size has ever been used: below `low`, and from `high` on. */
struct hw_extent {
    uint32_t low;
    uint32_t high;
    uint64_t grown; /* the call that used more of it last; count if none has */
};

/* One of several heaps that serve a program together, and the calls that it receives: arrays with room for two for each
 * of the program's. */
struct hw_memory {
    const struct hw_policy *policy;
    void *memory; /* `bytes` of it */
    size_t bytes;
    uint32_t least; /* sizes of the requests that it is offered */
    uint32_t most;
    uint64_t count; /* out: of its calls, as of struct hw_calls; a refused request is freed at once */
    uint8_t *op;
    uint32_t *slot;
    uint32_t *size;
    uint32_t *align;
    uint64_t *call; /* the program's */
};

/* What a loop at constant live bytes does: objects that shrink, grow, are resized at random; small ones that give way
 * to large ones and back; a producer and a consumer; sizes that drift; a saw-tooth; aligned ones among others; all of
 * one size after all of another. */
enum {
    HW_LOOP_SHRINK = 0,
    HW_LOOP_GROW = 1,
    HW_LOOP_RESIZE = 2,
    HW_LOOP_PHASES = 3,
    HW_LOOP_QUEUE = 4,
    HW_LOOP_DRIFT = 5,
    HW_LOOP_SAW = 6,
    HW_LOOP_ALIGNED = 7,
    HW_LOOP_REFILL = 8
};

/* A loop; its calls are the same for all heaps that refuse none. */
struct hw_loop {
    uint32_t kind;         /* HW_LOOP_... */
    const uint32_t *sizes; /* to draw requests from, ascending */
    uint32_t count;        /* of them, at least 1 */
    uint32_t live;    /* most bytes that objects of one time count for, each 8 more than it asks for; at least twice the
                         largest size */
    uint32_t objects; /* most objects that do, at least 2 */
    uint64_t period;  /* calls after which phases change and drifting sizes restart, at least 1 */
    uint64_t seed;
    uint32_t decade;     /* the loop ends after this many points without growth, */
    uint64_t enough;     /* but not before this many calls */
    uint32_t at_refusal; /* 1: it ends at the first refusal */
};

/* What came of a loop. */
struct hw_endured {
    uint64_t calls;
    uint64_t failed; /* requests refused */
    uint64_t blocks; /* most bytes that live blocks took, with their headers */
    uint32_t points; /* that were reported */
};

/* Output for a loop's calls: columns as in struct hw_calls, and how many they have room for. */
struct hw_written {
    uint64_t room;
    uint8_t *op;
    uint32_t *slot;
    uint32_t *size;
    uint32_t *align;
    uint32_t *thread;
};

/* Output for a loop's growth: covered[k] is the high-water mark of its blocks after the kth of these numbers of calls,
 * which ascend. */
struct hw_points {
    const uint64_t *calls;
    uint32_t count;
    struct hw_covered *covered;
};

#endif
