/* fuzz.c: random programs on heaps of many policies.
 *
 *     fuzz POLICIES OPERATIONS SEED
 *
 * POLICIES holds records of an arena size (uint32_t) and a struct hw_policy. Each policy runs OPERATIONS operations. On
 * success the last line says how many heaps, operations and refused requests there were.
 */
#include "checked_heap.h"

static uint64_t state;

static uint32_t random_below(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 11) % bound);
}

/* What the present program asks for: a few favourite sizes, as real programs have. */
struct program {
    size_t favourites[6];
    uint32_t largest;
    uint32_t live;    /* objects it tends to */
    uint32_t refused; /* requests refused when it last gave way */
};

static size_t extreme_size(void)
{
    static const size_t extremes[] = {0,
                                      1,
                                      SIZE_MAX,
                                      SIZE_MAX - 1u,
                                      SIZE_MAX / 2u,
                                      SIZE_MAX / 2u + 1u,
                                      HW_MAX_REQUEST,
                                      HW_MAX_REQUEST - 1u,
                                      HW_MAX_REQUEST + 1u,
                                      UINT32_MAX,
                                      (size_t)UINT32_MAX + 1u,
                                      (size_t)UINT32_MAX + 17u,
                                      1u << 31,
                                      HW_MAX_REQUEST / 4u,
                                      HW_MAX_REQUEST / 4u + 1u};
    return extremes[random_below(sizeof extremes / sizeof *extremes)];
}

static size_t random_size(const struct program *program)
{
    const uint32_t kind = random_below(64);
    if (kind == 0) {
        return extreme_size();
    }
    if (kind < 8) {
        return ((size_t)1 << random_below(14)) + random_below(3) - 1u;
    }
    if (kind < 40) {
        return program->favourites[random_below(6)];
    }
    return random_below(program->largest);
}

static size_t random_alignment(void)
{
    const uint32_t kind = random_below(16);
    if (kind == 0) {
        return random_below(100);
    }
    if (kind == 1) {
        return extreme_size();
    }
    return (size_t)1 << random_below(12);
}

static void start_program(struct program *program, const struct checked *c)
{
    static const uint32_t parts[] = {4, 20, 100, 200, 400};
    const struct hw_pool *pool = &c->policy->pools[random_below(c->policy->pool_count)];
    program->largest = 24u + (uint32_t)(c->bytes - c->policy->control) / parts[random_below(5)];
    program->refused = c->refused;
    program->live = 1u + random_below(random_below(3) == 0 ? MOST_OBJECTS : 60);
    for (uint32_t i = 0; i < 6; i++) {
        program->favourites[i] = random_below(program->largest);
        if (pool->kind == HW_QUICK && !pool->quick.by_size) {
            program->favourites[i] = pool->quick.sizes[random_below(pool->quick.count)];
        }
        if (pool->kind == HW_FIXED) {
            program->favourites[i] = pool->fixed.sizes[random_below(pool->fixed.count)] - random_below(2);
        }
        if (pool->kind == HW_PARTITION) {
            program->favourites[i] = pool->partition.partition * (1u + random_below(5)) - random_below(2);
        }
        if (pool->kind == HW_BUDDY) {
            program->favourites[i] = (1u << (pool->buddy.min_block_log2 + random_below(5))) - pool->buddy.header;
        }
    }
}

static void random_allocation(struct checked *c, const struct program *program)
{
    const uint32_t kind = random_below(16);
    if (kind < 12) {
        do_malloc(c, random_size(program));
    } else if (kind == 12) {
        do_calloc(c, random_size(program), 1u + random_below(4));
    } else if (kind == 13) {
        do_calloc(c, extreme_size(), extreme_size());
    } else {
        do_aligned_alloc(c, random_alignment(), random_size(program));
    }
}

/* A program that was refused memory mostly gives some back. */
static int gives_way(struct checked *c, struct program *program)
{
    const int refused = c->refused != program->refused;
    program->refused = c->refused;
    return refused && c->count > 0 && random_below(8) != 0;
}

static void random_operation(struct checked *c, struct program *program)
{
    const uint32_t kind = random_below(100);
    if (gives_way(c, program)) {
        for (uint32_t left = 1u + random_below(c->count); left > 0; left--) {
            do_free(c, random_below(c->count));
        }
    } else if (kind == 0) {
        do_free_null(c);
    } else if (c->count > 0 && kind < 4 && c->policy->checks) {
        do_misuse(c, random_below(c->count), random_below(6), (int)random_below(2));
    } else if (c->count > 0 && kind < 16) {
        do_realloc(c, random_below(c->count), random_size(program));
    } else if (is_full(c) || (c->count > 0 && random_below(2 * program->live) < c->count)) {
        do_free(c, kind < 60 ? random_below(c->count) : kind < 80 ? 0 : c->count - 1u);
    } else {
        random_allocation(c, program);
    }
}

static void run(struct checked *c, uint32_t operations)
{
    struct program program;
    for (uint32_t i = 0; i < operations; i++) {
        if (i % 400u == 0) {
            start_program(&program, c);
        }
        random_operation(c, &program);
    }
    checked_close(c);
}

int main(int argc, char **argv)
{
    static struct hw_policy policy;
    static struct checked c;
    uint32_t bytes = 0;
    uint64_t heaps = 0;
    uint64_t operations = 0;
    uint64_t refused = 0;
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: fuzz POLICIES OPERATIONS SEED\n");
        return 2;
    }
    while (fread(&bytes, sizeof bytes, 1, file) == 1 && fread(&policy, sizeof policy, 1, file) == 1) {
        state = strtoull(argv[3], NULL, 0) * 2654435761u + heaps + 88172645463325252u;
        fprintf(stderr, "heap %llu: %u bytes\n", (unsigned long long)heaps, (unsigned)bytes);
        if (checked_open(&c, &policy, bytes)) {
            run(&c, (uint32_t)strtoul(argv[2], NULL, 0));
        }
        heaps++;
        operations += c.operations;
        refused += c.refused;
    }
    fclose(file);
    printf("heaps %llu operations %llu refused %llu\n", (unsigned long long)heaps, (unsigned long long)operations,
           (unsigned long long)refused);
    return 0;
}
