/* second_allocator.c: linked with a program, counts its calls of the C library's malloc, those of shared libraries
 * included, and says at the end how many there were. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *pointer, size_t size);

static unsigned long calls;

void *malloc(size_t size)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, size);
}

void *realloc(void *pointer, size_t size)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return __libc_realloc(pointer, size);
}

__attribute__((destructor)) static void say(void)
{
    char line[64];
    const int length = snprintf(line, sizeof line, "%lu\n", calls);
    (void)!write(2, line, (size_t)length);
}
