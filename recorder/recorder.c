/* Heapwright's recorder: preloaded into an unmodified program, it writes down every heap call.
 *
 * Each thread writes to a run of records of its own, so threads do not contend; ticks order the events of all threads
 * (see there). Two rules make the file a valid history of the heap under any interleaving:
 *   - a free takes its ticks before the block is released, an allocation after the block was obtained; so the ticks
 *     of a free always come before those of the call that hands the same address out again;
 *   - a realloc does both: it writes one record before (from here on no thread owns the old block) and one after.
 *
 * The file is a shared mapping: what was recorded is in the kernel's hands at once and outlives SIGKILL and exec.
 * The recorder never calls malloc, keeps no file descriptor open (programs close descriptors they do not know), grows
 * the file also where its path leads nowhere (programs drop privileges and change their root) and leaves errno alone.
 */
#define _GNU_SOURCE
#include "runs.h"

#ifdef HEAPWRIGHT_WRAP
#define NAME(function) __wrap_##function
#else
#define NAME(function) function
#endif

/* ------------------------------------------------- the calls --------------------------------------------------- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

FAST void *allocated(void *const pointer, const enum raw_kind kind, const size_t size, const size_t align,
                     const void *const site)
{
    me.inside = false;
    if (pointer != NULL || size != 0) { /* a request of no bytes may return NULL, and has not failed */
        record(kind, pointer, size, align, site);
    }
    return pointer;
}

FAST void *malloc_at(const size_t size, const void *const site)
{
    if (!resolved()) {
        return bootstrap_allocate(size);
    }
    if (me.inside) {
        return real.malloc(size);
    }
    me.inside = true;
    return allocated(real.malloc(size), RAW_MALLOC, size, 0, site);
}

EXPORT void *NAME(malloc)(const size_t size)
{
    return malloc_at(size, CALLER);
}

EXPORT void *NAME(calloc)(const size_t count, const size_t size)
{
    const void *const site = CALLER;
    if (!resolved()) {
        return size != 0 && count > sizeof bootstrap / size ? bootstrap_allocate(SIZE_MAX)
                                                            : bootstrap_allocate(count * size);
    }
    if (me.inside) {
        return real.calloc(count, size);
    }
    me.inside = true;
    return allocated(real.calloc(count, size), RAW_CALLOC, count * size, 0, site);
}

FAST void free_at(void *const pointer, const void *const site)
{
    if (pointer == NULL || in_bootstrap(pointer) || !resolved()) {
        return;
    }
    if (me.inside) {
        real.free(pointer);
        return;
    }
    record(RAW_FREE, pointer, 0, 0, site);
    me.inside = true;
    real.free(pointer);
    me.inside = false;
}

EXPORT void NAME(free)(void *const pointer)
{
    free_at(pointer, CALLER);
}

/* C23; declared here because the headers of most systems do not yet. */
EXPORT void NAME(free_sized)(void *pointer, size_t size);
EXPORT void NAME(free_aligned_sized)(void *pointer, size_t align, size_t size);

void NAME(free_sized)(void *const pointer, const size_t size)
{
    (void)size;
    free_at(pointer, CALLER);
}

void NAME(free_aligned_sized)(void *const pointer, const size_t align, const size_t size)
{
    (void)align;
    (void)size;
    free_at(pointer, CALLER);
}

static void *leave_bootstrap(const void *const old, const size_t size, const void *const site)
{
    size_t old_size = 0;
    memcpy(&old_size, (const unsigned char *)old - BOOTSTRAP_ALIGN, sizeof old_size);
    void *const fresh = malloc_at(size, site);
    if (fresh != NULL) {
        memcpy(fresh, old, old_size < size ? old_size : size);
    }
    return fresh;
}

FAST void *realloc_at(void *const old, const size_t size, const void *const site)
{
    if (old == NULL) {
        return malloc_at(size, site);
    }
    if (in_bootstrap(old)) {
        return leave_bootstrap(old, size, site);
    }
    if (!resolved()) {
        errno = ENOMEM;
        return NULL;
    }
    if (me.inside) {
        return real.realloc(old, size);
    }
    record(RAW_REALLOC_BEGIN, old, size, 0, site);
    me.inside = true;
    void *const fresh = real.realloc(old, size);
    me.inside = false;
    if (fresh != NULL) {
        record(RAW_REALLOC_END, fresh, size, 0, site);
    } else {
        record(size == 0 ? RAW_REALLOC_FREED : RAW_REALLOC_FAILED, old, size, 0, site);
    }
    return fresh;
}

