/* logs.h: the lines of logs of heap calls, and the calls that they report. Host only; cffi reads this file.
 *
 * Python describes the usual lines of a format by forms. A scanner turns each line that fits one into an event, and
 * leaves all others to Python. Events become the rows of a trace, up to the first that needs more than a look at the
 * live blocks, which Python does. */
#ifndef HW_LOGS_H
#define HW_LOGS_H

#include <stddef.h>
#include <stdint.h>

/* Live blocks by address. A block is its number << 32 | its size, or HW_LEFT_OUT of one that is in no trace. */
struct hw_blocks;
struct hw_blocks *hw_blocks_new(void);
void hw_blocks_delete(struct hw_blocks *blocks);
/* In place of a block: it is in no trace. */
#define HW_LEFT_OUT 0xFFFFFFFFFFFFFFFF

uint64_t hw_blocks_count(const struct hw_blocks *blocks);

/* Whether a block begins at the address: 1 or 0. O(log n). */
int hw_blocks_find(const struct hw_blocks *blocks, uint64_t address, uint64_t *block);
int hw_blocks_take(struct hw_blocks *blocks, uint64_t address, uint64_t *block);

/* Puts a block. Returns 0, or HW_NO_MEMORY. O(log n). */
int hw_blocks_put(struct hw_blocks *blocks, uint64_t address, uint64_t block);

/* The lowest block that overlaps `size` bytes, 0 for a block that occupies its address alone: 1 and its address, or 0.
 */
int hw_blocks_overlapped(const struct hw_blocks *blocks, uint64_t address, uint64_t size, uint64_t *first);

/* All blocks in the order of addresses; `put` are numbers that grow in the order in which they were put. O(n). */
void hw_blocks_list(const struct hw_blocks *blocks, uint64_t *address, uint64_t *block, uint64_t *put);

enum hw_log_kind {
    HW_LOG_LINE,    /* a line for Python */
    HW_LOG_NOTHING, /* no call, but a time, thread or site */
    HW_LOG_SKIPPED, /* the same of a line that should have been a call */
    HW_LOG_MALLOC,
    HW_LOG_CALLOC,
    HW_LOG_FREE,
    HW_LOG_FAIL,
    HW_LOG_RESIZE,
    HW_LOG_RESIZE_SELF, /* of an object that keeps its address */
    HW_LOG_OLD,         /* the block that the next HW_LOG_RESIZE_OLD resizes */
    HW_LOG_RESIZE_OLD,
    HW_LOG_BEGIN,   /* a thread's realloc begins */
    HW_LOG_END,     /* and ends */
    HW_LOG_CANCEL,  /* or its end is lost */
    HW_LOG_KIND,    /* a kind of blocks: its size */
    HW_LOG_OF_KIND, /* a block of the kind `address` is allocated */
    HW_LOG_NEWEST,  /* one, the newest, is freed */
    HW_LOG_CALL,    /* the function `old` is called */
    HW_LOG_RETURN,  /* and returns `address` */
    HW_LOG_KINDS
};

#define HW_LOG_AS_BEFORE 4294967295

/* A thread, site and process are numbers of the scanner's names; HW_LOG_AS_BEFORE where the line has none. */
struct hw_log_event {
    int64_t now_ns; /* INT64_MIN: as before */
    uint64_t address, old, size;
    uint32_t thread, site, process, align;
    uint32_t kind, form;
    uint64_t at; /* of the line in the text */
};

enum hw_log_code {
    HW_LOG_LITERAL,
    HW_LOG_SKIP, /* anything up to a literal; `flags`: a blank stands before it */
    HW_LOG_NUMBER,
    HW_LOG_TIME,     /* digits, times `factor` ns */
    HW_LOG_FRACTION, /* digits behind a point, of `factor` ns */
    HW_LOG_FLOAT,    /* digits with or without a point, times `factor` ns, rounded as Python does */
    HW_LOG_WORD,     /* up to a blank, or the first byte of the literal, which is looked up among the names */
    HW_LOG_RUN,      /* bytes of names of files and functions */
    HW_LOG_BLANKS,   /* with `flags`, spaces alone */
    HW_LOG_OPTIONAL, /* the next `count` parts */
    HW_LOG_LAST,     /* the line ends, or, with `flags`, anything follows */
    HW_LOG_CODES
};

/* What a number may look like. */
#define HW_LOG_HEX 1   /* 0x and digits in lower case */
#define HW_LOG_UPPER 2 /* its digits may be in upper case, too */
#define HW_LOG_BARE 4  /* without 0x */
#define HW_LOG_NIL 8   /* (nil) or nil */
#define HW_LOG_DECIMAL 16
#define HW_LOG_ZEROS 32 /* a decimal may begin with zeros */

/* What of the event a number or word is. */
enum hw_log_part_of {
    HW_LOG_NO_SLOT,
    HW_LOG_ADDRESS,
    HW_LOG_OLD_ADDRESS,
    HW_LOG_SIZE,
    HW_LOG_COUNT,
    HW_LOG_ALIGN,
    HW_LOG_THREAD,
    HW_LOG_SITE,
    HW_LOG_PROCESS,
    HW_LOG_PARTS
};

struct hw_log_part {
    uint8_t code, slot, flags, least, most; /* least and most: digits */
    uint8_t more; /* of a word: digits alone (1), a cell (2), without parentheses (4), letters and digits (8) */
    uint16_t count;
    uint32_t literal, length;
    int64_t factor;
};

