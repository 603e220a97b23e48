/* RIOT's rmutex for the test of the platform riot: it stops where a lock is given back that is not held, and says how
 * often it was taken. */
#include "irq.h"
#include "rmutex.h"

#include <stdio.h>
#include <stdlib.h>

static int taken;

bool irq_is_in(void)
{
    return false;
}

void rmutex_lock(rmutex_t *rmutex)
{
    rmutex->refcount++;
    taken++;
}

void rmutex_unlock(rmutex_t *rmutex)
{
    if (--rmutex->refcount < 0) {
        abort();
    }
}

int __real_main(void);

/* As RIOT's own, which the platform's takes the place of. */
__attribute__((weak)) void heap_stats(void)
{
    puts("heap: newlib's");
}

int __wrap_main(void)
{
    const int failures = __real_main();
    puts(taken > 20000 ? "locked" : "not locked");
    heap_stats();
    return failures;
}
