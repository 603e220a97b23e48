/* policy.h: all that a recipe can say, as one constant.
 *
 * The same source runs in two ways. The explorer passes a policy it filled at run time; firmware gets a constant one,
 * which the compiler (a `static const struct hw_policy`) or the generator (literal constants in the text it writes)
 * folds away. So every decision of the core that depends on the policy is a plain condition on these fields, in the
 * grammar in docs/developing/core-grammar.md.
 *
 * Fields marked "derived" follow from the others; `heapwright._recipes.policy` computes them. Sizes, offsets and
 * addresses are bytes; an address is an offset from the arena's base.
 */
#ifndef HW_POLICY_H
#define HW_POLICY_H

#include <stdint.h>

enum {
    HW_MAX_POOLS = 8,
    HW_MAX_CLASSES = 64,  /* sizes of a quick list, classes of a fixed pool */
    HW_DIRECT_LISTS = 8,  /* most lists of a quick pool that are compared with one after another in straight code */
    HW_REFILL_PART = 4,   /* what is cut for a list at a time is at most the bytes between two turns by this */
    HW_TURN_LISTS = 2,    /* most lists that a call looks at in a turn which gives back a few blocks at a time */
    HW_WAITING = 8,       /* freed blocks that wait before they are free, at level full */
    HW_CACHE_UNITS = 320, /* sizes of blocks in units whose list is looked up, not computed, where several share one */
    HW_MAP_STEPS = 256,   /* most steps of sizes, or of a region, that a map of classes has */
    HW_FILLED = 64,       /* bytes at either end of a freed payload that are filled then */
    HW_SAMPLED = 128,     /* words between them that are filled, in equal steps: all of a payload of some 500 bytes */
    HW_PADDED = 16,       /* most bytes between an object and its block's end that are filled */
    HW_CLASS_SHIFT = 3    /* bytes of the smallest block of the first class that the counters have, a power of two */
};

/* Sizes and sums of sizes stay below this, so that no 32-bit sum of the core overflows. */
#define HW_MAX_REQUEST 0x7fff0000u

/* pool kinds */
enum { HW_QUICK = 1, HW_GENERAL = 2, HW_FIXED = 3, HW_BUDDY = 4, HW_PARTITION = 5, HW_COMPACT = 6 };

/* general: how free blocks are found */
enum { HW_DOUBLE = 0, HW_SINGLE = 1, HW_IMPLICIT = 2, HW_TREE = 3 };
enum { HW_LIFO = 0, HW_FIFO = 1, HW_ADDRESS = 2, HW_SIZE = 3 };
enum { HW_FIRST = 0, HW_NEXT = 1, HW_BEST = 2, HW_WORST = 3, HW_EXACT = 4 };

/* general: where a search starts */
enum { HW_FROM_START = 0, HW_FROM_FREED = 1, HW_FROM_LOWEST_FREE = 2, HW_FROM_TRIED = 3 };

/* general: when neighbours merge */
enum { HW_NEVER = 0, HW_IMMEDIATE = 1, HW_FORWARD = 2, HW_LAZY = 3, HW_DEFERRED = 4, HW_SWEEP = 5 };

/* general: what becomes of the memory that was never used */
enum { HW_TOP_LAST = 0, HW_TOP_BUMP = 1, HW_TOP_LIST = 2, HW_TOP_EXTEND = 3, HW_TOP_BELOW = 4 };

/* general: how realloc changes a block where it lies */
enum {
    HW_RESIZE_IN_PLACE = 0,
    HW_RESIZE_BOTH_SIDES = 1,
    HW_RESIZE_KEEP = 2,
    HW_RESIZE_MOVE = 3,
    HW_RESIZE_KEEP_HALF = 4,
    HW_RESIZE_TRIM = 5,
    HW_RESIZE_SHRINK = 6,
    HW_RESIZE_WITH_REST = 7,
    HW_RESIZE_SMALLER_SIDE = 8,
    HW_RESIZE_DOWN_FIRST = 9
};

/* the heap: how large a block an aligned request looks for, where A is the alignment and M the smallest block: blocks
 * for the request and for A, and M; a payload with A + M more, in multiples of A; a payload with 2 A or 2 M more
 */
enum { HW_ALIGNED_BLOCKS = 0, HW_ALIGNED_MULTIPLE = 1, HW_ALIGNED_TWICE = 2 };

