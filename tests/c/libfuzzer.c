/* libfuzzer.c: a coverage-guided driver of the core (clang -fsanitize=fuzzer).
 *
 * The file named by the environment variable HEAPS holds records of an arena size (uint32_t) and a struct hw_policy.
 * The first byte of an input chooses one of them; every three bytes behind it are one operation.
 */
#include "checked_heap.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_HEAPS = 256 };

static struct hw_policy policies[MOST_HEAPS];
static uint32_t arenas[MOST_HEAPS];
static uint32_t heaps;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const char *path = getenv("HEAPS");
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "HEAPS names no file of policies\n");
        exit(2);
    }
    while (heaps < MOST_HEAPS && fread(&arenas[heaps], sizeof *arenas, 1, file) == 1 &&
           fread(&policies[heaps], sizeof *policies, 1, file) == 1) {
        heaps++;
    }
    fclose(file);
    return 0;
}

/* Small sizes byte by byte, larger ones in steps, and the extremes. */
static size_t size_from(uint8_t high, uint8_t low)
{
    if (high >= 250u) {
        return SIZE_MAX - low * (size_t)high;
    }
    return high < 128u ? low : (size_t)(high - 127u) * 37u + low;
}

static void operate(struct checked *c, const uint8_t *bytes)
{
    const uint32_t kind = bytes[0] & 7u;
    const uint32_t index = c->count ? bytes[1] % c->count : 0;
    const size_t size = size_from(bytes[1], bytes[2]);
    if (kind >= 5u && c->count > 0) {
        if (kind == 5u) {
            do_realloc(c, index, size_from(bytes[0], bytes[2]));
        } else if (bytes[0] >= 240u && c->policy->checks) {
            do_misuse(c, index, bytes[2] % 6u, bytes[2] >> 7);
        } else {
            do_free(c, index);
        }
    } else if (!is_full(c) && kind == 3u) {
        do_aligned_alloc(c, (size_t)1 << (bytes[0] >> 4), size);
    } else if (!is_full(c) && kind == 4u) {
        do_calloc(c, bytes[0] >> 3, size);
    } else if (!is_full(c)) {
        do_malloc(c, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct checked c;
    if (size < 1 || heaps == 0) {
        return 0;
    }
    const uint32_t heap = data[0] % heaps;
    if (checked_open(&c, &policies[heap], arenas[heap])) {
        for (size_t i = 1; i + 3u <= size; i += 3u) {
            operate(&c, data + i);
        }
        checked_close(&c);
    }
    return 0;
}
