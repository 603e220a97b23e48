/* wreck.c: looks at heaps whose arena was damaged anywhere: control data, headers, links, payloads.
 *
 *     wreck HEAPS SEED TIMES
 *
 * HEAPS is as for fuzz.c; each heap is damaged TIMES times, in states that a random program left it in. The arena lies
 * between pages that may not be touched, further than any address in it leads. Any answer will do, but each look must
 * come back, without a step outside. Two things are left as they are, which check.h takes on trust: without checks the
 * word that holds where the arena ends, and whole heaps whose handles are with the caller. The last line has how many
 * were damaged, of how many the checker says so, the most metadata accesses of one look for each byte of the arena, and
 * the most microseconds of CPU time that one took.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "largest.h"

enum { MOST_OBJECTS = 800, MOST_STARTS = 256, LOOKS = 4, STATES = 20, HANG_SECONDS = 5 };

#define FURTHEST ((size_t)1 << 33) /* beyond any address in an arena and what is added to it */

static const char *const look_names[LOOKS] = {"check", "statistics", "largest free", "walk"};

static struct hw_policy policy;
static struct hw_heap heap;
static unsigned char *saved;
static uint32_t bytes;
static void *objects[MOST_OBJECTS];
static uint32_t object_count;
static uint32_t starts[MOST_STARTS]; /* of blocks */
static uint32_t start_count;

static uint64_t damaged;
static uint64_t noticed;
static double most_accesses;
static long slowest;

static uint32_t heap_number;
static uint32_t time_number;
static int look_number;
static uint32_t random_state;

static uint32_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static uint32_t below(uint32_t bound)
{
    return (uint32_t)((uint64_t)random_word() * bound >> 32);
}

/* Reports where a look left the arena or did not come back. */
static void die(int signal_number)
{
    fprintf(stderr, "signal %d: heap %u, damage %u: %s\n", signal_number, (unsigned)heap_number, (unsigned)time_number,
            look_names[look_number]);
    _exit(1);
}

/* ---- a heap in some state ------------------------------------------------------------------------------------------
 */

/* Puts the arena behind the pages that may not be touched, or in front of them. */
static void place(unsigned char *middle, size_t room)
{
    heap.base = random_word() & 1u ? middle : middle + (room - bytes) / policy.arena_align * policy.arena_align;
}

static void get_object(uint32_t size)
{
    if (object_count == MOST_OBJECTS) {
        return;
    }
    if (policy.pools[0].kind == HW_COMPACT) {
        object_count += (uint32_t)hw_handle_alloc(&policy, &heap, &objects[object_count], size);
        return;
    }
    objects[object_count] = hw_malloc(&policy, &heap, size);
    object_count += objects[object_count] != NULL;
}

static void give_back(uint32_t i)
{
    if (policy.pools[0].kind == HW_COMPACT) {
        hw_handle_free(&policy, &heap, &objects[i]);
    } else {
        hw_free(&policy, &heap, objects[i]);
    }
    objects[i] = objects[--object_count];
}

