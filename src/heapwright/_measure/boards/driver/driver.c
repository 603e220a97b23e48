/* driver.c: replays a trace on a heap, on the target.
 *
 * The trace lies in memory at the address in hw_feed, so that one image serves every trace. Each call of the heap goes
 * through hw_call(), whose labels mark for an emulator where counting begins and ends; a hardware counter's ticks are
 * stored as well, for emulators that cannot look. After the last call the image reaches hw_done().
 *
 * HEAP_GENERATED: the heap that Heapwright generated, with the prefix `target`; HEAP_MOVING: one whose objects move,
 * REFERENCE_WORDS pointers to a reference, HEAP_ALIGN bytes of alignment. HEAP_LIBRARY: the C library's, which takes
 * memory from sbrk. HEAP_FILE: heap_init(), heap_malloc(), heap_free(), and optionally the others below.
 * HEAP_FREERTOS: the kernel's, called from a task of it; HEAP_ALIGN bytes of alignment.
 */
#include <stddef.h>
#include <stdint.h>

struct event {
    uint32_t op_and_slot; /* 4 bits of operation, 28 bits that number the object */
    uint32_t size;
};

enum { OP_MALLOC, OP_CALLOC, OP_REALLOC, OP_FREE }; /* above: aligned to 2 << (op - 4) bytes */

#define SKIPPED 0x80000000u /* the object was refused before */
#define REFUSED 0x40000000u

struct feed {
    uint32_t count;
    const struct event *events;
    uint32_t *ticks; /* 3 for the stubs, then one an event: ticks of the call, SKIPPED, REFUSED */
    void **objects;
    unsigned char *arena;
    uint32_t arena_bytes;
    uint32_t stub_value;    /* out: what the last stub computed */
    uint32_t stack_pointer; /* out: at the markers */
    uint32_t taken;         /* out: most bytes that the heap took from sbrk */
    uint32_t started;       /* out: the heap could be made */
};

extern struct feed hw_feed; /* placed by the linker script */

uint32_t hw_call(const void *function, uintptr_t a, uintptr_t b, uintptr_t c);
extern uint32_t hw_ticks, hw_stack_pointer;
void hw_start_counter(void);
void hw_done(void);

/* Functions of known length. */
void hw_stub_1(void);
void hw_stub_10(void);
uint32_t hw_stub_if(uint32_t *scratch);

#define CALL(function, a, b, c) hw_call((const void *)(function), (uintptr_t)(a), (uintptr_t)(b), (uintptr_t)(c))

#if defined(HEAP_GENERATED) || defined(HEAP_MOVING)
struct target_heap;
struct target_heap *target_init(void *arena, size_t bytes);
static struct target_heap *heap;
#define INIT() ((heap = target_init(hw_feed.arena, hw_feed.arena_bytes)) != NULL)
#endif

static uint32_t refuse(void)
{
    return 0;
}

