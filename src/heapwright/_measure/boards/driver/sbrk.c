/* sbrk.c: replaces the driver's own when only the size of a C library's heap is measured. */
#include <stddef.h>

void *_sbrk(ptrdiff_t bytes)
{
    return bytes ? (void *)-1 : NULL;
}

void *sbrk(ptrdiff_t bytes)
{
    return _sbrk(bytes);
}
