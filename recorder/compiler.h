/* Compiler features that the recorder needs, and whether it records call sites. */
#ifndef HEAPWRIGHT_COMPILER_H
#define HEAPWRIGHT_COMPILER_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define FAST static inline __attribute__((always_inline))
#define SLOW static __attribute__((noinline, cold))
#ifdef HEAPWRIGHT_SITES
#define SITES 1u
/* Where the exported function was called; where C++'s operators were, if they called it. */
#define CALLER called_at(__builtin_return_address(0))
#else
#define SITES 0u
#define CALLER NULL
#endif
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

#endif
