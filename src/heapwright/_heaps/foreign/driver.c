/* driver.c: replays a trace on a third-party heap, in a process of its own.
 *
 *     driver CALLS PASSES BYTES [written]       prints the nanoseconds of CPU time that each pass took; with a fourth
 *                                               word each object is written once, as a program would
 *     driver CALLS replay BYTES RESULT [AT]     replays once, checks every object, and fills in `struct result`
 *     driver CALLS serves BYTES RESULT SECONDS  the same, up to the first refusal or that much CPU time
 *
 * CALLS is what heapwright._measure.host.calls writes: number of calls and slots, one record a call, and each call's
 * weight (int64). RESULT is mapped, so that it shows how far a heap came that crashed or hung. AT receives the address
 * of each object allocated (uint64 a call; from the arena's start where there is one). It stays as it is where the call
 * returned no object, or one of a recipe in front.
 *
 * The driver itself allocates nothing and keeps nothing in variables of static storage: malloc may be the heap under
 * test, and between passes all such variables of the program are set back to what they were. Memory of its own is
 * shared, which keeps it apart from the heap's in the kernel's figures for the process.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What heapwright._heaps.foreign.source writes for an adapter. */
extern const unsigned foreign_align;    /* every address is a multiple of this */
extern const unsigned foreign_poison;   /* the byte that marks untouched memory */
extern const unsigned foreign_moves;    /* what malloc returns is a handle; foreign_pointer leads on */
extern const unsigned foreign_capacity; /* bytes of the heap's own array, where its size does not follow the arena's */
extern const unsigned foreign_has_realloc, foreign_has_aligned_alloc, foreign_has_usable_size;
extern const unsigned foreign_front_bytes; /* of the arena of a recipe in front */
unsigned char *foreign_array(void);        /* the heap's own; NULL where it is given its arena */
unsigned char *foreign_front(void);        /* NULL where there is no recipe in front */
int foreign_init(void *memory, size_t bytes);
void *foreign_malloc(size_t size);
void *foreign_calloc(size_t size);
void *foreign_realloc(void *pointer, size_t size);
void *foreign_aligned_alloc(size_t align, size_t size);
void foreign_free(void *pointer);
size_t foreign_usable_size(void *pointer);
void *foreign_pointer(void *handle);

#define PAGE 4096u
#define CANARY 64u           /* bytes behind the arena that must not be written */
#define SAMPLE_STEP 4096u    /* a new peak of live bytes is worth a look at resident memory when this and 1/64 higher */
#define OBJECT_BYTES_MARK 1u /* set in every byte of a pattern and in none of the poison */

enum { MALLOC, CALLOC, REALLOC, FREE };
enum { STARTING, INITIALISING, REPLAYING, DONE };
enum { SOUND, CORRUPT, MISALIGNED, OUTSIDE, OVERRUN, REFUSED_ARENA, NO_MEMORY };

struct call {
    uint32_t op_and_slot; /* operation in the upper 2 bits */
    uint32_t size;
    uint32_t align;
};

/* heapwright._heaps.foreign.heap reads this by position: eight-byte fields only. */
struct result {
    uint64_t stage;
    uint64_t call; /* the one under way */
    uint64_t fault;
    uint64_t failed;
    uint64_t requested_bytes;
    uint64_t admitted_bytes;
    uint64_t requested_peak;
    uint64_t footprint; /* UINT64_MAX where it is not known */
    double weighted;    /* live requested bytes times weight */
    double weight;
};

struct object {
    unsigned char *base;    /* what the heap returned, a handle where objects move; NULL where it refused */
    unsigned char *payload; /* the same, or further up where the trace asks for more alignment than the heap gives;
                             * where a handle led when it was last asked */
    uint32_t size;
    uint32_t tag;
};

struct driver {
    const struct call *calls;
    uint32_t count;
    uint32_t slots;
    const unsigned char *weights;
    struct object *objects;
    struct result *result;
    uint64_t *at;
    unsigned char *memory; /* the arena; NULL where the heap gets memory from the system */
    size_t bytes;
    size_t room;   /* bytes of the array that holds the arena */
    size_t canary; /* bytes behind the arena that are watched */
    int ends_at_refusal;
    int writes; /* what a pass for time allocates */
    uint64_t live;
    uint64_t sampled; /* live bytes when resident memory was last looked at */
    uint64_t resident;
    uint64_t resident_at_start;
};

