/* What is to be tried of {{ prefix }}_heap.c, which is read as it is, with sizes at the edges of its classes.
 *
 * Bounds: {{ bounds }}.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

{% include "telling.h" %}

{% include "the_heap.h" %}
{% if compared %}
{% include "core.h" %}
{% endif %}

enum {
    ARENAS = {{ arenas | length }},
    LARGEST_ARENA = {{ arenas[-1] }},
    EDGES = {{ edges | length }},
    PROGRAMS = {{ programs }},
    PAIRS = {{ pairs | length }},
    STEPS = 40,
    OBJECTS = 20,
    SEEN = 8192,    /* bytes of the arena, from its start, in which two heaps are compared */
    PATTERN = 24,   /* bytes at either end of an object that the program writes and looks at */
    MOST_BLOCKS = 4096,
    MOST_FILLED = 300
};

enum call { NOTHING, MALLOC, FREE, CALLOC, REALLOC, ALIGNED_ALLOC };

static const size_t arena_bytes[ARENAS] = { {{ arenas | join(", ") }} };
static const size_t edges[EDGES] = {
    {{ edges | join(", ") }}
};
/* Sizes that lie near each other: an object of the one is freed, then the other is requested. */
static const uint16_t pairs[PAIRS][2] = {
    {% for a, b in pairs %}{ {{ a }}, {{ b }} }, {% endfor %}

};

static _Alignas(8192) unsigned char arena[LARGEST_ARENA];

static size_t bytes;      /* of the arena in this program */
static size_t seen;       /* of them are compared */
static uint32_t refused;  /* requests so far */
static uint32_t peak;     /* as reported last */
static size_t most[ARENAS], fills[ARENAS]; /* what a fresh heap serves: the largest request, how many of one size */
static uint64_t random_state = {{ seed }};

static struct {
    unsigned char *at; /* NULL: there is no such object */
    size_t asked, usable;
    unsigned char tag;
} objects[OBJECTS];
{% if compared %}

/* The same heap, by the core that the generated text was made from, with its policy as data. */
static _Alignas(8192) unsigned char model[LARGEST_ARENA];
#define MODEL ((struct hw_heap *)(void *)model)
#define AGREES(ours, cores) prove((ours) == (cores), "generated: does what the core does")
{% endif %}

static uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % bound;
}

/* A size at an edge that the arena may serve, more often than one that it never does. */
static size_t any_size(void)
{
    const uint32_t kind = random_below(16);
    if (kind == 0) {
        return edges[random_below(EDGES)];
    }
    unsigned fitting = 0;
    const size_t bound = kind < 10 ? bytes / 16u : bytes;
    for (unsigned step = 1u << 15; step; step >>= 1) {
        if (fitting + step <= EDGES && edges[fitting + step - 1u] <= bound) {
            fitting += step;
        }
    }
    return fitting ? edges[random_below(fitting)] : 1;
}

static unsigned char byte_of(unsigned i, size_t k)
{
    return (unsigned char)(objects[i].tag + 31u * k + (k >> 8));
}

/* The places of an object that are written: its ends, and one in 509 bytes between. */
static size_t next_place(size_t k, size_t usable)
{
    if (k + 1u < PATTERN || usable - k <= PATTERN) {
        return k + 1u;
    }
    return usable - k > 509u + PATTERN ? k + 509u : usable - PATTERN;
}

static void check_content(unsigned i, const unsigned char *at, size_t length)
{
    for (size_t k = 0; k < length; k = next_place(k, objects[i].usable)) {
        prove(at[k] == byte_of(i, k), "content: an object keeps its bytes");
    }
}

static void write_object(unsigned i)
{
    objects[i].tag = (unsigned char)random_below(256);
    for (size_t k = 0; k < objects[i].usable; k = next_place(k, objects[i].usable)) {
        objects[i].at[k] = byte_of(i, k);
{% if compared %}
        model[objects[i].at - arena + (ptrdiff_t)k] = byte_of(i, k);
{% endif %}
    }
}

static int object_at(const unsigned char *payload)
{
    for (int i = 0; i < OBJECTS; i++) {
        if (objects[i].at == payload) {
            return i;
        }
    }
    return -1;
}

