/* The allocator that the program would have without the recorder, and memory for as long as it is not known. */
#ifndef HEAPWRIGHT_ALLOCATOR_H
#define HEAPWRIGHT_ALLOCATOR_H

#include "compiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------- the real allocator ------------------------------------------ */

struct allocator {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};

#ifdef HEAPWRIGHT_WRAP
/* Linked into a program, with ld's --wrap: what is called malloc there is ours, and the linker knows the real ones. */
#define REAL(result, function, parameters)                                                                             \
    result __wrap_##function parameters;                                                                               \
    extern result __real_##function parameters
REAL(void *, malloc, (size_t));
REAL(void *, calloc, (size_t, size_t));
REAL(void *, realloc, (void *, size_t));
REAL(void, free, (void *));
REAL(void *, aligned_alloc, (size_t, size_t));
REAL(int, posix_memalign, (void **, size_t, size_t));
REAL(void *, memalign, (size_t, size_t)) __attribute__((weak)); /* not every C library has these three */
REAL(void *, valloc, (size_t)) __attribute__((weak));
REAL(void *, pvalloc, (size_t)) __attribute__((weak));

static const struct allocator real = {__real_malloc,   __real_calloc,        __real_realloc,
                                      __real_free,     __real_aligned_alloc, __real_posix_memalign,
                                      __real_memalign, __real_valloc,        __real_pvalloc};

FAST bool resolved(void)
{
    return true;
}
#else
static struct allocator real;

enum { UNRESOLVED, RESOLVING, RESOLVED };
static _Atomic(int) resolution;

/* dlsym gives an object pointer; ISO C has no cast from there to a function pointer. */
static void look_up(void *function, const char *const name)
{
    void *const symbol = dlsym(RTLD_NEXT, name);
    memcpy(function, &symbol, sizeof symbol);
}

/* False while the real functions are being looked up. dlsym itself may allocate, so no thread may wait here: until then
 * all requests, of this thread or another, are served from the bootstrap buffer. */
SLOW bool resolve(void)
{
    int expected = UNRESOLVED;
    if (!atomic_compare_exchange_strong(&resolution, &expected, RESOLVING)) {
        return expected == RESOLVED;
    }
    look_up(&real.malloc, "malloc");
    look_up(&real.calloc, "calloc");
    look_up(&real.realloc, "realloc");
    look_up(&real.free, "free");
    look_up(&real.aligned_alloc, "aligned_alloc");
    look_up(&real.posix_memalign, "posix_memalign");
    look_up(&real.memalign, "memalign");
    look_up(&real.valloc, "valloc");
    look_up(&real.pvalloc, "pvalloc");
    atomic_store_explicit(&resolution, RESOLVED, memory_order_release);
    return true;
}

FAST bool resolved(void)
{
    return LIKELY(atomic_load_explicit(&resolution, memory_order_acquire) == RESOLVED) || resolve();
}
#endif

/* ------------------------------------------------- the bootstrap buffer ---------------------------------------- */

#define BOOTSTRAP_ALIGN 16u

/* Never reused, hence always zero when it is handed out: calloc needs no memset. */
static alignas(BOOTSTRAP_ALIGN) unsigned char bootstrap[65536];
static _Atomic(size_t) bootstrap_used;

static void *bootstrap_allocate(const size_t size)
{
    if (size > sizeof bootstrap) {
        errno = ENOMEM;
        return NULL;
    }
    const size_t rounded = (size + BOOTSTRAP_ALIGN - 1) & ~(size_t)(BOOTSTRAP_ALIGN - 1);
    const size_t start = atomic_fetch_add(&bootstrap_used, BOOTSTRAP_ALIGN + rounded);
    if (start + BOOTSTRAP_ALIGN + rounded > sizeof bootstrap) {
        errno = ENOMEM;
        return NULL;
    }
    memcpy(bootstrap + start, &size, sizeof size);
    return bootstrap + start + BOOTSTRAP_ALIGN;
}

static bool in_bootstrap(const void *const pointer)
{
    const uintptr_t address = (uintptr_t)pointer;
    return address >= (uintptr_t)bootstrap && address < (uintptr_t)bootstrap + sizeof bootstrap;
}

#endif
