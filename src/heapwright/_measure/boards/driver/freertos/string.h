/* string.h: what the kernel and its heaps call, and memory.c defines; a compiler alone has no such header. */
#ifndef HW_STRING_H
#define HW_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
