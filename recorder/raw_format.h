/* The raw file a recorded process leaves behind, read by src/heapwright/traces/record.py.
 *
 *     0                     header
 *     RAW_RECORDS_AT        records, 32 bytes each, in the order in which their places were reserved
 *
 * The file is sparse, and far longer than what was written: the header says where the records end. They are mapped a
 * chunk at a time, so the last are of kind RAW_EMPTY; a process that was killed may leave one such record a thread in
 * the middle too. All numbers are in the byte order of the machine. */
#ifndef HEAPWRIGHT_RAW_FORMAT_H
#define HEAPWRIGHT_RAW_FORMAT_H

#include <stdatomic.h>
#include <stdint.h>

#define RAW_MAGIC "HWRAW02"

/* Multiples of 64 KiB, the largest page in use on Linux: a mapping must start on a page. */
#define RAW_RECORDS_AT 65536u
#define RAW_FIRST_CHUNK_BYTES 65536u
#define RAW_CHUNK_BYTES 1048576u

enum raw_kind {
    RAW_EMPTY,
    RAW_MALLOC,
    RAW_CALLOC,
    RAW_FREE,
    RAW_REALLOC_BEGIN,  /* pointer: the old block, which is nobody's until the end of the same thread's realloc */
    RAW_REALLOC_END,    /* pointer: the new block */
    RAW_REALLOC_FAILED, /* pointer: the old block, still allocated */
    RAW_REALLOC_FREED   /* pointer: the old block, freed because the new size was 0 */
};

struct raw_record {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t pointer;
    uint64_t size;               /* bytes requested, 0 for RAW_FREE */
    uint32_t thread;             /* from 0 in order of first call */
    uint16_t cost_ns;            /* mean processor time of the empty ones before it; 0 where there are none */
    uint8_t align_log2;          /* of the alignment asked for; 0 where none was */
    _Atomic(unsigned char) kind; /* written last: a record whose writer was killed stays RAW_EMPTY */
};

/* Before the record at RAW_FIRST_SAMPLE and every RAW_SAMPLE on, RAW_MEASURED empty ones are written and timed. A prime
 * keeps the sample out of step with pages and a program's loops; the first record pays for making the file. */
#define RAW_SAMPLE 4099u
#define RAW_FIRST_SAMPLE 30u
#define RAW_MEASURED 64u

struct raw_header {
    char magic[8];
    uint32_t pointer_bytes;
    uint32_t record_bytes;
    uint32_t pid;
    int32_t stopped; /* errno of what ended the recording early (a full disk), else 0 */
    uint64_t started_ns;
    uint64_t inherited;             /* records of `forked_from` that come before the first here */
    _Atomic(uint64_t) end;          /* of the part of the file that was mapped for records */
    _Atomic(uint64_t) growing_ns;   /* processor time spent making the file longer */
    _Atomic(uint64_t) processor_ns; /* processor time of the process, as of the last growth or its end */
    char forked_from[48];           /* name of the raw file of the process that forked this one; empty where none */
    char called[256];               /* what it was called as: argv[0] */
    char title[256];                /* argv[0] as of the last growth or its end: servers write their role there */
    char program[512];              /* path of the executable */
};

_Static_assert(sizeof(struct raw_record) == 32, "read by numpy with this layout");
_Static_assert(sizeof(struct raw_header) == 1136, "read by numpy with this layout");
_Static_assert(sizeof(struct raw_header) <= RAW_RECORDS_AT, "header and records do not overlap");

#endif
