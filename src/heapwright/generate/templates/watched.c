/* ---- entries that AddressSanitizer or Valgrind watches ----------------------------------------------------------- */

#if defined({{ upper }}_ASAN) || defined({{ upper }}_VALGRIND)
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute pop
#else
#undef static
#pragma GCC pop_options
#endif
{% for entry in entries %}
#undef {{ entry.name }}
{% endfor %}

#if defined({{ upper }}_ASAN)
#include <sanitizer/asan_interface.h>
#define {{ upper }}_QUIET ((void)0)
#define {{ upper }}_LOUD ((void)0)
#define {{ upper }}_SHUT_ARENA(at, bytes) __asan_poison_memory_region(at, bytes)
#define {{ upper }}_OPEN_ALL(heap, at, bytes) {{ prefix }}_open_bytes(heap, (void *)(uintptr_t)(at), bytes, 1)

{% if apart %}
/* Opens an object; an empty one has a byte, so that it can be told from one that was freed. */
static inline void {{ prefix }}_open_bytes(struct {{ prefix }}_heap *heap, void *object, size_t size, int defined)
{
    (void)heap;
    (void)defined;
    __asan_unpoison_memory_region(object, size ? size : 1u);
}

/* Shuts an object; 0 where the pointer leads to none. */
static inline int {{ prefix }}_shut_object(struct {{ prefix }}_heap *heap, char *at)
{
    if (!{{ prefix }}_unseen_owns(heap, at) || __asan_address_is_poisoned(at)) {
        return 0;
    }
{% if headed %}
    if ((uintptr_t)at % 8u == 0 && !__asan_address_is_poisoned(at - 1)) {
        return 0; /* no header ahead */
    }
{% endif %}
    const size_t bytes = {{ prefix }}_unseen_usable_size(heap, at);
    if (bytes && !{{ prefix }}_unseen_owns(heap, at + bytes - 1)) {
        return 0;
    }
    __asan_poison_memory_region(at, bytes);
    return 1;
}
{% else %}
/* AddressSanitizer marks 8 bytes at a time, and objects of this heap may share these. Only those that are an object's
 * alone are shut again; what it shares stays open once it was, whoever is alive. */
struct {{ prefix }}_marks {
    char *own; /* the first 8 bytes that no other object shares */
    char *end; /* where the last such end; `own` where there are none */
};

static inline struct {{ prefix }}_marks {{ prefix }}_marks_of(struct {{ prefix }}_heap *heap, char *object)
{
    const size_t bytes = {{ prefix }}_unseen_usable_size(heap, object);
    const size_t ahead = (size_t)(0u - (uintptr_t)object) % 8u;
    const size_t whole = bytes > ahead ? (bytes - ahead) / 8u * 8u : 0;
    const struct {{ prefix }}_marks marks = {object + ahead, object + ahead + whole};
    return marks;
}

/* Opens the first bytes of an object, and one of its own, so that it can be told from one that was freed. */
static inline void {{ prefix }}_open_bytes(struct {{ prefix }}_heap *heap, void *object, size_t size, int defined)
{
    char *at = object;
    const struct {{ prefix }}_marks marks = {{ prefix }}_marks_of(heap, at);
    char *end = at + size;
    if (marks.own < marks.end && end <= marks.own) {
        end = marks.own + 1;
    }
    if (end > marks.end) {
        end += (size_t)(0u - (uintptr_t)end) % 8u;
    }
    at -= (uintptr_t)at % 8u;
    (void)defined;
    __asan_unpoison_memory_region(at, (size_t)(end - at));
}

/* Shuts an object; 0 where the pointer is known to lead to none. */
static inline int {{ prefix }}_shut_object(struct {{ prefix }}_heap *heap, char *at)
{
    if (!{{ prefix }}_unseen_owns(heap, at)) {
        return 0;
    }
    const struct {{ prefix }}_marks marks = {{ prefix }}_marks_of(heap, at);
    if (marks.own < marks.end) {
        if (__asan_address_is_poisoned(marks.own) || !{{ prefix }}_unseen_owns(heap, marks.end - 1)) {
            return 0;
        }
        __asan_poison_memory_region(marks.own, (size_t)(marks.end - marks.own));
    }
    return 1;
}
{% endif %}

/* Tells of a pointer that leads to no object, where the entry was called. */
#define {{ upper }}_REPORT(pointer)                                                                                            \
    __asan_report_error(__builtin_return_address(0), __builtin_frame_address(0), __builtin_frame_address(0), pointer,  \
                        0, 1)
#else
#include <valgrind/memcheck.h>
#define {{ upper }}_QUIET VALGRIND_DISABLE_ERROR_REPORTING
#define {{ upper }}_LOUD VALGRIND_ENABLE_ERROR_REPORTING
#define {{ upper }}_SHUT_ARENA(at, bytes) (void)VALGRIND_MAKE_MEM_NOACCESS(at, bytes)
#define {{ upper }}_OPEN_ALL(heap, at, bytes) (void)VALGRIND_MAKE_MEM_DEFINED(at, bytes)