/* general: where a block that freed memory joins is in its list */
enum { HW_MERGED_FILED = 0, HW_MERGED_IN_PLACE = 1, HW_MERGED_AT_NEXT = 2 };

/* the heap: what makes it safe for several threads */
enum { HW_THREADS_NONE = 0, HW_THREADS_LOCK = 1, HW_THREADS_CACHED = 2 };

/* the heap: what a free looks at before it believes a pointer, see harden.h */
enum { HW_CHECKS_NONE = 0, HW_CHECKS_FREES = 1, HW_CHECKS_NEIGHBOURS = 2, HW_CHECKS_FULL = 3 };

/* quick: when cached blocks go back */
enum { HW_FLUSH_BEFORE_REFUSING = 0, HW_FLUSH_OVER_LIMIT = 1, HW_FLUSH_BEFORE_GROWING = 2, HW_FLUSH_IDLE = 3 };

/* what headers, tags and links are masked with: nothing, a key and the address, or what a few rounds make of both */
enum { HW_KEYS_NONE = 0, HW_KEYS_PLAIN = 1, HW_KEYS_MIXED = 2 };

/* How a number is stored in the arena. */
struct hw_field {
    uint32_t bytes;   /* width */
    uint32_t natural; /* 1: aligned to its width, so that one access reaches it; 0: accessed byte by byte */
};

/* How a link is stored: the address of a list node, which is the address of the block's payload. */
struct hw_links {
    struct hw_field field;
    uint32_t shift;      /* a stored link is the address >> shift */
    uint32_t hardened;   /* derived: 1: links are stored masked, and looked at before they are followed */
    uint32_t keyed;      /* derived: HW_KEYS_...; what headers and hardened links are masked with */
    uint32_t keys_at;    /* derived: address of the keys */
    uint32_t pairs;      /* derived: 1: behind a node's link lies another, or a mark */
    uint32_t end_at;     /* derived: address of the arena's end */
    uint32_t misused_at; /* derived: address of the number of invalid pointers and damaged links */
};

/* Exact-size caches in front of the pools below. */
struct hw_quick {
    struct hw_links links;
    uint32_t count;                 /* number of lists */
    uint32_t by_size;               /* 1: one list for every block size up to `up_to`; 0: the capacities listed */
    uint32_t up_to;                 /* largest cached block, header included */
    uint32_t sizes[HW_MAX_CLASSES]; /* payload capacity of each list's blocks */
    uint32_t limit_blocks;          /* most blocks a list keeps; 0: any number */
    uint32_t flush;                 /* when cached blocks go back to their pool */
    uint32_t flush_from;            /* a request from this size on empties the lists; 0: none does */
    uint32_t idle_share;            /* 1024ths of the heap asked for past the lists until what waited goes back */
    uint32_t release_most;          /* most idle blocks that go back at a time; 0: any number */
    uint32_t refill;                /* most blocks that are cut for a list at a time; 0: one */
    uint32_t octave_log2;           /* log2 of the lists to a power of two; 0: one for every block size */
    uint32_t tabled;                /* derived: 1 if `ranks` gives the list of a block, when several sizes share one */
    uint32_t ranks[HW_CACHE_UNITS]; /* derived: 1 + the list of the largest blocks up to N units; 0: none */
    uint32_t apart;                 /* 1: a block of a general pool that free memory borders is merged instead */
    uint32_t marks;                 /* derived: 1: cached blocks are marked, so that a check rarely walks their list */
    uint32_t mixed;                 /* derived: 1 where blocks come by that are too small or odd for any list */
    uint32_t least[HW_MAX_CLASSES]; /* derived: smallest request that each list's blocks serve */
    uint32_t largest;               /* derived: largest request that a list's blocks serve */
    uint32_t align;                 /* alignment of payloads */
    uint32_t block_header;          /* derived: header of the blocks cached here */
    uint32_t block_unit_shift;      /* derived: log2 of the unit of their sizes */
    uint32_t block_doubles;         /* derived: 1: their sizes are powers of two */
    uint32_t block_least;           /* derived: smallest block of the pool below */
    uint32_t heads_at;              /* derived: address of the list heads */
    uint32_t counts_at;             /* derived: address of the number of blocks in each list */
    uint32_t first;                 /* derived: number of the first list, where that of blocks of one unit is 0 */
    uint32_t left_at;               /* derived: address of the bytes to ask for past the lists until the next turn */
    uint32_t refills_at;            /* derived: address of how many more blocks than one each list's next miss cuts */
};

