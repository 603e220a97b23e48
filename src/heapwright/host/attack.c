/* attack.c: commits one fault in a run of a program, many times, and tells what came of each.
 *
 *     attack CALLS ARENA_BYTES RUNS SEED
 *
 * The heap is what attacked_heap.h declares: generated code, or ../foreign/attacked_heap.h before somebody else's.
 *
 * CALLS is a record a call, of three uint32: operation in the upper 2 bits of the first, over the object's slot; size;
 * alignment. Every run is a process of its own, which replays the calls on generated code of prefix `attacked`, commits
 * the fault at a random call on a random live object, goes on, and frees everything in the end. Each object is filled
 * with a pattern of its own, which shows when somebody else writes there. A line for each kind of fault: its name,
 * runs, and how many were noticed at once, noticed later, harmless, silent, and crashed; then each signal that ended a
 * run, and how many it ended. A heap that stops the program has noticed. Nothing here lies in memory of malloc, which
 * may be what is attacked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attacked_heap.h"

#ifndef ATTACKED_RESIZE
#define ATTACKED_RESIZE(heap, object, had, size) attacked_realloc(heap, object, size)
#endif

#ifdef CHECKED
#define MISUSED(heap) attacked_misused(heap)
#else
#define MISUSED(heap) ((void)(heap), 0u)
#endif

enum { SECONDS = 2, MOST_OVERFLOW = 16, OWN_STATUS = 64, SIGNALS = 65 };

/* What came of a run: the process's status, less OWN_STATUS. One that ends otherwise was stopped by its heap, crashed,
 * or hung until its alarm. */
enum { AT_ONCE, LATER, HARMLESS, SILENT, CRASHED, OUTCOMES };

enum fault {
    DOUBLE_FREE,
    FOREIGN_FREE,
    INTERIOR_FREE,
    CHANGED_HEADER,
    UNDERFLOW,
    OVERFLOW_1,
    OVERFLOW_4,
    OVERFLOW_16,
    USE_AFTER_FREE,
    WILD_WRITE,
    METADATA_WRITE,
    FAULTS
};

static const char *const NAMES[FAULTS] = {"double_free",    "foreign_free", "interior_free", "changed_header",
                                          "underflow",      "overflow_1",   "overflow_4",    "overflow_16",
                                          "use_after_free", "wild_write",   "metadata_write"};

struct call {
    uint32_t op_and_slot;
    uint32_t size;
    uint32_t align;
};

struct object {
    unsigned char *at;
    uint32_t size;
    uint32_t number; /* of the call that made it */
};

static const struct call *calls;
static uint32_t count;
static struct object *objects;
static uint32_t slots;
static unsigned char *arena;
static size_t arena_bytes;
static struct attacked_heap *heap;
static uint32_t state;
static uint32_t refused;
static int broken;             /* some object does not hold what was written there */
static unsigned char *damaged; /* the object beside which the fault wrote; NULL: none */

/* What the process of a run leaves to the one that waits for it. */
static struct {
    int at_once; /* the call under way is the first that could notice the fault */
    uint32_t refused;
    int fails; /* a run without a fault came to a bad end */
} *told;

static void end(int outcome)
{
    _exit(OWN_STATUS + outcome);
}

static uint32_t random_below(uint32_t bound)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 4) * bound >> 28);
}

static void scribble(unsigned char *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        at[i] = (unsigned char)random_below(256);
    }
}

static unsigned char pattern(uint32_t number, uint32_t i)
{
    return (unsigned char)((number * 2654435761u + i * 40503u) >> 11);
}

static void fill(const struct object *o)
{
    for (uint32_t i = 0; i < o->size; i++) {
        o->at[i] = pattern(o->number, i);
    }
}

static void look_at(const struct object *o, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        broken |= o->at[i] != pattern(o->number, i);
    }
}

/* Ends the run where the heap has noticed something in the call that told->at_once speaks of. */
static void see(void)
{
    if (MISUSED(heap) != 0) {
        end(told->at_once ? AT_ONCE : LATER);
    }
    told->at_once = 0;
}

static void release(struct object *o)
{
    unsigned char *const at = o->at;
    look_at(o, o->size);
    o->at = NULL;
    told->at_once = at == damaged;
    attacked_free(heap, at);
    see();
}

static void resize(struct object *o, uint32_t size, uint32_t number)
{
    unsigned char *const had = o->at;
    told->at_once = had == damaged;
    unsigned char *const at = ATTACKED_RESIZE(heap, had, o->size, size);
    see();
    refused += at == NULL;
    if (at) {
        o->at = at;
        look_at(o, o->size < size ? o->size : size);
        o->size = size;
        o->number = number;
        fill(o);
    }
}