static void check_apart(unsigned i)
{
    for (unsigned k = 0; k < OBJECTS; k++) {
        prove(k == i || !objects[k].at || objects[i].at + objects[i].usable <= objects[k].at ||
                  objects[k].at + objects[k].usable <= objects[i].at,
              "overlap: no two objects share a byte");
    }
}

/* Whether a heap that has a free piece of `largest` bytes has to serve a request. */
static int has_to_serve(size_t size, size_t largest)
{
    return {{ serves }};
}

/* The blocks of the heap's walk are those of the objects, lie behind each other, and are counted right. */
static void check_walk(struct {{ prefix }}_heap *heap, struct {{ prefix }}_statistics told)
{
    struct {{ prefix }}_block block = {0, 0, 0, 0, 0};
    uint32_t used = 0, used_blocks = 0, unused = 0, pool = 0, end = {{ control }}, walked = 0;
    while ({{ prefix }}_next_block(heap, &block)) {
        if (block.pool != pool) {
            pool = block.pool;
            end = {{ control }};
        }
        prove(walked++ < MOST_BLOCKS, "walk: it ends");
        prove(block.offset >= end, "walk: blocks lie behind each other");
        prove(block.size >= block.header && block.size <= bytes - block.offset, "walk: blocks lie in the arena");
        end = block.offset + block.size;
        const int i = object_at(arena + block.offset + block.header);
        prove((i >= 0) == (block.state == {{ upper }}_BLOCK_USED), "walk: used blocks are the objects'");
        used += i >= 0 ? block.size : 0;
        used_blocks += i >= 0;
        unused += i >= 0 ? 0 : block.size;
        prove(i < 0 || objects[i].usable <= block.size - block.header, "walk: an object lies in its block");
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        used_blocks -= objects[i].at != NULL;
    }
    prove(used_blocks == 0, "walk: every object has a block");
    prove(told.used == used && told.unused == unused, "statistics: bytes are those of the walk");
}

/* What holds between any two calls. */
static void check_heap(struct {{ prefix }}_heap *heap)
{
    prove({{ prefix }}_check(heap) == 0, "invariants: the checker finds nothing");
    const struct {{ prefix }}_statistics told = {{ prefix }}_statistics(heap);
    uint32_t live = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].at) {
            live++;
            check_content(i, objects[i].at, objects[i].usable);
            prove({{ prefix }}_owns(heap, objects[i].at) == 1, "owns: an object is the heap's");
            prove(told.peak >= (size_t)(objects[i].at - arena) + 1u || !{{ covers }}, "statistics: the peak covers objects");
        }
    }
    prove({{ prefix }}_owns(heap, arena - 1) == 0 && {{ prefix }}_owns(heap, arena + bytes) == 0 &&
              {{ prefix }}_owns(heap, arena) == 0 && {{ prefix }}_owns(heap, NULL) == 0,
          "owns: nothing else is the heap's");
    prove(told.used_blocks == live, "statistics: objects are counted");
    prove(told.refused == refused, "statistics: refused requests are counted");
    prove(told.misused == 0, "statistics: nothing was misused");
    prove(told.peak >= peak && told.peak <= bytes, "statistics: the peak never decreases, and lies in the arena");
    const size_t largest = {{ prefix }}_largest_free(heap, UINT32_MAX);
    prove(largest <= told.largest_free, "statistics: cached blocks make the largest no smaller");
    prove({{ caches }} || largest == told.largest_free, "statistics: the largest free piece is one");
    prove({{ prefix }}_largest_free(heap, 1) <= largest, "statistics: a bounded look finds no more");
    peak = told.peak;
    check_walk(heap, told);
{% if compared %}
    struct {{ prefix }}_statistics cores = core_statistics(&POLICY, MODEL);
    AGREES(memcmp(&told, &cores, sizeof told), 0);
    AGREES(core_check(&POLICY, MODEL), 0);
    AGREES({{ prefix }}_largest_free(heap, 2), core_largest_free(&POLICY, MODEL, 2));
    {% if bytewise %}
    AGREES(memcmp(arena, model, seen), 0);
    {% endif %}
{% endif %}
}
{% if bytewise %}

/* One bit at `at` is wrong: the checker comes back, and says what the core's says. */
static void damage_bit(struct {{ prefix }}_heap *heap, uint32_t at)
{
    if (at >= bytes) {
        return;
    }
    const unsigned char was[2] = {arena[at], model[at]};
    const unsigned char bit = (unsigned char)(1u << random_below(8));
    arena[at] ^= bit;
    model[at] ^= bit;
    const int broken = {{ prefix }}_check(heap), cores = core_check(&POLICY, MODEL);
    arena[at] = was[0];
    model[at] = was[1];
    AGREES(broken, cores);
}