/* Blocks of any size with headers. */
struct hw_general {
    struct hw_links links;
    struct hw_field word;     /* the word at a block's start that holds its size and flags */
    uint32_t header;          /* bytes before the payload */
    uint32_t trailer;         /* bytes behind the payload */
    uint32_t overhead;        /* derived: bytes of a block that are not payload */
    uint32_t pad;             /* derived: most bytes between header and payload, where units are below the alignment */
    uint32_t node;            /* derived: bytes from a block's start to its links */
    uint32_t align;           /* alignment of payloads */
    uint32_t unit_shift;      /* log2 of the unit of block sizes */
    uint32_t min_block;       /* smallest block, header included */
    uint32_t powers;          /* 1: blocks are handed out in powers of two */
    uint32_t boundary_tags;   /* 1: a free block repeats its size for the block behind it */
    uint32_t tag_in_header;   /* 1: the tag lies in the header of the block behind; 0: in the free block's last word */
    uint32_t free_list;       /* HW_DOUBLE, HW_SINGLE, HW_IMPLICIT, HW_TREE */
    uint32_t order;           /* order of a list; 0: LIFO; 1: FIFO; 2: by address; 3: by size */
    uint32_t large_order;     /* order of a list of more than one size; 0: LIFO; 1: FIFO; 2: by address; 3: by size */
    uint32_t unsorted;        /* 1: free blocks wait in a queue, which the next search files in bins */
    uint32_t fit;             /* HW_FIRST, HW_NEXT, HW_BEST, HW_WORST, HW_EXACT */
    uint32_t search_percent;  /* share of the free blocks that a best fit looks at */
    uint32_t search_most;     /* most free blocks that one search of a list looks at; 0: all */
    uint32_t search_from;     /* HW_FROM_START, HW_FROM_FREED, HW_FROM_LOWEST_FREE, HW_FROM_TRIED */
    uint32_t split;           /* 0: blocks are handed out whole */
    uint32_t split_least;     /* smallest remainder that is split off */
    uint32_t split_tail;      /* 1: the request is cut from the block's end */
    uint32_t refile;          /* 1: a remainder goes where the order wants it, not to the place of what was split */
    uint32_t coalesce;        /* HW_NEVER, HW_IMMEDIATE, HW_FORWARD, HW_LAZY, HW_DEFERRED, HW_SWEEP */
    uint32_t merge_enough;    /* 1: a lazy merge ends once the block is large enough */
    uint32_t merged;          /* HW_MERGED_... */
    uint32_t coalesce_from;   /* smallest block that merges */
    uint32_t bins;            /* number of bins; 0: one list */
    uint32_t bin_linear;      /* blocks below this have a bin for each size; a power of two */
    uint32_t bin_steps_log2;  /* log2 of the bins an octave above that */
    uint32_t bin_last;        /* 1: the last bin holds all larger blocks, too */
    uint32_t bin_less;        /* derived: bytes of a block that do not count when its bin is chosen */
    uint32_t bin_round_up;    /* 1: a request looks only where every block is large enough */
    uint32_t bin_fill;        /* 1: such a request gets all bytes of the smallest block of its bin */
    uint32_t bin_unmark;      /* derived: 1: a bin is unmarked when it becomes empty; 0: when a search finds it so */
    uint32_t victim_up_to;    /* largest request carved from the last remainder; 0: there is none */
    uint32_t close_bins;      /* bins beyond an empty exact one that are tried first */
    uint32_t top;             /* HW_TOP_LAST, HW_TOP_BUMP, HW_TOP_LIST, HW_TOP_EXTEND, HW_TOP_BELOW */
    uint32_t end_word;        /* derived: 1: a used block of no size marks the end of the blocks */
    uint32_t grow_least;      /* least bytes by which the blocks grow */
    uint32_t resize;          /* HW_RESIZE_... */
    uint32_t region;          /* bytes of a region of its own; 0: shares the rest of the arena */
    uint32_t checks;          /* HW_CHECKS_...; with any of them a block that merges away is marked as free */
    uint32_t size_raw;        /* derived: the word is size | flags, without shifting */
    uint32_t flag_bits;       /* derived: flags in that word */
    uint32_t size_shift;      /* derived: log2 of the unit in which the word counts */
    uint32_t bin_first;       /* derived: unit number of the first bin's size */
    uint32_t bin_octave;      /* derived: log2 of the first size above the linear bins */
    uint32_t bin_linear_bins; /* derived: number of linear bins */
    uint32_t list_stride;     /* derived: bytes from one list head to the next */
    uint32_t heads_close;     /* derived: 1: heads lie closer than links count, so the first node says 0 of its */
    uint32_t lists_at;        /* derived: address of the list heads */
    uint32_t bitmap_at;       /* derived: address of the bitmap of bins that may hold blocks */
    uint32_t summary_at;      /* derived: address of the bitmap of bitmap words that are not zero */
    uint32_t unsorted_at;     /* derived: address of the queue's head, its tail behind it */
    uint32_t remainder_at;    /* derived: address of the last remainder of a small request */
    uint32_t top_at;          /* derived: address of the end of the blocks */
    uint32_t high_at;         /* derived: address of the high-water mark */
    uint32_t limit_at;        /* derived: address of the end of the memory it may use */
    uint32_t facing_at;       /* derived: address of the end of the blocks that grow toward those of this pool */
    uint32_t rover_at;        /* derived: address of the place where the next search starts */
    uint32_t count_at;        /* derived: address of the number of free blocks */
    uint32_t pending_at;      /* derived: address of the mark that blocks were freed since the last merge */
    uint32_t victim_at;       /* derived: address of the last remainder's start, its end behind it */
    uint32_t start;           /* derived: address of the first block */
};