static void stop(const char *problem)
{
    perror(problem);
    _exit(3);
}

static void *shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes + 1u, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        stop("mmap");
    }
    return memory;
}

static void *map_file(const char *path, int flags, size_t *bytes)
{
    struct stat status;
    const int file = open(path, flags);
    if (file < 0 || fstat(file, &status) != 0) {
        stop(path);
    }
    *bytes = (size_t)status.st_size;
    const int access = flags == O_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
    void *content = mmap(NULL, *bytes, access, MAP_SHARED, file, 0);
    close(file);
    if (content == MAP_FAILED) {
        stop(path);
    }
    return content;
}

/* ---- the arena --------------------------------------------------------------------------------------------------- */

/* A page that cannot be touched follows the arena's last page, which has room for the canary. */
static unsigned char *map_memory(size_t bytes)
{
    const size_t pages = (bytes + CANARY + PAGE - 1u) / PAGE * PAGE;
    unsigned char *memory = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    mprotect(memory + pages, PAGE, PROT_NONE);
    return memory;
}

static void take_arena(struct driver *d)
{
    d->memory = foreign_array();
    d->room = foreign_capacity > d->bytes ? foreign_capacity : d->bytes;
    d->canary = d->room - d->bytes < CANARY ? d->room - d->bytes : CANARY;
    if (d->memory == NULL) {
        d->memory = map_memory(d->bytes);
        d->canary = CANARY;
    }
    if (d->memory == NULL) {
        stop("arena");
    }
}

static int is_canary_intact(const struct driver *d)
{
    for (size_t i = 0; i < d->canary; i++) {
        if (d->memory[d->bytes + i] != foreign_poison) {
            return 0;
        }
    }
    return 1;
}

/* Bytes of the arena outside the longest stretch that was never written. A stretch shorter than the largest object may
 * be padding inside a block and counts as used. */
static uint64_t touched(const struct driver *d)
{
    const unsigned poison = foreign_poison;
    size_t longest = 0, run = 0, largest = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->calls[i].op_and_slot >> 30 != FREE && d->calls[i].size > largest) {
            largest = d->calls[i].size;
        }
    }
    for (size_t i = 0; i < d->bytes; i++) {
        run = d->memory[i] == poison ? run + 1u : 0;
        longest = run > longest ? run : longest;
    }
    return d->bytes - (longest >= largest ? longest : 0);
}

/* Anonymous memory of this process that is there, in bytes: whole pages. */
static uint64_t resident(void)
{
    char text[2048];
    const int file = open("/proc/self/smaps_rollup", O_RDONLY);
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1u);
    close(file);
    if (length < 0) {
        return 0;
    }
    text[length] = '\0';
    const char *found = strstr(text, "\nAnonymous:");
    return found ? 1024u * strtoull(found + 11, NULL, 10) : 0;
}

static void sample(struct driver *d)
{
    const uint64_t now = resident();
    d->resident = now > d->resident ? now : d->resident;
    d->sampled = d->live;
}

/* ---- one checked replay ------------------------------------------------------------------------------------------ */

static void fault(const struct driver *d, uint64_t kind)
{
    d->result->fault = kind;
    _exit(0);
}

static void fill(struct object *object, uint32_t tag)
{
    tag |= OBJECT_BYTES_MARK * 0x01010101u;
    object->tag = tag;
    for (uint32_t i = 0; i + 4u <= object->size; i += 4u) {
        memcpy(object->payload + i, &tag, 4u);
    }
    memcpy(object->payload + object->size / 4u * 4u, &tag, object->size % 4u);
}

static int is_payload_intact(const struct object *object, const unsigned char *payload, uint32_t size)
{
    for (uint32_t i = 0; i + 4u <= size; i += 4u) {
        if (memcmp(payload + i, &object->tag, 4u) != 0) {
            return 0;
        }
    }
    return memcmp(payload + size / 4u * 4u, &object->tag, size % 4u) == 0;
}

static int is_in_front(const unsigned char *pointer)
{
    return (uintptr_t)pointer - (uintptr_t)foreign_front() < foreign_front_bytes;
}