/* Damage to the words of any block, and to control data that the checker looks at. */
static void damage(struct {{ prefix }}_heap *heap)
{
    struct {{ prefix }}_block block = {0, 0, 0, 0, 0}, found = block;
    for (uint32_t blocks = 1; {{ prefix }}_next_block(heap, &block); blocks++) {
        found = random_below(blocks) == 0 ? block : found;
    }
    const uint32_t words[] = {found.offset, found.offset + 4u, found.offset + 8u, found.offset + found.header,
                              found.offset + found.header + 4u, found.offset + found.size - 4u};
    const uint32_t at = words[random_below(6)] + random_below(4);
    if (found.size >= 16u && at >= {{ control }}) {
        damage_bit(heap, at);
    }
    {% for start, length in marks %}
    damage_bit(heap, {{ start }}u + random_below({{ length }}));
    {% endfor %}
}
{% endif %}

/* The object i is where the heap has put it now, and the program writes to it. */
static void place(struct {{ prefix }}_heap *heap, unsigned i, unsigned char *pointer, size_t size)
{
    const size_t at = (size_t)(pointer - arena);
    const size_t usable = {{ prefix }}_usable_size(heap, pointer);
    prove((at & ({{ upper }}_ALIGNMENT - 1u)) == 0, "alignment: an object is aligned");
    prove(at >= {{ control }} && at < bytes && bytes - at >= size, "bounds: an object lies in the arena");
    prove(usable >= size && usable <= bytes - at, "capacity: an object is as large as requested");
    objects[i].at = pointer;
    objects[i].asked = size;
    objects[i].usable = usable;
    check_apart(i);
}

/* What a request that was made with `largest` bytes free in one piece came to. */
static void settle(struct {{ prefix }}_heap *heap, unsigned i, unsigned char *pointer, size_t size, size_t largest)
{
    if (pointer) {
        place(heap, i, pointer, size);
        write_object(i);
        return;
    }
    refused++;
    prove(!has_to_serve(size, largest), "refused: not while there is room");
}

static void check_same(unsigned char *pointer, unsigned char *cores)
{
{% if compared %}
    AGREES(pointer ? pointer - arena : -1, cores ? cores - model : -1);
{% else %}
    (void)pointer, (void)cores;
{% endif %}
}

static unsigned char *plain_malloc(struct {{ prefix }}_heap *heap, size_t size)
{
    unsigned char *pointer = {{ prefix }}_malloc(heap, size), *cores = NULL;
{% if compared %}
    cores = core_malloc(&POLICY, MODEL, size);
{% endif %}
    check_same(pointer, cores);
    return pointer;
}

static void allocate(struct {{ prefix }}_heap *heap, unsigned i, unsigned kind, size_t size, size_t alignment)
{
    const size_t largest = {{ prefix }}_largest_free(heap, UINT32_MAX);
    size_t count = 1;
    unsigned char *pointer, *cores = NULL;
    told(kind, i, size, alignment);
    if (kind == CALLOC) {
        for (count = 1 + random_below(3); size % count; count--) {
        }
        pointer = {{ prefix }}_calloc(heap, count, size / count);
{% if compared %}
        cores = core_calloc(&POLICY, MODEL, count, size / count);
{% endif %}
        for (size_t k = 0; pointer && k < size; k++) {
            prove(pointer[k] == 0, "calloc: every byte is zero");
        }
    } else if (kind == ALIGNED_ALLOC) {
        pointer = {{ prefix }}_aligned_alloc(heap, alignment, size);
{% if compared %}
        cores = core_aligned_alloc(&POLICY, MODEL, alignment, size);
{% endif %}
        prove(!pointer || ((uintptr_t)pointer & (alignment - 1u)) == 0, "alignment: the address is as requested");
    } else {
        pointer = plain_malloc(heap, size);
    }
    if (kind != MALLOC) {
        check_same(pointer, cores);
    }
    settle(heap, i, pointer, size, kind == ALIGNED_ALLOC ? 0 : largest);
    prove(!pointer || kind == ALIGNED_ALLOC || objects[i].usable <= {{ waste }}, "capacity: no object is much larger");
}