static inline void {{ prefix }}_open_bytes(struct {{ prefix }}_heap *heap, void *object, size_t size, int defined)
{
    (void)heap;
    VALGRIND_MALLOCLIKE_BLOCK(object, size, 0, defined);
}

/* Shuts an object; 0 where the pointer leads to none, which is reported. */
static inline int {{ prefix }}_shut_object(struct {{ prefix }}_heap *heap, void *pointer)
{
    (void)heap;
    const unsigned errors = (unsigned)VALGRIND_COUNT_ERRORS;
    VALGRIND_FREELIKE_BLOCK(pointer, 0);
    return (unsigned)VALGRIND_COUNT_ERRORS == errors;
}

#define {{ upper }}_REPORT(pointer) ((void)(pointer))
#endif

/* Opens what a request got. */
static inline void *{{ prefix }}_open(struct {{ prefix }}_heap *heap, void *object, size_t size, int defined)
{
    if (object) {
        {{ prefix }}_open_bytes(heap, object, size, defined);
    }
    {{ upper }}_LOUD;
    return object;
}

struct {{ prefix }}_heap *{{ prefix }}_init(void *arena, size_t bytes)
{
    struct {{ prefix }}_heap *heap = {{ prefix }}_unseen_init(arena, bytes);
    if (heap) {
        {{ upper }}_SHUT_ARENA(arena, bytes);
    }
    return heap;
}

void *{{ prefix }}_malloc(struct {{ prefix }}_heap *heap, size_t size)
{
    {{ upper }}_QUIET;
    return {{ prefix }}_open(heap, {{ prefix }}_unseen_malloc(heap, size), size, 0);
}

void *{{ prefix }}_calloc(struct {{ prefix }}_heap *heap, size_t count, size_t size)
{
    {{ upper }}_QUIET;
    return {{ prefix }}_open(heap, {{ prefix }}_unseen_calloc(heap, count, size), count * size, 1);
}

void *{{ prefix }}_aligned_alloc(struct {{ prefix }}_heap *heap, size_t alignment, size_t size)
{
    {{ upper }}_QUIET;
    return {{ prefix }}_open(heap, {{ prefix }}_unseen_aligned_alloc(heap, alignment, size), size, 0);
}

void *{{ prefix }}_realloc(struct {{ prefix }}_heap *heap, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return {{ prefix }}_malloc(heap, size);
    }
    if (!{{ prefix }}_shut_object(heap, pointer)) {
        {{ upper }}_REPORT(pointer);
        return NULL;
    }
    {{ upper }}_QUIET;
{% if checked %}
    const uint32_t misused = {{ prefix }}_unseen_misused(heap);
{% endif %}
    void *object = {{ prefix }}_unseen_realloc(heap, pointer, size);
{% if checked %}
    if ({{ prefix }}_unseen_misused(heap) != misused) {
        {{ upper }}_REPORT(pointer);
    }
{% endif %}
    if (object == NULL) {
        (void){{ prefix }}_open(heap, pointer, {{ prefix }}_unseen_usable_size(heap, pointer), 1);
        return NULL;
    }
    return {{ prefix }}_open(heap, object, size, 1);
}

void {{ prefix }}_free(struct {{ prefix }}_heap *heap, void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    if (!{{ prefix }}_shut_object(heap, pointer)) {
        {{ upper }}_REPORT(pointer);
        return;
    }
    {{ upper }}_QUIET;
{% if checked %}
    const uint32_t misused = {{ prefix }}_unseen_misused(heap);
{% endif %}
    {{ prefix }}_unseen_free(heap, pointer);
{% if checked %}
    if ({{ prefix }}_unseen_misused(heap) != misused) {
        {{ upper }}_REPORT(pointer);
    }
{% endif %}
    {{ upper }}_LOUD;
}

{% for entry in entries if entry.looks %}
{{ entry.type }}{{ entry.name }}({{ entry.parameters }})
{
    {{ upper }}_QUIET;
{% if entry.type == "void " %}
    {{ entry.unseen }}({{ entry.arguments }});
    {{ upper }}_LOUD;
{% else %}
    const {{ entry.type }}told = {{ entry.unseen }}({{ entry.arguments }});
    {{ upper }}_LOUD;
    return told;
{% endif %}
}

{% endfor %}
/* Who asks may use all of it from then on. */
size_t {{ prefix }}_usable_size(struct {{ prefix }}_heap *heap, const void *pointer)
{
    {{ upper }}_QUIET;
    const size_t bytes = {{ prefix }}_unseen_usable_size(heap, pointer);
    {{ upper }}_LOUD;
    if (bytes) {
        {{ upper }}_OPEN_ALL(heap, pointer, bytes);
    }
    return bytes;
}
#endif