static void check_pointer(const struct driver *d, const unsigned char *pointer, uint32_t size)
{
    if ((uintptr_t)pointer % foreign_align != 0) {
        fault(d, MISALIGNED);
    }
    if (is_in_front(pointer)) {
        return;
    }
    const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)d->memory;
    if (d->memory != NULL && (offset >= d->bytes || d->bytes - offset < size)) {
        fault(d, OUTSIDE);
    }
}

static void note_address(struct driver *d, uint32_t i, const unsigned char *pointer)
{
    if (d->at != NULL && !is_in_front(pointer)) {
        d->at[i] = (uint64_t)((uintptr_t)pointer - (uintptr_t)d->memory);
    }
}

/* The size of the request to the heap: an object of no bytes is one of a byte, as in a recipe. */
static size_t wanted(uint32_t size)
{
    return size ? size : 1u;
}

static unsigned char *allocate(const struct call *call)
{
    const uint32_t align = call->align > foreign_align ? call->align : 0;
    if (foreign_moves && align) {
        return NULL;
    }
    if (call->op_and_slot >> 30 == CALLOC && align == 0) {
        return foreign_calloc(wanted(call->size));
    }
    if (align && foreign_has_aligned_alloc) {
        return foreign_aligned_alloc(align, wanted(call->size));
    }
    return foreign_malloc(wanted(call->size) + (align ? align - foreign_align : 0));
}

static unsigned char *payload_of(unsigned char *base, uint32_t align)
{
    if (foreign_moves) {
        return foreign_pointer(base);
    }
    const uintptr_t mask = align > foreign_align ? align - 1u : 0;
    return (unsigned char *)(((uintptr_t)base + mask) & ~mask);
}

/* Whether the object still holds what it was filled with, even if it moved. */
static int is_sound(struct object *object)
{
    if (foreign_moves) {
        object->payload = payload_of(object->base, 0);
    }
    return is_payload_intact(object, object->payload, object->size);
}

/* How much of the object the program may use. */
static uint32_t usable(const struct object *object, uint32_t size)
{
    if (!foreign_has_usable_size) {
        return size;
    }
    const size_t all = foreign_usable_size(object->base) - (size_t)(object->payload - object->base);
    return all > size && all < UINT32_MAX ? (uint32_t)all : size;
}

static void enter(struct driver *d, uint32_t i, struct object *object, unsigned char *base, unsigned char *payload)
{
    const uint32_t size = d->calls[i].size;
    object->base = base;
    object->payload = payload;
    object->size = usable(object, size);
    check_pointer(d, payload, object->size);
    note_address(d, i, payload);
    fill(object, (i + 1u) * 2654435761u);
    d->result->admitted_bytes += size;
    d->live += size;
    if (d->live > d->result->requested_peak) {
        d->result->requested_peak = d->live;
    }
    if (d->memory == NULL && d->live >= d->sampled + d->sampled / 64u + SAMPLE_STEP) {
        sample(d);
    }
}

static void replay_allocation(struct driver *d, uint32_t i, struct object *object)
{
    unsigned char *base = allocate(&d->calls[i]);
    d->result->requested_bytes += d->calls[i].size;
    object->base = NULL;
    if (base == NULL) {
        d->result->failed++;
        return;
    }
    enter(d, i, object, base, payload_of(base, d->calls[i].align));
}

static unsigned char *resize(const struct object *object, uint32_t had, uint32_t size)
{
    if (foreign_has_realloc && (foreign_moves || object->base == object->payload)) {
        return foreign_realloc(object->base, wanted(size));
    }
    unsigned char *moved = foreign_malloc(wanted(size));
    if (moved != NULL) {
        memcpy(moved, object->payload, had < size ? had : size);
        foreign_free(object->base);
    }
    return moved;
}

static void drive_realloc(struct driver *d, uint32_t i, struct object *object, uint32_t *requested)
{
    const uint32_t size = d->calls[i].size;
    if (object->base == NULL) {
        return;
    }
    d->result->requested_bytes += size;
    unsigned char *moved = resize(object, *requested, size);
    if (moved == NULL) {
        d->result->failed++;
        return;
    }
    unsigned char *payload = payload_of(moved, 0);
    check_pointer(d, payload, size);
    if (!is_payload_intact(object, payload, *requested < size ? *requested : size)) {
        fault(d, CORRUPT);
    }
    d->live -= *requested;
    *requested = size;
    enter(d, i, object, moved, payload);
}