static void resize(struct {{ prefix }}_heap *heap, unsigned i, size_t size)
{
    const size_t old = objects[i].asked, largest = {{ prefix }}_largest_free(heap, UINT32_MAX);
    told(REALLOC, i, size, 0);
    unsigned char *pointer = {{ prefix }}_realloc(heap, objects[i].at, size), *cores = NULL;
{% if compared %}
    cores = core_realloc(&POLICY, MODEL, model + (objects[i].at - arena), size);
{% endif %}
    check_same(pointer, cores);
    prove(pointer || size > old, "realloc: to make an object smaller never fails");
    if (pointer) {
        prove({{ prefix }}_usable_size(heap, pointer) >= size, "capacity: an object is as large as requested");
        check_content(i, pointer, size < old ? size : old);
    }
    settle(heap, i, pointer, size, largest);
}

static void release(struct {{ prefix }}_heap *heap, unsigned i)
{
    told(FREE, i, 0, 0);
    {{ prefix }}_free(heap, objects[i].at);
{% if compared %}
    core_free(&POLICY, MODEL, model + (objects[i].at - arena));
{% endif %}
    objects[i].at = NULL;
}

/* Calls that every heap refuses, or that do nothing. */
static void wrong_calls(struct {{ prefix }}_heap *heap)
{
    const unsigned kind = random_below(6);
    if (kind == 0) {
        {{ prefix }}_free(heap, NULL);
        return;
    }
    const size_t half = SIZE_MAX / 2u + 2u;
    const void *served = kind == 1   ? {{ prefix }}_calloc(heap, half, 2)
                         : kind == 2 ? {{ prefix }}_calloc(heap, 2, half)
                         : kind == 3 ? {{ prefix }}_aligned_alloc(heap, 0, 8)
                         : kind == 4 ? {{ prefix }}_aligned_alloc(heap, 24, 8)
                                     : {{ prefix }}_realloc(heap, NULL, half);
{% if compared %}
    if (kind == 1 || kind == 2) {
        core_calloc(&POLICY, MODEL, kind == 1 ? half : 2, kind == 1 ? 2 : half);
    } else if (kind < 5) {
        core_aligned_alloc(&POLICY, MODEL, kind == 3 ? 0 : 24, 8);
    } else {
        core_realloc(&POLICY, MODEL, NULL, half);
    }
{% endif %}
    refused++;
    prove(!served, "refused: what cannot be served");
    prove({{ prefix }}_usable_size(heap, NULL) == 0, "capacity: none of no object");
}

static unsigned any_object(int is_live)
{
    unsigned i = random_below(OBJECTS);
    for (unsigned k = 0; k < OBJECTS && (objects[i].at != NULL) != is_live; k++) {
        i = (i + 1u) % OBJECTS;
    }
    return (objects[i].at != NULL) == is_live ? i : OBJECTS;
}

static void any_call(struct {{ prefix }}_heap *heap)
{
    const uint32_t kind = random_below(32);
    const unsigned live = any_object(1), free_ = any_object(0);
    if (kind == 0) {
        wrong_calls(heap);
    } else if (kind < 12 && live < OBJECTS) {
        release(heap, live);
    } else if (kind < 16 && live < OBJECTS) {
        resize(heap, live, any_size());
    } else if (free_ < OBJECTS) {
        size_t size = any_size();
        const unsigned call = kind < 26 ? MALLOC : kind < 29 ? CALLOC : ALIGNED_ALLOC;
        size = call == CALLOC && size > 20000u && size <= bytes ? size % 20000u : size;
        allocate(heap, free_, call, size, call == ALIGNED_ALLOC ? (size_t)1 << random_below(kind == 31 ? 13 : 6) : 0);
    }
}

static struct {{ prefix }}_heap *fresh(unsigned size)
{
    bytes = arena_bytes[size];
    refused = peak = calls_told = 0;
    memset(objects, 0, sizeof objects);
    seen = bytes < SEEN ? bytes : SEEN;
    memset(arena, (int)programs, seen);
    struct {{ prefix }}_heap *heap = {{ prefix }}_init(arena, bytes);
    prove(heap != NULL, "init: the arena is accepted");
{% if compared %}
    memset(model, (int)programs, seen);
    core_init(&POLICY, model, bytes);
{% endif %}
    return heap;
}

