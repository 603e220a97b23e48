{% import "test_parts.c" as parts with context %}
/* {{ prefix }}_heap_test.c: a small test of {{ prefix }}_heap.c, for the host or the target.
 *
 *     cc -std=c11 -Wall -Wextra -O2{{ " -pthread" if threads != "none" }} {{ prefix }}_heap.c {{ prefix + "_behind.c " if behind }}{{ prefix }}_heap_test.c -o {{ prefix }}_heap_test && ./{{ prefix }}_heap_test
 *
{% if align < 16 %}
 * A host needs -D{{ unchecked }} for that: its max_align_t is larger than the heap's alignment.
 *
{% endif %}
 * It allocates, resizes and frees objects at random in an arena that often has no room for another one, and checks
 * every object's bytes, and the heap's invariants after each call. On a target without stdio define
 * {{ upper }}_TEST_QUIET and read the exit code.
 */
#include "{{ prefix }}_heap.h"

{{ parts.say() }}

#ifndef ARENA_BYTES
#define ARENA_BYTES {{ arena_bytes }}u
#endif

{% if moving %}
/* References lie near the arena. */
static struct {
    _Alignas({{ upper }}_ARENA_ALIGNMENT) unsigned char arena[ARENA_BYTES];
    {{ "struct " + prefix + "_handle handles[OBJECTS + 1];" if chained else "void *references[OBJECTS + 1];" }}
} memory;

#define ARENA memory.arena
#define REFERENCE(i) (&memory.{{ "handles[i].pointer" if chained else "references[i]" }})
{% else %}
static _Alignas({{ upper }}_ARENA_ALIGNMENT) unsigned char arena[ARENA_BYTES];

#define ARENA arena
{% endif %}

{{ parts.objects() }}

static void fill(unsigned i, size_t from)
{
    for (size_t k = from; k < objects[i].size; k++) {
        objects[i].bytes[k] = (unsigned char)(i * 31u + k);
    }
}

{{ parts.is_intact() }}

/* Many small objects, some large ones: what networks ask for. */
static size_t random_size(void)
{
    return random_below(4) ? random_below(128) : random_below(2048);
}

{% if moving %}
/* Finds all objects again. */
static void look_up(struct {{ prefix }}_heap *heap)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        objects[i].bytes = {{ prefix }}_handle_pointer(heap, REFERENCE(i));
    }
}

{% endif %}
static void release(struct {{ prefix }}_heap *heap, unsigned i)
{
    expect(is_intact(i, objects[i].size), "an object keeps its bytes");
{% if moving %}
    {{ prefix }}_handle_free(heap, REFERENCE(i));
    look_up(heap);
{% else %}
    {{ prefix }}_free(heap, objects[i].bytes);
    objects[i].bytes = NULL;
{% endif %}
}

static void resize(struct {{ prefix }}_heap *heap, unsigned i)
{
    const size_t size = random_size();
{% if moving %}
    const int resized = {{ prefix }}_handle_realloc(heap, REFERENCE(i), size);
    look_up(heap);
    if (!resized) {
        return; /* the object lives on, perhaps elsewhere */
    }
{% else %}
    unsigned char *bytes = {{ prefix }}_realloc(heap, objects[i].bytes, size);
    if (bytes == NULL) {
        return; /* the object lives on as it was */
    }
{% endif %}
    const size_t kept = size < objects[i].size ? size : objects[i].size;
{% if not moving %}
    objects[i].bytes = bytes;
{% endif %}
    expect(is_intact(i, kept), "realloc keeps an object's bytes");
    objects[i].size = size;
    fill(i, kept);
}

static void allocate(struct {{ prefix }}_heap *heap, unsigned i)
{
    size_t alignment = {{ upper }}_ALIGNMENT;
    objects[i].size = random_size();
{% if aligned or behind %}
    if (random_below(16) == 0) {
        alignment = {{ upper }}_ARENA_ALIGNMENT * 4u;
        objects[i].bytes = {{ prefix }}_aligned_alloc(heap, alignment, objects[i].size);
    } else {
        objects[i].bytes = {{ prefix }}_malloc(heap, objects[i].size);
    }
{% elif moving %}
    const int served = {{ prefix }}_handle_alloc(heap, REFERENCE(i), objects[i].size);
    look_up(heap);
    expect(served == (objects[i].bytes != NULL), "a reference leads to what was served");
{% else %}
    objects[i].bytes = {{ prefix }}_malloc(heap, objects[i].size);
{% endif %}
{% if sites %}
    if (objects[i].bytes && random_below(2)) {
        {{ prefix }}_free(heap, objects[i].bytes);
        alignment = {{ upper }}_ALIGNMENT;
        const uint32_t site = random_below({{ sites[-1][1] + 1 }});
        objects[i].bytes = random_below(4) ? {{ prefix }}_malloc_at(heap, site, objects[i].size)
                                           : {{ prefix }}_calloc_at(heap, site, 1, objects[i].size);
    }
{% endif %}
    if (objects[i].bytes) {
        expect((uintptr_t)objects[i].bytes % alignment == 0, "an object is aligned");
{% if moving %}
        expect({{ prefix }}_handle_usable_size(heap, REFERENCE(i)) >= objects[i].size, "an object is large enough");
{% elif behind %}
        const size_t usable = {{ prefix }}_usable_size(heap, objects[i].bytes);
        expect(usable >= objects[i].size || usable == 0, "an object is large enough, where that is known");
{% else %}
        expect({{ prefix }}_usable_size(heap, objects[i].bytes) >= objects[i].size, "an object is large enough");
{% endif %}
        fill(i, 0);
    }
}

