{% import "test_parts.c" as parts with context %}
/* {{ prefix }}_heap_test.c: a small test of {{ prefix }}_heap.c, for the host or the target.
 *
 *     cc -std=c11 -Wall -Wextra -O2 {{ prefix }}_heap.c {{ memories | map(attribute="source") | join(" ") }} {{ prefix }}_heap_test.c -o {{ prefix }}_heap_test
 *
{% if align < 16 %}
 * A host needs {{ memories | map(attribute="unchecked") | join(" ") }} for that: its max_align_t is larger than the
 * heap's alignment.
 *
{% endif %}
 * It allocates, resizes and frees objects at random in memories that often have no room for another one, and checks
 * every object's bytes, and the heap's invariants after each call. On a target without stdio define
 * {{ upper }}_TEST_QUIET and read the exit code.
 */
#include "{{ prefix }}_heap.h"

{{ parts.say() }}

{% for one in memories %}
static _Alignas({{ one.upper }}_ARENA_ALIGNMENT) unsigned char {{ one.name }}_memory[{{ one.test_bytes }}];
{% endfor %}

{{ parts.objects() }}

{{ parts.is_intact() }}

static void release(struct {{ prefix }}_heap *heap, unsigned i)
{
    expect(is_intact(i, objects[i].size), "an object keeps its bytes");
    {{ prefix }}_free(heap, objects[i].bytes);
    objects[i].bytes = NULL;
}

/* Asks for a new object, or for another size. */
static void request(struct {{ prefix }}_heap *heap, unsigned i)
{
    const size_t size = random_below(4) ? random_below(128) : random_below(2048);
    unsigned char *bytes = {{ prefix }}_realloc(heap, objects[i].bytes, size);
    if (bytes == NULL) {
        return; /* the object lives on as it was */
    }
    const size_t kept = objects[i].bytes == NULL ? 0 : size < objects[i].size ? size : objects[i].size;
    objects[i].bytes = bytes;
    objects[i].size = size;
    expect(is_intact(i, kept), "realloc keeps an object's bytes");
    expect((uintptr_t)bytes % {{ upper }}_ALIGNMENT == 0, "an object is aligned");
    expect({{ prefix }}_owns(heap, bytes) && {{ prefix }}_usable_size(heap, bytes) >= size, "an object is large enough");
    for (size_t k = kept; k < size; k++) {
        bytes[k] = (unsigned char)(i * 31u + k);
    }
}

static void test_random_calls(struct {{ prefix }}_heap *heap)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        const unsigned i = random_below(OBJECTS);
        if (objects[i].bytes != NULL && random_below(8)) {
            release(heap, i);
        } else {
            request(heap, i);
        }
        expect({{ prefix }}_check(heap) == 0, "the heap's invariants hold");
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (objects[i].bytes) {
            release(heap, i);
        }
    }
{% for one in memories %}
    expect({{ one.prefix }}_statistics(heap->{{ one.name }}_heap).used == 0, "nothing is in use after all is freed");
{% endfor %}
}

int main(void)
{
    struct {{ prefix }}_heap heap;
    expect(!{{ prefix }}_init(&heap, {% for one in memories %}{{ one.name }}_memory, {{ one.least - 1 if loop.last else "sizeof " + one.name + "_memory" }}{{ ", " if not loop.last }}{% endfor %}), "too small a memory is refused");
    expect({{ prefix }}_init(&heap, {% for one in memories %}{{ one.name }}_memory, sizeof {{ one.name }}_memory{{ ", " if not loop.last }}{% endfor %}), "the memories are accepted");
    if (failures == 0) {
        test_random_calls(&heap);
        expect({{ prefix }}_malloc(&heap, SIZE_MAX) == NULL, "SIZE_MAX bytes are refused");
        expect({{ prefix }}_calloc(&heap, SIZE_MAX / 2u, 4u) == NULL, "a product that overflows is refused");
        {{ prefix }}_free(&heap, NULL);
    }
    SAY("{{ prefix }}_heap: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