/* How many requests of 100 bytes are served until one is refused. */
static size_t fill(struct {{ prefix }}_heap *heap)
{
    size_t count = 0;
    const unsigned char *pointer;
    while (count < MOST_FILLED && (pointer = plain_malloc(heap, 100)) != NULL) {
        prove((size_t)(pointer - arena) + {{ prefix }}_usable_size(heap, pointer) <= bytes,
              "bounds: an object lies in the arena");
        count++;
    }
{% if compared %}
    const struct {{ prefix }}_statistics told = {{ prefix }}_statistics(heap), cores = core_statistics(&POLICY, MODEL);
    AGREES(memcmp(&told, &cores, sizeof told), 0);
    AGREES({{ prefix }}_largest_free(heap, UINT32_MAX), core_largest_free(&POLICY, MODEL, UINT32_MAX));
{% endif %}
    return count;
}

/* The largest request that a fresh heap serves. */
static void measure(unsigned size)
{
    size_t served = 0;
    for (size_t step = (size_t)1 << 31; step; step >>= 1) {
        if (served + step >= LARGEST_ARENA) {
            continue;
        }
        struct {{ prefix }}_heap *heap = fresh(size);
        told(MALLOC, 0, served + step, 0);
        if (plain_malloc(heap, served + step)) {
            served += step;
        }
    }
    most[size] = served;
    fills[size] = fill(fresh(size));
}

/* All objects are freed: what a fresh heap served is served again. */
static void end(struct {{ prefix }}_heap *heap, unsigned size)
{
    for (unsigned live; (live = any_object(1)) < OBJECTS;) {
        release(heap, live);
        check_heap(heap);
    }
{% if merges %}
    if ({{ fills }} && random_below(2)) {
        prove(fill(heap) >= fills[size], "served again: as many objects as by a fresh heap");
    } else if (most[size]) {
        told(MALLOC, 0, most[size], 0);
        prove(plain_malloc(heap, most[size]) != NULL, "served again: the largest request of a fresh heap");
    }
{% endif %}
}

static void any_program(void)
{
    const unsigned size = random_below(ARENAS);
    struct {{ prefix }}_heap *heap = fresh(size);
    for (unsigned step = 0; step < STEPS; step++) {
        any_call(heap);
        check_heap(heap);
{% if bytewise %}
        damage(heap);
{% endif %}
    }
    end(heap, size);
}

/* A block of one size is freed between two objects, and the next one asks for a size near it. */
static void pair(size_t first, size_t second)
{
    const unsigned size = first < arena_bytes[ARENAS - 2] / 3u ? ARENAS - 2 : ARENAS - 1;
    struct {{ prefix }}_heap *heap = fresh(size);
    allocate(heap, 0, MALLOC, first, 0);
    allocate(heap, 1, MALLOC, 1, 0);
    if (objects[0].at) {
        release(heap, 0);
    }
    check_heap(heap);
    allocate(heap, 2, MALLOC, second, 0);
    check_heap(heap);
}

static void first_calls(void)
{
    for (size_t least = {{ fixed_end }}u - 20u; least < {{ fixed_end }}u + 20u; least++) {
        prove(({{ prefix }}_init(arena, least) != NULL) == (least >= {{ fixed_end }}u), "init: what is too small is refused");
    }
    prove({{ prefix }}_init(NULL, LARGEST_ARENA) == NULL, "init: NULL is refused");
    prove({{ prefix }}_init(arena + {{ upper }}_ARENA_ALIGNMENT / 2u, LARGEST_ARENA - 64u) == NULL, "init: a misaligned arena is refused");
    for (unsigned size = 0; size < ARENAS; size++) {
        measure(size);
    }
}

int main(void)
{
    watch();
    if (setjmp(end_of_run) == 0) {
        first_calls();
    }
    for (volatile unsigned i = 0; i < PAIRS; i++) {
        programs++;
        if (setjmp(end_of_run) == 0) {
            pair(edges[pairs[i][0]], edges[pairs[i][1]]);
        }
    }
    for (volatile unsigned i = 0; i < PROGRAMS; i++) {
        programs++;
        if (setjmp(end_of_run) == 0) {
            any_program();
        }
    }
    printf("programs %llu\n", programs);
    return 0;
}
