/* {{ prefix }}_heap_inline.h: {{ prefix }}_malloc() and {{ prefix }}_free() of constant sizes, compiled where they are called.
 *
 * {{ upper }}_MALLOC(heap, size) is {{ prefix }}_malloc(heap, size), and {{ upper }}_FREE(heap, pointer, size) is {{ prefix }}_free(heap, pointer)
 * of an object that was requested with `size` bytes. Where GCC or clang know the size, its list is chosen at compile
 * time: a hit is a few loads and stores, and only what misses calls the heap. With any other compiler, any other size,
 * AddressSanitizer, {{ upper }}_VALGRIND, {{ upper }}_HOOKS or {{ upper }}_CALLS they are the calls.
 *
 * Hooks that are defined for {{ prefix }}_heap.c alone are not called for hits: define {{ upper }}_CALLS then.{% if sites %} An object of
 * {{ prefix }}_malloc_at() is freed by {{ prefix }}_free() alone.{% endif %}

 */
#ifndef {{ upper }}_HEAP_INLINE_H
#define {{ upper }}_HEAP_INLINE_H

#include "{{ prefix }}_heap.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define {{ upper }}_CALLS
#endif
#endif

#if defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined({{ upper }}_VALGRIND) && !defined({{ upper }}_HOOKS) && \
    !defined({{ upper }}_CALLS)

/* A word of the arena, of an object of any type. */
typedef uint32_t __attribute__((may_alias)) {{ prefix }}_word;

#define {{ upper }}_WORD(heap, at) (*({{ prefix }}_word *)(void *)((char *)(heap) + (at)))

/* Bytes of the block for `size` bytes, header included. */
static inline __attribute__((always_inline)) uint32_t {{ prefix }}_inline_block(size_t size)
{
{% if constant.lists %}
{% for list in constant.lists[:-1] %}
    if (size <= {{ list.to }}u) {
        return {{ list.block }}u;
    }
{% endfor %}
    (void)size;
    return {{ constant.lists[-1].block }}u;
{% else %}
    const uint32_t block = ((uint32_t)size + {{ constant.header + constant.unit - 1 }}u) & ~{{ constant.unit - 1 }}u;
    return block < {{ constant.least }}u ? {{ constant.least }}u : block;
{% endif %}
}

/* Address of the list that such blocks wait in; 0 where they have none. */
static inline __attribute__((always_inline)) uint32_t {{ prefix }}_inline_list(size_t size)
{
{% for list in constant.lists %}
    if (size - {{ list.from }}u <= {{ list.to - list.from }}u) {
        return {{ list.at }}u;
    }
{% endfor %}
{% if constant.lists %}
    return 0;
{% else %}
    if (size < {{ constant.from }}u || size > {{ constant.to }}u) {
        return 0;
    }
    return {{ constant.heads }}u + ({{ prefix }}_inline_block(size) - {{ constant.least }}u) / {{ constant.unit }}u * 4u;
{% endif %}
}

/* Takes the first block of the list that such blocks wait in, which has one; else asks the heap. */
static inline __attribute__((always_inline)) void *{{ prefix }}_inline_malloc(struct {{ prefix }}_heap *heap, size_t size)
{
    const uint32_t list = {{ prefix }}_inline_list(size);
    if (list) {
        const uint32_t at = {{ upper }}_WORD(heap, list);
        if (__builtin_expect(at != 0, 1)) {
            {{ prefix }}_word *object = &{{ upper }}_WORD(heap, at);
            {{ upper }}_WORD(heap, list) = *object;
            return object;
        }
    }
    return {{ prefix }}_malloc(heap, size);
}

/* Puts a block on the list that such blocks wait in, where it is as large as these; else gives it to the heap. */
static inline __attribute__((always_inline)) void {{ prefix }}_inline_free(struct {{ prefix }}_heap *heap, void *pointer, size_t size)
{
    const uint32_t list = {{ prefix }}_inline_list(size);
    if (list && pointer) {
        {{ prefix }}_word *object = ({{ prefix }}_word *)pointer;
        if (__builtin_expect((object[-{{ constant.header // 4 }}] | {{ constant.flags }}u) == ({{ prefix }}_inline_block(size) | {{ constant.flags }}u), 1)) {
            *object = {{ upper }}_WORD(heap, list);
            {{ upper }}_WORD(heap, list) = (uint32_t)((uintptr_t)pointer - (uintptr_t)heap);
            return;
        }
    }
    {{ prefix }}_free(heap, pointer);
}

#define {{ upper }}_MALLOC(heap, size)                                                                                         \
    (__builtin_constant_p(size) ? {{ prefix }}_inline_malloc(heap, size) : {{ prefix }}_malloc(heap, size))
#define {{ upper }}_FREE(heap, pointer, size)                                                                                  \
    (__builtin_constant_p(size) ? {{ prefix }}_inline_free(heap, pointer, size) : {{ prefix }}_free(heap, pointer))

#else
#define {{ upper }}_MALLOC(heap, size) {{ prefix }}_malloc(heap, size)
#define {{ upper }}_FREE(heap, pointer, size) {{ prefix }}_free(heap, pointer)
#endif

#endif