/* Classes of fixed-size blocks. */
struct hw_fixed {
    struct hw_links links;
    struct hw_field word;               /* the header word that names the class */
    uint32_t count;                     /* number of classes */
    uint32_t sizes[HW_MAX_CLASSES];     /* payload bytes of a block; one number for each class, ascending */
    uint32_t doubles;                   /* derived: 1: they are powers of two one after the other, less `lacks` */
    uint32_t lacks;                     /* derived: bytes by which each falls short of its power of two */
    uint32_t counts[HW_MAX_CLASSES];    /* number of blocks; one for each class, where it does not grow */
    uint32_t grow;                      /* 1: classes grow from the end of the arena downwards */
    uint32_t page;                      /* bytes carved at a time when growing; 0: one block */
    uint32_t header;                    /* bytes before the payload */
    uint32_t trailer;                   /* derived: bytes behind the payload */
    uint32_t first_fit;                 /* 1: flags are searched; 0: free blocks are listed */
    uint32_t flags;                     /* derived: 1: flags say which blocks are in use, even where none is searched */
    uint32_t fall_through;              /* 1: an exhausted class borrows from the next larger ones */
    uint32_t align;                     /* alignment of payloads */
    uint32_t heads_at;                  /* derived: address of the list heads */
    uint32_t carved_at;                 /* derived: address of the number of blocks ever used; one for each class */
    uint32_t tails_at;                  /* derived: address of the chain ends, a class */
    uint32_t flags_at[HW_MAX_CLASSES];  /* derived: address of each class's flag bytes */
    uint32_t blocks_at[HW_MAX_CLASSES]; /* derived: address of the first block; one for each class */
    uint32_t end;                       /* derived: address of the end of its region */
    uint32_t mapped;                    /* derived: 1: maps give the class of a request and of an address */
    uint32_t size_step;                 /* derived: log2 of the bytes to an entry of the map of sizes */
    uint32_t size_even;                 /* derived: 1: each size but the largest ends such a step */
    uint8_t size_map[HW_MAP_STEPS + 1]; /* derived: class of the least request of each step, the first 0 bytes alone */
    uint32_t region_step;               /* derived: log2 of the bytes to an entry of the map of the region */
    uint32_t region_even;               /* derived: 1: each class's blocks begin such a step */
    uint8_t region_map[HW_MAP_STEPS];   /* derived: class at the start of each step */
    uint32_t ends_at[HW_MAX_CLASSES];   /* derived: address of the end of each class's blocks */
    uint32_t limit_at;                  /* derived: address of the lower end of the grown classes */
    uint32_t high_at;                   /* derived: address of the high-water mark of what lies below */
    uint32_t end_at;                    /* derived: address of the upper end of the grown classes */
};

