/* What is to be proved of {{ prefix }}_heap.c, which is read as it is.
 *
 * Bounds: {{ bounds }}.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

{% include by + ".h" %}

{% include "the_heap.h" %}

enum { ARENA = {{ arena }}, STEPS = {{ steps }}, OBJECTS = {{ calls }}, LARGEST = {{ largest }} };

enum call { NOTHING, MALLOC, FREE, CALLOC, REALLOC, ALIGNED_ALLOC, FREE_WRONG };

static _Alignas({{ upper }}_ARENA_ALIGNMENT) unsigned char arena[ARENA];

static struct {
    int is_live;
    unsigned at; /* offset from the start of the arena */
    unsigned size;
} objects[OBJECTS];
{% if by == "enumeration" %}

static void prepare(unsigned char content)
{
    memset(arena, content, ARENA);
    memset(objects, 0, sizeof objects);
}

/* No call has changed what the program wrote into the object i. */
static void check_content(const struct {{ prefix }}_heap *heap, unsigned i)
{
    const unsigned char *bytes = arena + objects[i].at;
    const size_t usable = {{ prefix }}_usable_size(heap, bytes);
    for (size_t k = 0; k < usable; k++) {
        prove(bytes[k] == fill, "content: an object keeps its bytes");
    }
}
{% endif %}

static unsigned any_live_object(void)
{
    const unsigned i = any_up_to(OBJECTS - 1);
    assume(objects[i].is_live);
    return i;
}

/* The object i is where the heap has put it now, and the program writes to it. */
static void place(struct {{ prefix }}_heap *heap, unsigned i, unsigned char *pointer, unsigned size)
{
    const unsigned alignment = {{ upper }}_ALIGNMENT;
    const size_t usable = {{ prefix }}_usable_size(heap, pointer);
    const size_t at = (size_t)(pointer - arena);
    prove((at & (alignment - 1u)) == 0, "alignment: an object is aligned");
    prove(at < ARENA && ARENA - at >= size, "bounds: an object lies in the arena");
    prove(usable >= size && usable <= ARENA - at, "capacity: an object is as large as requested");
    write_object(pointer, usable);
    objects[i].is_live = 1;
    objects[i].at = (unsigned)at;
    objects[i].size = size;
}

static void allocate(struct {{ prefix }}_heap *heap, unsigned i)
{
    const unsigned size = any_up_to(LARGEST);
    told(MALLOC, i, size, 0);
    unsigned char *pointer = {{ prefix }}_malloc(heap, size);
    if (pointer != NULL) {
        place(heap, i, pointer, size);
    }
}

static void release(struct {{ prefix }}_heap *heap, unsigned i)
{
    told(FREE, i, 0, 0);
{% if by == "enumeration" %}
    check_content(heap, i);
{% endif %}
    objects[i].is_live = 0;
    {{ prefix }}_free(heap, arena + objects[i].at);
}

/* A malloc and a free of any object, or one of them, or none. */
static void any_calls(struct {{ prefix }}_heap *heap, unsigned step)
{
    if (any_up_to(1)) {
        allocate(heap, step);
    }
    if (any_up_to(1)) {
        release(heap, any_live_object());
    }
}
{% if last == "calloc" %}

static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned size = any_up_to(LARGEST);
    told(CALLOC, OBJECTS - 1, size, 0);
    unsigned char *pointer = {{ prefix }}_calloc(heap, 1, size);
    if (pointer != NULL) {
{% if by == "cbmc" %}
        const unsigned i = any_up_to(LARGEST);
        prove(i >= size || pointer[i] == 0, "calloc: every byte is zero");
{% else %}
        for (unsigned i = 0; i < size; i++) {
            prove(pointer[i] == 0, "calloc: every byte is zero");
        }
{% endif %}
        place(heap, OBJECTS - 1, pointer, size);
    }
}
{% elif last == "realloc" %}

static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned i = any_live_object();
    const unsigned size = any_up_to(LARGEST);
    const unsigned old = objects[i].size;
{% if by == "cbmc" %}
    const unsigned kept = any_up_to(LARGEST);
    const unsigned char byte = kept < old ? arena[objects[i].at + kept] : 0;
{% else %}
    check_content(heap, i);
{% endif %}
    told(REALLOC, i, size, 0);
    unsigned char *pointer = {{ prefix }}_realloc(heap, arena + objects[i].at, size);
    prove(pointer != NULL || size > old, "realloc: to make an object smaller never fails");
    if (pointer != NULL) {
{% if by == "cbmc" %}
        prove(kept >= size || kept >= old || pointer[kept] == byte, "realloc: an object keeps its bytes");
{% else %}
        for (unsigned k = 0; k < size && k < old; k++) {
            prove(pointer[k] == fill, "realloc: an object keeps its bytes");
        }
{% endif %}
        place(heap, i, pointer, size);
    }
}
{% elif last == "aligned_alloc" %}

static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned size = any_up_to(LARGEST);
    const unsigned alignment = 1u << any_up_to(5);
    told(ALIGNED_ALLOC, OBJECTS - 1, size, alignment);
    unsigned char *pointer = {{ prefix }}_aligned_alloc(heap, alignment, size);
    if (pointer != NULL) {
        prove(((size_t)pointer & (alignment - 1u)) == 0, "alignment: the address is as requested");
        place(heap, OBJECTS - 1, pointer, size);
    }
}
{% elif last == "misuse" %}

/* A free of any byte of the arena that is no live object. */
static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned at = any_up_to(ARENA - 1);
    for (unsigned i = 0; i < OBJECTS; i++) {
        assume(!objects[i].is_live || objects[i].at != at);
    }
    told(FREE_WRONG, 0, at, 0);
    {{ prefix }}_free(heap, arena + at);
}
{% endif %}

static void check_apart(unsigned i, unsigned k)
{
    prove(!objects[i].is_live || !objects[k].is_live || objects[i].at + objects[i].size <= objects[k].at ||
                         objects[k].at + objects[k].size <= objects[i].at,
                     "overlap: no two objects share a byte");
}

static void any_program(void)
{
    struct {{ prefix }}_heap *heap = {{ prefix }}_init(arena, ARENA);
    prove(heap != NULL, "init: the arena is accepted");
    for (unsigned step = 0; step < STEPS; step++) {
        any_calls(heap, step);
    }
{% if last %}
    last_call(heap);
{% endif %}
    for (unsigned i = 0; i < OBJECTS; i++) {
{% if by == "enumeration" %}
        if (objects[i].is_live) {
            check_content(heap, i);
        }
{% endif %}
        for (unsigned k = 0; k < i; k++) {
            check_apart(i, k);
        }
    }
    prove({{ prefix }}_check(heap) == 0, "invariants: the checker finds nothing");
}

int main(void)
{
    return every(any_program);
}
