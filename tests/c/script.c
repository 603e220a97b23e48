/* script.c: performs a script of calls and draws the heap after each.
 *
 *     script HEAP < CALLS
 *
 * HEAP holds the arena's size (uint32_t) and a struct hw_policy. Calls are lines such as "malloc a 16",
 * "aligned_alloc b 64 16", "realloc a 40", "free a"; objects are named by one letter. For each call a line is written:
 * "refused" where it returned NULL, and |offset:size:state| for every block, the offset counted from the end of the
 * control data and the regions. States: the object's letter, "." free, "~" cached, "v" victim.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static struct hw_policy policy;
static unsigned char *objects[128];

/* Performs one call; 0 where it was refused. */
static int perform(struct hw_heap *heap, const char *call, char name, size_t first, size_t second)
{
    unsigned char **object = &objects[(unsigned char)name];
    void *at = NULL;
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

int main(int argc, char **argv)
{
    uint32_t bytes = 0;
    void *arena = NULL;
    char call[16] = "";
    char name = 0;
    size_t first = 0;
    size_t second = 0;
    char line[64];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL || fread(&bytes, sizeof bytes, 1, file) != 1 || fread(&policy, sizeof policy, 1, file) != 1 ||
        posix_memalign(&arena, policy.arena_align, bytes) != 0) {
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
        draw(heap);
        if (hw_check(&policy, heap) != 0) {
            fprintf(stderr, "broken after: %s", line);
            return 1;
        }
    }
    free(arena);
    return heap == NULL;
}