#if defined(HEAP_GENERATED)
void *target_malloc(struct target_heap *heap, size_t size);
void *target_calloc(struct target_heap *heap, size_t count, size_t size);
void *target_realloc(struct target_heap *heap, void *pointer, size_t size);
void *target_aligned_alloc(struct target_heap *heap, size_t alignment, size_t size);
void target_free(struct target_heap *heap, void *pointer);
#define MALLOC(object, n) CALL(target_malloc, heap, n, 0)
#define CALLOC(object, n) CALL(target_calloc, heap, 1, n)
#define REALLOC(object, n) CALL(target_realloc, heap, *(object), n)
#define ALIGNED(object, a, n) CALL(target_aligned_alloc, heap, a, n)
#define FREE(object) CALL(target_free, heap, *(object), 0)
#elif defined(HEAP_MOVING)
/* References lie in front of the arena, as far from it as in a replay on the host: blocks store their distance. */
int target_handle_alloc(struct target_heap *heap, void **reference, size_t size);
int target_handle_realloc(struct target_heap *heap, void **reference, size_t size);
void target_handle_free(struct target_heap *heap, void **reference);
static void **reference(void **object)
{
    return (void **)(void *)hw_feed.arena - (object - hw_feed.objects + 1) * REFERENCE_WORDS;
}
#define MALLOC(object, n) CALL(target_handle_alloc, heap, reference(object), n)
#define CALLOC(object, n) MALLOC(object, n)
#define REALLOC(object, n) CALL(target_handle_realloc, heap, reference(object), n)
#define ALIGNED(object, a, n) ((a) > HEAP_ALIGN ? CALL(refuse, 0, 0, 0) : MALLOC(object, n))
#define FREE(object) CALL(target_handle_free, heap, reference(object), 0)
#elif defined(HEAP_FREERTOS)
void *pvPortMalloc(size_t size);
void *pvPortCalloc(size_t count, size_t size);
void vPortFree(void *pointer);
/* The kernel has no realloc: a program has to do this, and copy. */
static void *reallocate(void *pointer, size_t size)
{
    void *moved = pvPortMalloc(size);
    if (moved) {
        vPortFree(pointer);
    }
    return moved;
}
#define INIT() (pvPortMalloc(0) == NULL) /* which makes the heap: no call of the trace does */
#define MALLOC(object, n) CALL(pvPortMalloc, n, 0, 0)
#define CALLOC(object, n) CALL(pvPortCalloc, 1, n, 0)
#define REALLOC(object, n) CALL(reallocate, *(object), n, 0)
#define ALIGNED(object, a, n) ((a) > HEAP_ALIGN ? CALL(refuse, 0, 0, 0) : MALLOC(object, n))
#define FREE(object) CALL(vPortFree, *(object), 0, 0)
#else
#if defined(HEAP_LIBRARY)
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *pointer, size_t size);
void *memalign(size_t alignment, size_t size);
void free(void *pointer);
#define INIT() 1
#else
#define malloc heap_malloc
#define calloc heap_calloc
#define realloc heap_realloc
#define memalign heap_aligned_alloc
#define free heap_free
int heap_init(void *arena, size_t bytes);
void *heap_malloc(size_t size);
void heap_free(void *pointer);
__attribute__((weak)) void *heap_calloc(size_t count, size_t size);
__attribute__((weak)) void *heap_realloc(void *pointer, size_t size);
__attribute__((weak)) void *heap_aligned_alloc(size_t alignment, size_t size);
#define INIT() heap_init(hw_feed.arena, hw_feed.arena_bytes)
#endif
#define MALLOC(object, n) CALL(malloc, n, 0, 0)
#define CALLOC(object, n) CALL(calloc ? (const void *)calloc : (const void *)refuse, 1, n, 0)
#define REALLOC(object, n) CALL(realloc ? (const void *)realloc : (const void *)refuse, *(object), n, 0)
#define ALIGNED(object, a, n) CALL(memalign ? (const void *)memalign : (const void *)refuse, a, n, 0)
#define FREE(object) CALL(free, *(object), 0, 0)
#endif

/* For C libraries' heaps, under both names that they know it by. */
void *_sbrk(ptrdiff_t bytes)
{
    static unsigned char *top;
    if (top == NULL) {
        top = hw_feed.arena;
    }
    unsigned char *before = top;
    if (bytes > hw_feed.arena + hw_feed.arena_bytes - before) {
        return (void *)-1;
    }
    top = before + bytes;
    if (top - hw_feed.arena > (ptrdiff_t)hw_feed.taken) {
        hw_feed.taken = (uint32_t)(top - hw_feed.arena);
    }
    return before;
}

void *sbrk(ptrdiff_t bytes) __attribute__((alias("_sbrk")));

/* An allocated object is not NULL in the table; if it moves, the table says no more. */
static uint32_t perform(const struct event *event)
{
    void **object = &hw_feed.objects[event->op_and_slot & 0x0fffffffu];
    const uint32_t op = event->op_and_slot >> 28;
    const uint32_t size = event->size;
    if ((op == OP_FREE || op == OP_REALLOC) && *object == NULL) {
        return SKIPPED;
    }
    if (op == OP_FREE) {
        FREE(object);
        *object = NULL;
        return hw_ticks;
    }
    void *found = (void *)(uintptr_t)(op == OP_MALLOC    ? MALLOC(object, size)
                                      : op == OP_CALLOC  ? CALLOC(object, size)
                                      : op == OP_REALLOC ? REALLOC(object, size)
                                                         : ALIGNED(object, 2u << (op - 4u), size));
    if (found || op != OP_REALLOC) {
        *object = found;
    }
    return found ? hw_ticks : hw_ticks | REFUSED;
}

__attribute__((noreturn)) void hw_main(void)
{
    uint32_t scratch[4] = {0, 0, 0, 0};
    uint32_t *ticks = hw_feed.ticks;
    hw_start_counter();
    CALL(hw_stub_1, 0, 0, 0);
    *ticks++ = hw_ticks;
    CALL(hw_stub_10, 0, 0, 0);
    *ticks++ = hw_ticks;
    hw_feed.stub_value = CALL(hw_stub_if, scratch, 0, 0);
    *ticks++ = hw_ticks;
    hw_feed.stack_pointer = hw_stack_pointer;
    hw_feed.started = INIT();
    const struct event *end = hw_feed.events + (hw_feed.started ? hw_feed.count : 0);
    for (const struct event *event = hw_feed.events; event != end; event++) {
        *ticks++ = perform(event);
    }
    for (;;) {
        hw_done();
    }
}