static void play(uint32_t i)
{
    const struct call *c = &calls[i];
    struct object *o = &objects[c->op_and_slot & 0x3fffffffu];
    const uint32_t op = c->op_and_slot >> 30;
    if (op < 2u) {
        o->at = c->align ? attacked_aligned_alloc(heap, c->align, c->size) : attacked_malloc(heap, c->size);
        see();
        o->size = c->size;
        o->number = i;
        refused += o->at == NULL;
        if (o->at) {
            fill(o);
        }
    } else if (o->at) {
        if (op == 2u) {
            resize(o, c->size, i);
        } else {
            release(o);
        }
    }
}

/* A live object of at least `least` bytes; NULL where there is none. */
static struct object *some_object(uint32_t least)
{
    const uint32_t from = random_below(slots);
    for (uint32_t i = 0; i < slots; i++) {
        struct object *o = &objects[(from + i) % slots];
        if (o->at && o->size >= least) {
            return o;
        }
    }
    return NULL;
}

static void free_wrongly(void *pointer)
{
    told->at_once = 1;
    attacked_free(heap, pointer);
    see();
}

static void free_interior(const struct object *o)
{
    const uint32_t steps = (o->size - 1u) / ATTACKED_ALIGNMENT;
    free_wrongly(o->at + ATTACKED_ALIGNMENT * (1u + random_below(steps)));
}

static void use_after_free(struct object *o)
{
    unsigned char *const at = o->at;
    const uint32_t bytes = o->size < 4u ? o->size : 4u;
    const uint32_t offset = random_below(o->size - bytes + 1u);
    release(o);
    scribble(at + offset, bytes);
}

static void write_beside(struct object *o, int offset, uint32_t bytes)
{
    damaged = o->at;
    scribble(o->at + offset, bytes);
}

#ifdef ATTACKED_BLOCK_FREE
/* Whether the word at `offset` is the heap's: control data, a header, or a free block's links or tag. */
static int is_metadata(uint32_t offset)
{
    struct attacked_block block = {0, 0, 0, 0, 0};
    int first = 1;
    while (attacked_next_block(heap, &block)) {
        const uint32_t from = offset - block.offset;
        if (first && offset < block.offset) {
            return 1;
        }
        first = 0;
        if (offset >= block.offset && from < block.size) {
            return from < block.header ||
                   (block.state == ATTACKED_BLOCK_FREE && (from < block.header + 8u || from + 4u >= block.size));
        }
    }
    return 0;
}

/* Any word of the arena; where asked for, one of the heap's. */
static unsigned char *some_word(int of_metadata)
{
    const uint32_t words = attacked_statistics(heap).peak / 4u;
    uint32_t offset = 4u * random_below(words);
    while (of_metadata && !is_metadata(offset)) {
        offset = 4u * random_below(words);
    }
    return arena + offset;
}
#else
/* Any word that is mapped between the lowest and the highest byte that objects had. */
static unsigned char *some_word(int of_metadata)
{
    (void)of_metadata;
    const size_t words = (attacked_highest - attacked_lowest) / 4u;
    for (;;) {
        const uintptr_t at = (attacked_lowest & ~(uintptr_t)3) + (size_t)random_below((uint32_t)words) * 4u;
        if (msync((void *)(at & ~(uintptr_t)4095), 4096, MS_ASYNC) == 0) {
            return (unsigned char *)at;
        }
    }
}
#endif

/* Commits a fault; 0 where no object is there to commit it on. */
static int commit(enum fault fault)
{
    static unsigned char elsewhere[256] __attribute__((aligned(16)));
    struct object *o = some_object(fault == INTERIOR_FREE ? ATTACKED_ALIGNMENT + 1u : 1u);
    if (o == NULL) {
        return 0;
    }
    unsigned char *const at = o->at;
    if (fault == DOUBLE_FREE) {
        release(o);
        free_wrongly(at);
    } else if (fault == FOREIGN_FREE) {
        scribble(elsewhere, sizeof elsewhere);
        free_wrongly(elsewhere + 128);
    } else if (fault == INTERIOR_FREE) {
        free_interior(o);
    } else if (fault == CHANGED_HEADER) {
        damaged = at;
        at[-1 - (int)random_below(4)] ^= (unsigned char)(1u << random_below(8));
        release(o);
    } else if (fault == UNDERFLOW) {
        write_beside(o, -4, 4);
    } else if (fault == USE_AFTER_FREE) {
        use_after_free(o);
    } else if (fault == WILD_WRITE || fault == METADATA_WRITE) {
        scribble(some_word(fault == METADATA_WRITE), 4);
    } else {
        write_beside(o, (int)o->size, fault == OVERFLOW_1 ? 1u : fault == OVERFLOW_4 ? 4u : MOST_OVERFLOW);
    }
    return 1;
}

