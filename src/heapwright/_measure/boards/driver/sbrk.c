/* sbrk.c: stands in for the driver's where only the size of a C library's heap is asked for. */
#include <stddef.h>

void *_sbrk(ptrdiff_t bytes)
{
    return bytes ? (void *)-1 : NULL;
}

void *sbrk(ptrdiff_t bytes)
{
    return _sbrk(bytes);
}
