/* faults.h: one run of an attack: a program of calls, a fault behind one of them, and what came of it.
 *
 * The heap is what attacked_heap.h declares: generated code of prefix `attacked`, or heaps/foreign/attacked_heap.h
 * before a third-party heap. The run replays the calls, injects the fault at a random call on a random live object,
 * continues, and frees everything in the end. Each object is filled with its own pattern, which shows any other write.
 * Freestanding, and the same on every machine: on_host.c gives each run a process, on_target.c an emulated processor.
 */
#ifndef HW_FAULTS_H
#define HW_FAULTS_H

#include <stddef.h>
#include <stdint.h>

#include "attacked_heap.h"

#ifndef ATTACKED_RESIZE
#define ATTACKED_RESIZE(heap, object, had, size) attacked_realloc(heap, object, size)
#endif

#ifdef CHECKED
#define MISUSED(heap) attacked_misused(heap)
#else
#define MISUSED(heap) ((void)(heap), 0u)
#endif

enum { MOST_OVERFLOW = 16 };

/* Outcomes of a run; the process that starts it detects a crash. */
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
static unsigned char *damaged; /* the object next to which the fault wrote; NULL: none */

/* The result of a run, which the process that started it reads. */
struct told {
    uint32_t at_once; /* the call under way is the first that could notice the fault */
    uint32_t refused; /* of a run without a fault; the others find it there */
    uint32_t fails;   /* a run without a fault came to a bad end */
};

static struct told *told;

/* Ends the run; its driver knows how. */
static _Noreturn void end(int outcome);

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
/* Any word between the lowest and the highest byte that objects had: a third-party heap has no walk. */
static unsigned char *some_word(int of_metadata);
#endif

/* Injects a fault; 0 if there is no object to inject it on. */
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

/* The first state of the numbers that the run i of a fault draws. */
static uint32_t seed_of(uint32_t seed, enum fault fault, uint32_t i)
{
    return (seed * FAULTS + (uint32_t)fault) * 1000003u + i * 2654435761u;
}

/* One run from the heap's beginning to its end(). */
static _Noreturn void carry_out(enum fault fault, uint32_t seed)
{
    state = seed;
    told->at_once = 0;
    heap = attacked_init(arena, arena_bytes);
    if (heap == NULL) {
        end(CRASHED);
    }
    const int outcome = run(fault);
    if (fault == FAULTS) {
        told->refused = refused;
        told->fails = broken || attacked_check(heap) != 0;
    }
    end(outcome);
}

#endif
