/* script.c: performs a script of calls and draws the heap after each.
 *
 *     script HEAP < CALLS
 *
 * HEAP holds the arena's size (uint32_t) and a struct hw_policy. Calls are lines such as "malloc a 16",
 * "aligned_alloc b 64 16", "realloc a 40", "free a"; objects are named by one letter. For each call a line is written:
 * "refused" where it returned NULL, and |offset:size:state| for every block, the offset counted from the end of the
 * control data and the regions. States: the object's letter, "." free, "~" cached, "v" last remainder. Objects that
 * move are reached through references in front of the arena; a heap that moves an object must not change its bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "largest.h"

static struct hw_policy policy;
static unsigned char *objects[128];
static size_t sizes[128];
static struct hw_handle *handles; /* those of all letters */

static int moves(void)
{
    return policy.pools[0].kind == HW_COMPACT;
}

static void **reference_to(char name)
{
    return &handles[(unsigned char)name].pointer;
}

/* Finds all objects that move and sees that they still hold their letters. */
static int look_up(struct hw_heap *heap)
{
    for (int name = 'a'; name <= 'z'; name++) {
        objects[name] = hw_handle_pointer(&policy, heap, reference_to((char)name));
        for (size_t i = 0; objects[name] && i < sizes[name]; i++) {
            if (objects[name][i] != name) {
                return 0;
            }
        }
    }
    return 1;
}

/* Performs one call on an object that moves; 0 where it was refused. */
static int perform_moving(struct hw_heap *heap, const char *call, char name, size_t size)
{
    void **reference = reference_to(name);
    const size_t had = sizes[(unsigned char)name];
    int served = 1;
    if (strcmp(call, "free") == 0) {
        hw_handle_free(&policy, heap, reference);
        return 1;
    }
    if (strcmp(call, "realloc") == 0) {
        served = hw_handle_realloc(&policy, heap, reference, size);
        sizes[(unsigned char)name] = served && size < had ? size : had;
    } else {
        served = hw_handle_alloc(&policy, heap, reference, size);
        sizes[(unsigned char)name] = 0;
    }
    if (!look_up(heap)) {
        fprintf(stderr, "an object lost its bytes\n");
        exit(1);
    }
    if (served) {
        memset(objects[(unsigned char)name], name, size);
        sizes[(unsigned char)name] = size;
    }
    return served;
}

/* Performs one call; 0 where it was refused. */
static int perform(struct hw_heap *heap, const char *call, char name, size_t first, size_t second)
{
    unsigned char **object = &objects[(unsigned char)name];
    void *at = NULL;
    if (moves()) {
        return perform_moving(heap, call, name, first);
    }
    if (strcmp(call, "free") == 0) {
        hw_free(&policy, heap, *object);
        *object = NULL;
        return 1;
    }
    if (strcmp(call, "realloc") == 0) {
        at = hw_realloc(&policy, heap, *object, first);
    } else if (strcmp(call, "aligned_alloc") == 0) {
        at = hw_aligned_alloc(&policy, heap, first, second);
    } else {
        at = hw_malloc(&policy, heap, first);
    }
    *object = at ? at : *object;
    return at != NULL;
}

static char name_at(const unsigned char *payload)
{
    for (int name = 'a'; name <= 'z'; name++) {
        if (objects[name] == payload) {
            return (char)name;
        }
    }
    return '?';
}

static void draw(struct hw_heap *heap)
{
    struct hw_block block = {0, 0, 0, 0, 0};
    while (hw_next_block(&policy, heap, &block)) {
        char state = "?u.~v"[block.state];
        if (state == 'u') {
            state = name_at(arena_base(heap) + block.offset + block.header);
        }
        printf("|%ld:%lu:%c", (long)block.offset - (long)policy.fixed_end, (unsigned long)block.size, state);
    }
    printf("|\n");
}

/* Reads the arena's size and the policy; makes the arena, behind the handles of all letters if objects move. */
static unsigned char *arena_of(FILE *file, uint32_t *bytes)
{
    enum { FRONT = 4096 }; /* no arena is aligned to more */
    void *memory = NULL;
    if (fread(bytes, sizeof *bytes, 1, file) != 1 || fread(&policy, sizeof policy, 1, file) != 1 ||
        posix_memalign(&memory, policy.arena_align, *bytes + (moves() ? FRONT : 0u)) != 0) {
        return NULL;
    }
    if (moves()) {
        handles = memset(memory, 0, FRONT);
    }
    return (unsigned char *)memory + (moves() ? FRONT : 0u);
}

int main(int argc, char **argv)
{
    uint32_t bytes = 0;
    char call[16] = "";
    char name = 0;
    size_t first = 0;
    size_t second = 0;
    char line[64];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    unsigned char *arena = file ? arena_of(file, &bytes) : NULL;
    if (arena == NULL) {
        fprintf(stderr, "usage: script HEAP < CALLS\n");
        return 2;
    }
    fclose(file);
    struct hw_heap *heap = hw_init(&policy, arena, bytes);
    while (heap && fgets(line, sizeof line, stdin) &&
           sscanf(line, "%15s %c %zu %zu", call, &name, &first, &second) > 1) {
        if (!perform(heap, call, name, first, second)) {
            printf("refused ");
        }
        if (moves() && !look_up(heap)) {
            fprintf(stderr, "an object lost its bytes after: %s", line);
            return 1;
        }
        draw(heap);
        if (hw_check(&policy, heap) != 0) {
            fprintf(stderr, "broken after: %s", line);
            return 1;
        }
    }
    free(handles ? (void *)handles : arena);
    return heap == NULL;
}
