/* NuttX's include/assert.h. */
#pragma once

#include <stdlib.h>

#define DEBUGASSERT(f) ((f) ? (void)0 : abort())