/* Blocks whose sizes are powers of two, split into and merged from halves. */
struct hw_buddy {
    struct hw_links links;
    struct hw_field word;    /* the word at a block's start that holds its order and whether it is used */
    uint32_t header;         /* bytes before the payload */
    uint32_t trailer;        /* derived: bytes behind the payload */
    uint32_t region;         /* bytes of a region of its own; 0: shares the rest of the arena */
    uint32_t checks;         /* derived: 1: a block that merges away is marked as free, so that a second free shows */
    uint32_t min_block_log2; /* derived: log2 of the smallest block */
    uint32_t orders;         /* derived: number of block sizes */
    uint32_t list_stride;    /* derived: bytes from one list head to the next */
    uint32_t lists_at;       /* derived: address of the list heads, smallest order first */
    uint32_t top_at;         /* derived: address of the end of the blocks */
    uint32_t high_at;        /* derived: address of the high-water mark */
    uint32_t limit_at;       /* derived: address of the end of the memory it may use */
    uint32_t start;          /* derived: address of the first block */
};

/* Groups of partitions of one size, described outside the data. */
struct hw_partition {
    struct hw_field field; /* how each number in a descriptor is stored */
    uint32_t partition;    /* bytes of a partition */
    uint32_t most;         /* most partitions there can be */
    uint32_t grow;         /* 1: partitions share the rest of the arena with their descriptors; 0: they are counted */
    uint32_t descriptor;   /* bytes of a descriptor */
    uint32_t trailer;      /* derived: bytes behind the payload */
    uint32_t lists;        /* lists of free groups by their partitions, the last for all larger ones; 1: one list */
    uint32_t order;        /* HW_LIFO, HW_ADDRESS, HW_SIZE */
    uint32_t fit;          /* HW_FIRST, HW_BEST */
    uint32_t coalesce;     /* HW_NEVER, HW_IMMEDIATE */
    uint32_t checks;       /* HW_CHECKS_...; with any of them a group that merges away is marked as free */
    uint32_t misused_at;   /* derived: address of the number of invalid pointers and damaged lists */
    uint32_t head_at;      /* derived: address of the first free group's number, one a list */
    uint32_t bitmap_at;    /* derived: address of the bitmap of lists that hold groups */
    uint32_t top_at;       /* derived: address of the number of partitions below the top */
    uint32_t high_at;      /* derived: address of the high-water mark, an address */
    uint32_t limit_at;     /* derived: address of the lower end of the descriptors that grow */
    uint32_t end_at;       /* derived: address of the upper end of the descriptors that grow */
    uint32_t descriptors;  /* derived: address of the descriptors, which are counted */
    uint32_t start;        /* derived: address of the first partition */
    uint32_t end;          /* derived: address of the end of the region, whose partitions are counted */
};

/* Blocks that move, reached through handles. */
struct hw_compact {
    struct hw_field word; /* how each number in a header is stored */
    uint32_t header;      /* bytes before the payload; 0: handles hold sizes, and are chained */
    uint32_t align;       /* alignment of payloads */
    uint32_t lazy;        /* 1: holes are closed when room is short; 0: at once */
    uint32_t size_shift;  /* derived: log2 of the unit in which sizes are stored */
    uint32_t most;        /* derived: largest number of a handle that can be stored */
    uint32_t head_at;     /* derived: address of the first handle's number */
    uint32_t holes_at;    /* derived: address of the sum of bytes in holes */
    uint32_t top_at;      /* derived: address of the end of the blocks */
    uint32_t high_at;     /* derived: address of the high-water mark */
    uint32_t limit_at;    /* derived: address of the end of the memory for blocks */
    uint32_t start;       /* derived: address of the first block */
};

/* One pool; which member of the union counts is for `kind` to say. */
struct hw_pool {
    uint32_t kind;     /* HW_QUICK, HW_GENERAL, ... */
    uint32_t min_size; /* smallest request it takes */
    uint32_t max_size; /* largest request it takes */
    uint32_t fast_max; /* derived: largest request that tries the pool's fast path */
    uint32_t last;     /* derived: 1 if it owns all that no pool above owns */
    uint32_t cached;   /* derived: 1 where quick pools stand above it */
    uint32_t site;     /* class of the call sites that it serves alone, from 1; 0: any request */
    union {
        struct hw_quick quick;
        struct hw_general general;
        struct hw_fixed fixed;
        struct hw_buddy buddy;
        struct hw_partition partition;
        struct hw_compact compact;
    };
};