/* Leaves the heap in the state after a random program, with payloads that look like anything. */
static int run_program(void)
{
    object_count = 0;
    for (uint32_t at = 0; at < bytes; at++) {
        heap.base[at] = (unsigned char)(random_word() & (below(2) ? 0xffu : 0u));
    }
    if (!heap_init(&policy, &heap, bytes)) {
        return 0;
    }
    const uint32_t steps = below(2000);
    for (uint32_t i = 0; i < steps; i++) {
        if (object_count != 0 && below(100) < 40) {
            give_back(below(object_count));
        } else {
            get_object(below(below(8) == 0 ? 1500 : 80));
        }
    }
    const int broken = hw_check(&policy, &heap);
    if (broken != 0) {
        fprintf(stderr, "heap %u: broken before it was damaged (%d)\n", (unsigned)heap_number, broken);
        exit(1);
    }
    struct hw_block block = {0, 0, 0, 0, 0};
    for (start_count = 0; start_count < MOST_STARTS && hw_next_block(&policy, &heap, &block); start_count++) {
        starts[start_count] = block.offset;
    }
    return 1;
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* Where to strike: anywhere, in the control data, or at the start of a block. */
static uint32_t somewhere(void)
{
    const uint32_t kind = below(3);
    if (kind == 0 || (kind == 2 && start_count == 0)) {
        return below(bytes);
    }
    if (kind == 1) {
        return below(policy.control);
    }
    const uint32_t at = starts[below(start_count)] + below(24);
    return at < bytes ? at : bytes - 1u;
}

static uint32_t some_value(uint32_t at)
{
    const uint32_t kind = below(6);
    if (kind == 0) {
        return random_word();
    }
    if (kind == 1) {
        return below(bytes + 64u);
    }
    if (kind == 2) {
        return heap.base[at] + below(9) - 4u;
    }
    return kind == 3 ? 0 : kind == 4 ? UINT32_MAX : UINT32_MAX - below(64);
}

static void damage_words(void)
{
    for (uint32_t left = 1u + below(6); left != 0; left--) {
        const uint32_t at = somewhere() & ~3u;
        const uint32_t value = some_value(at);
        memcpy(heap.base + at, &value, at + 4u <= bytes ? 4 : bytes - at);
    }
}

static void damage_bits(void)
{
    for (uint32_t left = 1u + below(12); left != 0; left--) {
        heap.base[somewhere()] ^= (unsigned char)(1u << below(8));
    }
}

static void damage_range(void)
{
    const uint32_t at = somewhere();
    const uint32_t room = bytes - at;
    const uint32_t length = 1u + below(below(4) ? (room < 64 ? room : 64) : room);
    const uint32_t kind = below(3);
    if (kind == 0) {
        memset(heap.base + at, (int)below(256), length);
    } else if (kind == 1) {
        memmove(heap.base + at, heap.base + below(bytes - length + 1u), length);
    } else {
        for (uint32_t i = 0; i < length; i++) {
            heap.base[at + i] = (unsigned char)random_word();
        }
    }
}

static void damage(void)
{
    const uint32_t end = load4(&heap, policy.shared_end_at);
    const uint32_t kind = below(3);
    if (kind == 0) {
        damage_words();
    } else if (kind == 1) {
        damage_bits();
    } else {
        damage_range();
    }
    if (policy.checks == HW_CHECKS_NONE) {
        store4(&heap, policy.shared_end_at, end);
    }
}

/* ---- looks ------------------------------------------------------------------------------------------------------- */

static void look(int which)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    if (which == 0) {
        noticed += hw_check(&policy, &heap) != 0;
    } else if (which == 1) {
        (void)hw_statistics(&policy, &heap);
    } else if (which == 2) {
        (void)hw_largest_free(&policy, &heap, below(2) ? UINT32_MAX : 32u);
    } else {
        for (uint32_t steps = below(8); steps != 0 && hw_next_block(&policy, &heap, &block); steps--) {
        }
    }
}

static long cpu_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void watch(void)
{
    const struct itimerval limit = {{0, 0}, {HANG_SECONDS, 0}};
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static void look_at_damage(void)
{
    for (look_number = 0; look_number < LOOKS; look_number++) {
        watch();
        const uint64_t reads = heap.reads;
        const long start = cpu_microseconds();
        look(look_number);
        const long taken = cpu_microseconds() - start;
        const double accesses = (double)(heap.reads - reads) / bytes;
        slowest = taken > slowest ? taken : slowest;
        most_accesses = accesses > most_accesses ? accesses : most_accesses;
    }
}

static void wreck(unsigned char *middle, size_t room, uint32_t times)
{
    for (time_number = 0; time_number < times; time_number++) {
        if (time_number % STATES == 0) {
            place(middle, room);
            if (!run_program()) {
                return;
            }
            memcpy(saved, heap.base, bytes);
        }
        memcpy(heap.base, saved, bytes);
        damage();
        damaged++;
        look_at_damage();
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: wreck HEAPS SEED TIMES\n");
        return 2;
    }
    random_state = (uint32_t)strtoul(argv[2], NULL, 0) * 2u + 1u;
    signal(SIGSEGV, die);
    signal(SIGBUS, die);
    signal(SIGVTALRM, die);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (fread(&bytes, sizeof bytes, 1, file) == 1 && fread(&policy, sizeof policy, 1, file) == 1) {
        const size_t room = (bytes + page - 1u) / page * page;
        unsigned char *all =
            mmap(NULL, 2u * FURTHEST + room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED || mprotect(all + FURTHEST, room, PROT_READ | PROT_WRITE) != 0) {
            perror("wreck");
            return 2;
        }
        saved = malloc(bytes);
        if (policy.pools[0].kind != HW_COMPACT) {
            wreck(all + FURTHEST, room, (uint32_t)strtoul(argv[3], NULL, 0));
        }
        free(saved);
        munmap(all, 2u * FURTHEST + room);
        heap_number++;
    }
    fclose(file);
    printf("damaged %llu noticed %llu accesses %.1f microseconds %ld\n", (unsigned long long)damaged,
           (unsigned long long)noticed, most_accesses, slowest);
    return 0;
}