/* Replays all calls, with a fault behind one of them, or with none (FAULTS). */
static int run(enum fault fault)
{
    const uint32_t when = random_below(count);
    int done = fault == FAULTS;
    for (uint32_t i = 0; i < count; i++) {
        play(i);
        if (!done && i >= when) {
            done = commit(fault);
        }
    }
    for (uint32_t i = 0; i < slots; i++) {
        if (objects[i].at) {
            release(&objects[i]);
        }
    }
    return broken || attacked_check(heap) != 0 || refused != told->refused ? SILENT : HARMLESS;
}

/* The status of a process that replays once. */
static int status_of(enum fault fault, uint32_t seed)
{
    int status = 0;
    told->at_once = 0;
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        alarm(SECONDS);
        state = seed;
        heap = attacked_init(arena, arena_bytes);
        const int outcome = run(fault);
        if (fault == FAULTS) {
            told->refused = refused;
            told->fails = broken || attacked_check(heap) != 0;
        }
        end(outcome);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("attack");
        exit(1);
    }
    return status;
}

static int is_stop(int number)
{
    return number == SIGABRT || number == SIGTRAP || number == SIGILL;
}

static int outcome_of(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) >= OWN_STATUS && WEXITSTATUS(status) < OWN_STATUS + CRASHED) {
        return WEXITSTATUS(status) - OWN_STATUS;
    }
    const int stopped = WIFEXITED(status) || is_stop(WTERMSIG(status));
    return !stopped ? CRASHED : told->at_once ? AT_ONCE : LATER;
}

static void *pages(size_t bytes)
{
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        perror("attack");
        exit(1);
    }
    return found;
}

static void read_calls(const char *path)
{
    const int file = open(path, O_RDONLY);
    const off_t bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (bytes < 0 || (calls = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    count = (uint32_t)((size_t)bytes / sizeof *calls);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = calls[i].op_and_slot & 0x3fffffffu;
        slots = slot >= slots ? slot + 1u : slots;
    }
    objects = mmap(NULL, slots * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void attack_with(enum fault fault, uint32_t runs, uint32_t seed)
{
    uint32_t outcomes[OUTCOMES] = {0}, signals[SIGNALS] = {0};
    for (uint32_t i = 0; i < runs; i++) {
        const int status = status_of(fault, (seed * FAULTS + (uint32_t)fault) * 1000003u + i * 2654435761u);
        outcomes[outcome_of(status)]++;
        signals[WIFSIGNALED(status) ? WTERMSIG(status) : 0]++;
    }
    printf("%s %u", NAMES[fault], runs);
    for (int i = 0; i < OUTCOMES; i++) {
        printf(" %u", outcomes[i]);
    }
    for (int i = 1; i < SIGNALS; i++) {
        if (signals[i]) {
            printf(" %d %u", i, signals[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: attack CALLS ARENA_BYTES RUNS SEED\n");
        return 2;
    }
    read_calls(argv[1]);
    told = pages(sizeof *told);
    arena_bytes = strtoul(argv[2], NULL, 10);
    const size_t mapped = (arena_bytes + 65536u) & ~(size_t)65535u;
    arena = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (objects == MAP_FAILED || arena == MAP_FAILED) {
        perror("attack");
        return 1;
    }
    const int status = status_of(FAULTS, 1);
    if (outcome_of(status) != HARMLESS && outcome_of(status) != SILENT) {
        fprintf(stderr, "no heap in an arena of %s bytes\n", argv[2]);
        return 1;
    }
    if (told->fails) {
        fprintf(stderr, "the heap fails without a fault\n");
        return 1;
    }
    for (enum fault fault = 0; fault < FAULTS; fault++) {
#ifndef ATTACKED_BLOCK_FREE
        if (fault == METADATA_WRITE) {
            continue; /* nobody tells where somebody else's heap keeps it */
        }
#endif
        attack_with(fault, (uint32_t)strtoul(argv[3], NULL, 10), (uint32_t)strtoul(argv[4], NULL, 10));
    }
    return 0;
}
