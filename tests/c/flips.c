/* flips.c: one bit flipped anywhere outside the payloads of live objects, and what comes of it.
 *
 *     flips POLICY ARENA_BYTES FLIPS SEED
 *
 * POLICY is a struct hw_policy. A random program runs, a bit is flipped, the program goes on; each flip in a process of
 * its own. Prints how many crashed or hung, how many were silent (objects overlap, lie outside, or have changed, and no
 * misuse was counted before), how many were noticed (misuse was counted, or the checker finds it), and how many did no
 * harm.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random_program.h"

enum { OBJECTS = 100, CALLS = 350, SECONDS = 5 };
enum { SILENT, NOTICED, HARMLESS, RESULTS };

static struct object {
    unsigned char *at;
    uint32_t size;
    unsigned char fill;
} objects[OBJECTS];
static struct hw_heap *heap;
static unsigned char *arena;

/* Whether an object no longer holds what the program wrote to it. */
static int is_changed(const struct object *o)
{
    for (uint32_t i = 0; i < o->size; i++) {
        if (o->at[i] != o->fill) {
            return 1;
        }
    }
    return 0;
}

/* Whether new memory lies outside the arena, or overlaps a live object. */
static int is_misplaced(const unsigned char *at, uint32_t size)
{
    if (at < arena + policy.control || at + size > arena + arena_bytes) {
        return 1;
    }
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i].at && at < objects[i].at + objects[i].size && objects[i].at < at + size) {
            return 1;
        }
    }
    return 0;
}

/* Runs the program; 0 once an object is misplaced or has changed. */
static int goes_on(void)
{
    for (int call = 0; call < CALLS; call++) {
        struct object *o = &objects[below(OBJECTS)];
        if (o->at) {
            if (is_changed(o)) {
                return 0;
            }
            unsigned char *freed = o->at;
            o->at = NULL;
            hw_free(&policy, heap, freed);
            continue;
        }
        const uint32_t size = 1u + (below(4) ? below(120) : below(900));
        unsigned char *at = hw_malloc(&policy, heap, size);
        if (at && is_misplaced(at, size)) {
            return 0;
        }
        if (at) {
            *o = (struct object){at, size, (unsigned char)below(256)};
            memset(at, o->fill, size);
        }
    }
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i].at && is_changed(&objects[i])) {
            return 0;
        }
    }
    return 1;
}

static int is_in_object(const unsigned char *at)
{
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i].at && at >= objects[i].at && at < objects[i].at + objects[i].size) {
            return 1;
        }
    }
    return 0;
}

static int result_of_flip(void)
{
    heap = hw_init(&policy, arena, arena_bytes);
    if (heap == NULL || !goes_on() || hw_misused(&policy, heap) || hw_check(&policy, heap)) {
        abort(); /* before any flip */
    }
    unsigned char *at = NULL;
    do {
        at = arena + below(arena_bytes);
    } while (is_in_object(at));
    *at ^= (unsigned char)(1u << below(8));
    const int whole = goes_on();
    if (hw_misused(&policy, heap)) {
        return NOTICED;
    }
    return !whole ? SILENT : hw_check(&policy, heap) ? NOTICED : HARMLESS;
}

int main(int argc, char **argv)
{
    const int flips = read_arguments(argc, argv);
    if (flips < 0) {
        return 2;
    }
    const uint64_t seed = state;
    arena = aligned_alloc(4096, arena_bytes);
    unsigned counts[RESULTS] = {0}, crashed = 0;
    for (int flip = 0; flip < flips; flip++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            state = seed << 32 | (uint64_t)flip;
            for (int i = 0; i < 4; i++) {
                (void)below(2);
            }
            _exit(result_of_flip());
        }
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            return 1;
        }
        if (WIFEXITED(status)) {
            counts[WEXITSTATUS(status)]++;
        } else {
            crashed++;
        }
    }
    printf("%u %u %u %u\n", crashed, counts[SILENT], counts[NOTICED], counts[HARMLESS]);
    return 0;
}