/* A form of line: parts[first] and so on. What its event is without a part that says it. */
struct hw_log_form {
    uint32_t first, count, kind, searched; /* searched: of a line that lacks one of its literals it is surely not */
    uint32_t thread, site, process, plus;  /* plus: added to addresses */
    uint64_t old;
    int64_t now_ns;
};

struct hw_scanner;

/* There are one or more forms, of which all begin with the same `head` parts; what is given stays where it is. NULL if
 * there is no memory. */
struct hw_scanner *hw_scanner_new(const struct hw_log_form *forms, uint32_t count, const struct hw_log_part *parts,
                                  const char *literals, uint32_t head);
void hw_scanner_delete(struct hw_scanner *scanner);

/* The number of a name, a new one where it is not known; HW_LOG_AS_BEFORE if there is no memory. */
uint32_t hw_scanner_number(struct hw_scanner *scanner, const char *name, size_t length);
uint32_t hw_scanner_names(const struct hw_scanner *scanner);
const char *hw_scanner_name(const struct hw_scanner *scanner, uint32_t number, size_t *length);

/* Lines without any of these, `count` texts that end with a zero, and lines that begin with no byte of `starts`, are
 * about no call; NULL: any may be. */
void hw_scanner_ignore(struct hw_scanner *scanner, const char *needles, uint32_t count, const char *starts);

/* Where a scan stands, and what it writes. */
struct hw_scanned {
    size_t at; /* where the next line begins */
    struct hw_log_event *event;
    uint64_t *report; /* places of lines that may report a loss */
    uint32_t room, events, reports;
    uint32_t longest; /* longer lines are none */
};

/* Scans whole lines up to the end of the text or of the room. O(length). */
void hw_scanner_scan(struct hw_scanner *scanner, const char *text, size_t length, struct hw_scanned *scanned);

/* A realloc of a thread: `state` is 0 for none, 1 of a block that is not known, 2 of one that is. */
struct hw_log_pending {
    uint64_t old, block, state;
    int64_t now_ns; /* when it began */
};

/* Room for two rows, and as many changes of a column, for each event. */
struct hw_log_rows {
    uint8_t *op;
    uint32_t *id, *size;
    int64_t *now_ns;
    uint64_t *thread_row, *site_row, *align_row;
    uint32_t *thread, *site, *align;
};

/* What is known of a history before some calls, and after them. */
struct hw_log_state {
    struct hw_blocks *live;
    const struct hw_blocks *ended;  /* addresses of objects that others ended */
    struct hw_log_pending *pending; /* of each thread */
    const struct hw_log_rows *to;
    int64_t now_ns;
    uint64_t bytes, peak_bytes, objects, peak_objects, next_number, requests, requested_bytes;
    uint64_t ended_bytes, peak_without_ending, unknown_frees, unseen_frees, skipped;
    uint64_t old;
    uint32_t has_old, thread, site, overlap;
    uint64_t first_row; /* rows of the window before these */
    uint64_t room;      /* for rows */
    uint64_t rows, threads, sites, aligns;
};

/* Makes the calls of `count` events, of which `which` are the places or, where it is NULL, all. Returns how many were
 * made: the next, of which time, thread and site are set, needs Python. O(log n) a call. */
uint32_t hw_log_apply(struct hw_log_state *state, const struct hw_log_event *events, const uint32_t *which,
                      uint32_t count);

/* Puts events in the order of their times, as far as a window of `room` reaches. */
struct hw_log_order {
    struct hw_log_event *heap;
    uint64_t *place;
    uint64_t room, held, count, late;
    int64_t latest;
};

/* Adds events, and writes those that are in order, at most `count`; returns how many. O(log room) each. */
uint32_t hw_log_order(struct hw_log_order *order, const struct hw_log_event *events, uint32_t count,
                      struct hw_log_event *ordered);

/* Writes what is held, in order, up to `most` events; returns how many. */
uint32_t hw_log_order_end(struct hw_log_order *order, uint32_t most, struct hw_log_event *ordered);

struct hw_log_kind_of {
    uint64_t size;
    uint32_t newest; /* slot of its newest block, 0 for none */
};

struct hw_log_slot {
    uint64_t born;
    uint32_t below; /* slot of the next newest block, or the next free slot */
};

/* Kinds of blocks, with the live blocks of each, newest first. Slot 0 is no block's. */
struct hw_log_newest {
    struct hw_log_kind_of *kind;
    struct hw_log_slot *slot;
    uint64_t born, kinds;
    uint32_t slots, free_slot;
};

/* Makes calls of events that name kinds. There is room for `count` more kinds and slots. O(count). */
void hw_log_newest(struct hw_log_newest *newest, struct hw_log_event *events, uint32_t count);

enum hw_log_function {
    HW_LOG_NO_FUNCTION,
    HW_LOG_MALLOC_OF,
    HW_LOG_CALLOC_OF,
    HW_LOG_REALLOC,
    HW_LOG_MEMALIGN,
    HW_LOG_FREES
};

enum { HW_LOG_MOST_NESTED = 2 }; /* calls that the C library's functions make of one another; more: a lost return */

/* What a thread is in the midst of: one call, in which the C library may make others. */
struct hw_log_call {
    uint64_t size;
    uint32_t function, align;
    uint32_t nested[2], depth, seen;
};

/* Makes one event of a call and its return; thread[i] is the place of the thread of events[i] in `calls`. `made` has
 * room for three times as many events. Returns how many there are. O(count). */
uint32_t hw_log_calls(struct hw_log_call *calls, const uint32_t *thread, const struct hw_log_event *events,
                      uint32_t count, struct hw_log_event *made);

#endif