EXPORT void *NAME(realloc)(void *const old, const size_t size)
{
    return realloc_at(old, size, CALLER);
}

EXPORT void *NAME(reallocarray)(void *old, size_t count, size_t size);

void *NAME(reallocarray)(void *const old, const size_t count, const size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc_at(old, count * size, CALLER);
}

static void *unsupported(void)
{
    errno = ENOMEM;
    return NULL;
}

EXPORT void *NAME(aligned_alloc)(const size_t align, const size_t size)
{
    if (!resolved() || real.aligned_alloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.aligned_alloc(align, size);
    }
    me.inside = true;
    return allocated(real.aligned_alloc(align, size), RAW_MALLOC, size, align, CALLER);
}

EXPORT void *NAME(memalign)(const size_t align, const size_t size)
{
    if (!resolved() || real.memalign == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.memalign(align, size);
    }
    me.inside = true;
    return allocated(real.memalign(align, size), RAW_MALLOC, size, align, CALLER);
}

EXPORT int NAME(posix_memalign)(void **const out, const size_t align, const size_t size)
{
    if (!resolved() || real.posix_memalign == NULL) {
        return ENOMEM;
    }
    if (me.inside) {
        return real.posix_memalign(out, align, size);
    }
    me.inside = true;
    const int failed = real.posix_memalign(out, align, size);
    (void)allocated(failed == 0 ? *out : NULL, RAW_MALLOC, size, align, CALLER);
    return failed;
}

EXPORT void *NAME(valloc)(const size_t size)
{
    if (!resolved() || real.valloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.valloc(size);
    }
    me.inside = true;
    return allocated(real.valloc(size), RAW_MALLOC, size, page_size(), CALLER);
}

EXPORT void *NAME(pvalloc)(const size_t size)
{
    if (!resolved() || real.pvalloc == NULL) {
        return unsupported();
    }
    if (me.inside) {
        return real.pvalloc(size);
    }
    me.inside = true;
    return allocated(real.pvalloc(size), RAW_MALLOC, size, page_size(), CALLER);
}

/* ------------------------------------------------- C++'s operators -------------------------------------------- */

#if defined HEAPWRIGHT_SITES && defined __LP64__
/* They lie between a C++ program and malloc, which would see one site for all of it. A library that was loaded for
 * itself alone is not searched after ours: then they are looked for where they come from. */
static void *real_operator(_Atomic(void *) *const known, const char *const name)
{
    void *found = atomic_load_explicit(known, memory_order_acquire);
    if (found == NULL) {
        const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1"};
        found = dlsym(RTLD_NEXT, name);
        for (unsigned i = 0; found == NULL && i < 2; i++) {
            void *const library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
            found = library == NULL ? NULL : dlsym(library, name);
        }
        if (found == NULL) {
            abort(); /* who calls it has none, and would not have started without ours */
        }
        atomic_store_explicit(known, found, memory_order_release);
    }
    return found;
}

#define OPERATOR(symbol, result, parameters, arguments, keep)                                                          \
    EXPORT result symbol parameters;                                                                                   \
    EXPORT result symbol parameters                                                                                    \
    {                                                                                                                  \
        static _Atomic(void *) known;                                                                                  \
        result(*real_one) parameters = NULL;                                                                           \
        void *const found = real_operator(&known, #symbol);                                                            \
        memcpy((void *)&real_one, &found, sizeof found);                                                               \
        if (me.operator_caller == NULL) { /* else one of them calls another */                                         \
            me.operator_caller = __builtin_return_address(0);                                                          \
        }                                                                                                              \
        keep real_one arguments;                                                                                       \
        me.operator_caller = NULL;
#define NEW(symbol, parameters, arguments)                                                                             \
    OPERATOR(symbol, void *, parameters, arguments, void *const block =)                                               \
    return block;                                                                                                      \
    }
#define DELETE(symbol, parameters, arguments)                                                                          \
    OPERATOR(symbol, void, parameters, arguments, )                                                                    \
    }

NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag))
NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnamSt11align_val_t, (size_t size, size_t align), (size, align))
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), (size, align, tag))
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), (size, align, tag))
DELETE(_ZdlPv, (void *block), (block))
DELETE(_ZdaPv, (void *block), (block))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t align), (block, size, align))
#endif
