/* What a bounded model checker is to prove of {{ prefix }}_heap.c, which it reads as it is.
 *
 * Bounds: {{ bounds }}.
 */
#define {{ unchecked }}
{% if threads != "none" %}
#define {{ upper }}_LOCK(heap) ((void)(heap), (uintptr_t)0)
#define {{ upper }}_UNLOCK(heap, key) ((void)(heap), (void)(key))
{% endif %}
#include "{{ prefix }}_heap.c"

enum { ARENA = {{ arena }}, STEPS = {{ steps }}, OBJECTS = {{ calls }}, LARGEST = {{ largest }} };

enum call { NOTHING, MALLOC, FREE, CALLOC, REALLOC, ALIGNED_ALLOC, FREE_WRONG };

unsigned nondet_number(void);
unsigned char nondet_byte(void);

static _Alignas({{ upper }}_ARENA_ALIGNMENT) unsigned char arena[ARENA];

static struct {
    int is_live;
    unsigned at; /* offset from the start of the arena */
    unsigned size;
} objects[OBJECTS];

/* The counterexample's calls, as the model checker's trace tells them. */
static void told(unsigned call, unsigned object, unsigned size, unsigned alignment)
{
    (void)call, (void)object, (void)size, (void)alignment;
}

static unsigned any_up_to(unsigned most)
{
    const unsigned number = nondet_number();
    __CPROVER_assume(number <= most);
    return number;
}

static unsigned any_live_object(void)
{
    const unsigned i = any_up_to(OBJECTS - 1);
    __CPROVER_assume(objects[i].is_live);
    return i;
}

/* The object i is where the heap has put it now, and the program writes the last byte that it may use. */
static void place(struct {{ prefix }}_heap *heap, unsigned i, unsigned char *pointer, unsigned size)
{
    const unsigned alignment = {{ upper }}_ALIGNMENT;
    const size_t usable = {{ prefix }}_usable_size(heap, pointer);
    const size_t at = (size_t)(pointer - arena);
    __CPROVER_assert((at & (alignment - 1u)) == 0, "alignment: an object is aligned");
    __CPROVER_assert(at < ARENA && ARENA - at >= size, "bounds: an object lies in the arena");
    __CPROVER_assert(usable >= size && usable <= ARENA - at, "capacity: an object is as large as was asked for");
    pointer[usable - 1u] = nondet_byte();
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
        const unsigned i = any_up_to(LARGEST);
        __CPROVER_assert(i >= size || pointer[i] == 0, "calloc: every byte is zero");
        place(heap, OBJECTS - 1, pointer, size);
    }
}
{% elif last == "realloc" %}

static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned i = any_live_object();
    const unsigned size = any_up_to(LARGEST);
    const unsigned kept = any_up_to(LARGEST);
    __CPROVER_assume(kept < objects[i].size);
    const unsigned char byte = arena[objects[i].at + kept];
    told(REALLOC, i, size, 0);
    unsigned char *pointer = {{ prefix }}_realloc(heap, arena + objects[i].at, size);
    __CPROVER_assert(pointer != NULL || size > objects[i].size, "realloc: to make an object smaller never fails");
    if (pointer != NULL) {
        __CPROVER_assert(kept >= size || pointer[kept] == byte, "realloc: an object keeps its bytes");
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
        __CPROVER_assert(((size_t)pointer & (alignment - 1u)) == 0, "alignment: the address is as was asked for");
        place(heap, OBJECTS - 1, pointer, size);
    }
}
{% elif last == "misuse" %}

/* A free of any byte of the arena that is no live object. */
static void last_call(struct {{ prefix }}_heap *heap)
{
    const unsigned at = any_up_to(ARENA - 1);
    for (unsigned i = 0; i < OBJECTS; i++) {
        __CPROVER_assume(!objects[i].is_live || objects[i].at != at);
    }
    told(FREE_WRONG, 0, at, 0);
    {{ prefix }}_free(heap, arena + at);
}
{% endif %}

static void check_apart(unsigned i, unsigned k)
{
    __CPROVER_assert(!objects[i].is_live || !objects[k].is_live || objects[i].at + objects[i].size <= objects[k].at ||
                         objects[k].at + objects[k].size <= objects[i].at,
                     "overlap: no two objects share a byte");
}

int main(void)
{
    struct {{ prefix }}_heap *heap = {{ prefix }}_init(arena, ARENA);
    __CPROVER_assert(heap != NULL, "init: the arena is accepted");
    for (unsigned step = 0; step < STEPS; step++) {
        any_calls(heap, step);
    }
{% if last %}
    last_call(heap);
{% endif %}
    for (unsigned i = 0; i < OBJECTS; i++) {
        for (unsigned k = 0; k < i; k++) {
            check_apart(i, k);
        }
    }
    __CPROVER_assert({{ prefix }}_check(heap) == 0, "invariants: the checker finds nothing");
    return 0;
}
