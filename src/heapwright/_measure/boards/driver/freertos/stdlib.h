/* stdlib.h: the kernel includes it and takes nothing from it; a compiler alone has no such header. */
#ifndef HW_STDLIB_H
#define HW_STDLIB_H

#include <stddef.h>

#endif