static void test_random_calls(struct {{ prefix }}_heap *heap)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = random_below(OBJECTS);
        if (objects[i].bytes == NULL) {
            allocate(heap, i);
        } else if (random_below(8) == 0) {
            resize(heap, i);
        } else {
            release(heap, i);
        }
        expect({{ prefix }}_check(heap) == 0, "the heap's invariants hold");
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].bytes) {
            release(heap, i);
        }
    }
{% if threads == "cached" %}
    {{ prefix }}_release_thread(heap);
    expect({{ prefix }}_cached_bytes(heap) == 0, "no cache holds anything once its thread has given it back");
{% endif %}
    const struct {{ prefix }}_statistics stats = {{ prefix }}_statistics(heap);
    expect(stats.used == 0 && stats.used_blocks == 0, "nothing is in use after all is freed");
    expect(stats.peak <= ARENA_BYTES, "the peak lies within the arena");
}

static void test_impossible_requests(struct {{ prefix }}_heap *heap)
{
    const uint32_t refused = {{ prefix }}_statistics(heap).refused;
{% if moving %}
    void **reference = REFERENCE(OBJECTS);
    expect(!{{ prefix }}_handle_alloc(heap, reference, SIZE_MAX), "SIZE_MAX bytes are refused");
    expect(*reference == NULL, "a refused reference is NULL");
    expect({{ prefix }}_statistics(heap).refused == refused + 1u, "refused requests are counted");
    {{ prefix }}_handle_free(heap, reference);
{% else %}
    expect({{ prefix }}_malloc(heap, SIZE_MAX) == NULL, "SIZE_MAX bytes are refused");
    expect({{ prefix }}_calloc(heap, SIZE_MAX / 2u, 4u) == NULL, "a product that overflows is refused");
    expect({{ prefix }}_statistics(heap).refused == refused + 2u, "refused requests are counted");
    {{ prefix }}_free(heap, NULL);
{% endif %}
    expect({{ prefix }}_check(heap) == 0, "the heap's invariants hold");
}
{% if behind %}

/* An object goes from the pools to what is behind them, and goes back to where it lies. */
static void test_the_border(struct {{ prefix }}_heap *heap)
{
    const uint32_t passed = {{ prefix }}_statistics(heap).refused;
    objects[0].size = {{ offered[0] }}u;
    objects[0].bytes = {{ prefix }}_malloc(heap, objects[0].size);
    expect({{ prefix }}_owns(heap, objects[0].bytes), "the pools serve what they have room for");
    fill(0, 0);
    objects[0].bytes = {{ prefix }}_realloc(heap, objects[0].bytes, ARENA_BYTES + 1u);
    expect(objects[0].bytes != NULL, "what outgrows the pools is passed on");
    expect(!{{ prefix }}_owns(heap, objects[0].bytes), "it lies behind them");
    expect({{ prefix }}_statistics(heap).refused == passed + 1u, "what was passed on is counted");
    expect({{ prefix }}_statistics(heap).used == 0, "its place in the pools is free");
    objects[0].bytes = {{ prefix }}_realloc(heap, objects[0].bytes, objects[0].size);
    expect(!{{ prefix }}_owns(heap, objects[0].bytes), "what lies behind the pools stays there");
    release(heap, 0);
    expect({{ prefix }}_statistics(heap).refused == passed + 1u, "nothing else was passed on");
    objects[0].bytes = {{ prefix }}_calloc(heap, ARENA_BYTES + 1u, 1);
    for (size_t k = 0; objects[0].bytes != NULL && k <= ARENA_BYTES; k++) {
        expect(objects[0].bytes[k] == 0, "calloc clears what was passed on");
    }
    {{ prefix }}_free(heap, objects[0].bytes);
    objects[0].bytes = NULL;
}
{% endif %}
{% if checked and not traps %}

{% if not moving %}
#ifndef {{ upper }}_WATCHED /* define it with {{ prefix }}_heap_watched.c, with which the tool reports them */
{% endif %}
static void test_wrong_pointers(struct {{ prefix }}_heap *heap)
{
    int elsewhere = 0;
    const uint32_t misused = {{ prefix }}_misused(heap);
{% if moving %}
    *REFERENCE(OBJECTS) = &elsewhere;
    {{ prefix }}_handle_free(heap, REFERENCE(OBJECTS));
{% else %}
    {{ prefix }}_{{ pools }}free(heap, &elsewhere);
{% endif %}
    expect({{ prefix }}_misused(heap) == misused + 1u, "a foreign pointer is ignored and counted");
    expect({{ prefix }}_check(heap) == 0, "the heap's invariants hold");
}
{% if not moving %}
#endif
{% endif %}
{% endif %}

int main(void)
{
    expect({{ prefix }}_init(ARENA, {{ least_arena - 1 }}u) == NULL, "an arena that cannot hold the control data is refused");
    struct {{ prefix }}_heap *heap = {{ prefix }}_init(ARENA, ARENA_BYTES);
    expect(heap != NULL, "the arena is accepted");
    if (heap) {
        test_random_calls(heap);
        test_impossible_requests(heap);
{% if behind %}
        test_the_border(heap);
{% endif %}
{% if checked and not traps and moving %}
        test_wrong_pointers(heap);
{% elif checked and not traps %}
#ifndef {{ upper }}_WATCHED
        test_wrong_pointers(heap);
#endif
{% endif %}
    }
    SAY("{{ prefix }}_heap: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
