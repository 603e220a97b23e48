/* The raw file a recorded process leaves behind, read by src/heapwright/_traces/raw.py.
 *
 *     0                     header
 *     RAW_MODULES_AT        where sites are recorded: the executable and the libraries that made calls, up to the first
 * empty RAW_RECORDS_AT        records, 16 bytes each, in runs
 *
 * A run belongs to one thread, which alone fills it, from its begin on. It starts with a record RAW_RUN and one
 * RAW_CLOCK; runs stand in the order in which they were reserved, their lengths are multiples of RAW_LEAST_RUN, and
 * what a thread did not fill is empty. The order of events of several threads is that of their ticks.
 *
 * The file is sparse, and up to 64 MiB and as much again as was written longer: the header says where the records end.
 * All numbers are in the byte order of the machine. */
#ifndef HEAPWRIGHT_RAW_FORMAT_H
#define HEAPWRIGHT_RAW_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#define RAW_MAGIC "HWRAW03"

/* Multiples of 64 KiB, the largest page in use on Linux: a mapping must start on a page. */
#define RAW_RECORDS_AT 65536u
#define RAW_FIRST_CHUNK_BYTES 65536u
#define RAW_CHUNK_BYTES 1048576u
#define RAW_LEAST_RUN 16u

/* The lowest three bits of `what`: every allocator aligns to 8 bytes, so the rest of it is the pointer. */
enum raw_kind {
    RAW_EMPTY,  /* or a note, where any other bit of `what` is set */
    RAW_MALLOC, /* this and RAW_CALLOC: with pointer 0 the request failed */
    RAW_CALLOC,
    RAW_FREE,
    RAW_REALLOC_BEGIN,  /* pointer: the old block, which has no owner until the end of the same thread's realloc */
    RAW_REALLOC_END,    /* pointer: the new block */
    RAW_REALLOC_FAILED, /* pointer: the old block, still allocated */
    RAW_REALLOC_FREED   /* pointer: the old block, freed because the new size was 0 */
};

/* The lowest eight bits of `what`, where its lowest three are 0. The number above them is called n here. */
enum raw_note {
    RAW_RUN = 8,    /* a run of thread n begins; threads count from 0 in order of their first run */
    RAW_CLOCK = 16, /* n: nanoseconds since `started_ns`; more: ticks then, in full */
    RAW_ALIGN = 24, /* the next record is of a call that asked for an alignment of 2^n bytes */
    RAW_SITE = 40,  /* more: where the next call was made: the address it returns to */
    RAW_COST = 32   /* n: mean processor time, in nanoseconds, of RAW_MEASURED empty records that were just written */
};

struct raw_record {
    _Atomic(uint64_t) what; /* written last: a record whose writer was killed stays empty */
    uint64_t more; /* of a call: the lowest 32 bits of its ticks, above 32 of its size, which is at most RAW_HUGE */
};

#define RAW_HUGE 4294967295u /* bytes; stands for all larger requests, too */
#define RAW_MEASURED 64u

/* More ticks than this from one call of a thread to its next, and a RAW_CLOCK stands between. */
#define RAW_LONGEST_GAP 1073741824u

struct raw_header {
    char magic[8];
    uint32_t pointer_bytes;
    uint32_t record_bytes;
    uint32_t pid;
    int32_t stopped;     /* errno of what ended the recording early (a full disk), else 0 */
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    uint64_t started_ticks;
    uint64_t forked_ticks; /* when this process was forked; what `forked_from` recorded until then it inherited */
    uint64_t limit;        /* of calls, or 0 where there is none; a few more may be recorded */
    uint64_t noted_ns;     /* nanoseconds since the start and ticks, as of the last growth or the end */
    uint64_t noted_ticks;
    _Atomic(uint64_t) end;          /* of the part of the file that was mapped for records */
    _Atomic(uint64_t) growing_ns;   /* processor time spent making the file longer */
    _Atomic(uint64_t) processor_ns; /* processor time of the process, as of the last growth or its end */
    char forked_from[48];           /* name of the raw file of the process that forked this one; empty where none */
    char called[256];               /* what it was called as: argv[0] */
    char title[256];                /* argv[0] as of the last growth or its end: servers write their role there */
    char program[512];              /* path of the executable */
};

#define RAW_MODULES_AT 4096u
#define RAW_MODULES 240u

struct raw_module {
    uint64_t begin;        /* address */
    _Atomic(uint64_t) end; /* written last */
    uint64_t bias;         /* what to take off an address for the file's own */
    char path[232];
};

_Static_assert(sizeof(struct raw_module) == 256, "read by numpy with this layout");
_Static_assert(RAW_MODULES_AT + RAW_MODULES * sizeof(struct raw_module) <= RAW_RECORDS_AT, "modules fit");
_Static_assert(sizeof(struct raw_record) == 16, "read by numpy with this layout");
_Static_assert(sizeof(struct raw_header) == 1168, "read by numpy with this layout");
_Static_assert(sizeof(struct raw_header) <= RAW_MODULES_AT, "header and modules do not overlap");

#endif