struct hw_policy {
    uint32_t align;           /* alignment of payloads */
    uint32_t checks;          /* HW_CHECKS_... */
    uint32_t reserve;         /* bytes that requests of low priority leave free; 0: there are none of low priority */
    uint32_t shares;          /* derived: 1 where some pool takes what the regions leave of the arena */
    uint32_t pool_count;      /* number of pools */
    uint32_t sited;           /* number of pools that serve call sites alone; they are the first */
    uint32_t flushes;         /* derived: 1 where some quick pool flushes before the heap grows */
    uint32_t ages;            /* derived: 1 where some quick pool gives back what waits idle */
    uint32_t refills;         /* derived: 1 where some quick pool has several blocks cut at a time */
    uint32_t rounds;          /* derived: 1 where some quick pool has one list for several sizes of blocks */
    uint32_t keeps;           /* derived: 1 where some quick pool may keep what a refused request could have */
    uint32_t empty_as_one;    /* derived: 1 where all pools give 0 bytes the block of 1 byte by themselves */
    uint32_t arena_align;     /* derived: alignment of the arena's first byte */
    uint32_t control;         /* derived: bytes of control data at the arena's base */
    uint32_t fixed_end;       /* derived: end of the control data and of all regions with a size of their own */
    uint32_t reach;           /* derived: largest arena that links and sizes can address */
    uint32_t shared_high_at;  /* derived: address of the high-water mark: the end of all that blocks ever covered */
    uint32_t shared_limit_at; /* derived: address of the end of the memory for blocks */
    uint32_t shared_end_at;   /* derived: address of the arena's end */
    uint32_t grows_down;      /* derived: 1 where blocks, descriptors or handles are taken from the arena's end */
    uint32_t end_header;      /* derived: header of the blocks that are taken there */
    uint32_t end_mark;        /* derived: bytes behind them that mark their end */
    uint32_t refused_at;      /* derived: address of the number of refused requests */
    uint32_t misused_at;      /* derived: address of the number of invalid pointers ignored */
    uint32_t end_seal_at;     /* derived: address of the seal of the end's address */
    uint32_t seals;           /* derived: 1 where a seal covers the control data that bound the blocks */
    uint32_t seal_at;         /* derived: address of that seal */
    uint32_t keys;            /* derived: words of key */
    uint32_t keys_at;         /* derived: address of the keys that mask headers, tags, links and guards */
    uint32_t counters_at;     /* derived: address of the counters; 0: none are kept */
    uint32_t classes_at;      /* derived: address of the counters of classes of blocks; 0: none are kept */
    struct hw_field tally;    /* derived: how the number of blocks of a class is stored */
    uint32_t spent;           /* derived: bytes of the arena that no block can cover */
    uint32_t waiting_at;      /* derived: address of the turn of the freed blocks that wait, these behind it */
    struct hw_field guard;    /* derived: how the guard behind a payload is stored */
    uint32_t aligned_search;  /* HW_ALIGNED_... */
    uint32_t threads;         /* HW_THREADS_... */
    uint32_t cache_bytes;     /* most payload bytes that the cache of a thread holds */
    uint32_t cache_largest;   /* derived: largest request that is cached */
    uint32_t cache_object;    /* derived: bytes of a cache itself */
    uint32_t caches_at;       /* derived: address of the first cache's address */
    uint32_t cache_cuts;      /* derived: 1 where a block may be cut into several: one pool, of blocks with headers */
    uint32_t depot_at;        /* derived: address of the depot's bytes, its lists behind them */
    uint32_t cache_finds_new; /* derived: 1 where a search may find memory that was never used */
    uint32_t cache_tabled;    /* derived: 1 if `cache_ranks` gives the list */
    uint32_t cache_ranks[HW_CACHE_UNITS]; /* derived: 1 + the list of blocks of N units; 0 below the smallest */
    struct hw_quick cache;                /* derived: the lists of a cache; addresses count from its start */
    struct hw_pool pools[HW_MAX_POOLS];
};

#endif