static void drive_free(struct driver *d, struct object *object, uint32_t requested)
{
    if (object->base == NULL) {
        return;
    }
    if (!is_sound(object)) {
        fault(d, CORRUPT);
    }
    d->live -= requested;
    foreign_free(object->base);
    object->base = NULL;
}

static void replay_checked(struct driver *d)
{
    uint32_t *requested = shared(d->slots * sizeof *requested);
    struct result *result = d->result;
    for (uint32_t i = 0; i < d->count && !(d->ends_at_refusal && result->failed); i++) {
        const uint32_t slot = d->calls[i].op_and_slot & 0x3fffffffu;
        const uint32_t op = d->calls[i].op_and_slot >> 30;
        int64_t weight;
        result->call = i;
        if (op == FREE) {
            drive_free(d, &d->objects[slot], requested[slot]);
        } else if (op == REALLOC) {
            drive_realloc(d, i, &d->objects[slot], &requested[slot]);
        } else {
            replay_allocation(d, i, &d->objects[slot]);
            requested[slot] = d->calls[i].size;
        }
        memcpy(&weight, d->weights + i * sizeof weight, sizeof weight);
        result->weighted += (double)weight * (double)d->live;
        result->weight += (double)weight;
    }
    for (uint32_t slot = 0; slot < d->slots; slot++) {
        if (d->objects[slot].base != NULL && !is_sound(&d->objects[slot])) {
            fault(d, CORRUPT);
        }
    }
}

static void replay_once(struct driver *d, const char *result, const char *at)
{
    size_t bytes;
    d->result = map_file(result, O_RDWR, &bytes);
    d->at = at ? map_file(at, O_RDWR, &bytes) : NULL;
    d->result->stage = INITIALISING;
    if (d->memory != NULL) {
        memset(d->memory, (int)foreign_poison, d->bytes + d->canary);
    } else {
        if (foreign_front_bytes) {
            memset(foreign_front(), 0, foreign_front_bytes); /* known, and added to what the heap behind takes */
        }
        d->resident = d->resident_at_start = resident();
    }
    if (!foreign_init(d->memory, d->bytes)) {
        fault(d, REFUSED_ARENA);
    }
    d->result->stage = REPLAYING;
    replay_checked(d);
    if (d->memory != NULL) {
        if (!is_canary_intact(d)) {
            fault(d, OVERRUN);
        }
        d->result->footprint = touched(d);
    } else {
        sample(d);
        d->result->footprint = d->resident ? d->resident - d->resident_at_start : UINT64_MAX;
    }
    d->result->stage = DONE;
}

#include "passes.h"

int main(int argc, char **argv)
{
    struct driver d = {0};
    if (argc < 4) {
        dprintf(STDERR_FILENO, "usage: driver CALLS PASSES|replay|serves BYTES [written|RESULT [AT|SECONDS]]\n");
        return 2;
    }
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    size_t length;
    const uint32_t *numbers = map_file(argv[1], O_RDONLY, &length);
    d.count = numbers[0];
    d.slots = numbers[1];
    d.calls = (const struct call *)(numbers + 2);
    d.weights = (const unsigned char *)(d.calls + d.count);
    d.objects = shared((d.slots + 1u) * sizeof *d.objects);
    memset(d.objects, 0, d.slots * sizeof *d.objects);
    d.bytes = (size_t)strtoull(argv[3], NULL, 10);
    if (d.bytes) {
        take_arena(&d);
    }
    if (argc > 5 && strcmp(argv[2], "serves") == 0) {
        const rlim_t seconds = strtoul(argv[5], NULL, 10);
        setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
        d.ends_at_refusal = 1;
        replay_once(&d, argv[4], NULL);
    } else if (argc > 4 && strcmp(argv[2], "replay") == 0) {
        replay_once(&d, argv[4], argc > 5 ? argv[5] : NULL);
    } else {
        d.writes = argc > 4;
        measure(&d, atoi(argv[2]));
    }
    return 0;
}
