/* lwIP's compiler and platform: a Cortex-M3 with picolibc. What the applications say goes nowhere. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include <stdlib.h>

#define LWIP_TIMEVAL_PRIVATE 0
#include <sys/time.h>

#define LWIP_ERRNO_STDINCLUDE 1
#define LWIP_RAND() ((u32_t)rand())
#define LWIP_PLATFORM_DIAG(said)                                                                                       \
    do {                                                                                                               \
    } while (0)

#endif
