/* app_riot.c: what RIOT's newlib lacks: a lock around malloc, for app_newlib.c and for newlib's own functions. */
#include "app_heap.h"

#include <assert.h>
#include <reent.h>
#include <stdio.h>

#include "irq.h"
#include "rmutex.h"

struct app_heap *app_libc_heap(void);
void heap_stats(void);

static rmutex_t lock = RMUTEX_INIT;

void __malloc_lock(struct _reent *reent)
{
    (void)reent;
    assert(!irq_is_in());
    rmutex_lock(&lock);
}

void __malloc_unlock(struct _reent *reent)
{
    (void)reent;
    rmutex_unlock(&lock);
}

/* RIOT's own asks newlib's mallinfo(), which links newlib's heap: HAVE_HEAP_STATS leaves it out. O(blocks). */
void heap_stats(void)
{
    struct app_statistics now = {0, 0, 0, 0, 0, 0, 0};
    rmutex_lock(&lock);
    if (app_libc_heap() != NULL) {
        now = app_statistics(app_libc_heap());
    }
    rmutex_unlock(&lock);
    printf("heap: used %lu, most %lu, largest free %lu [bytes]\n", (unsigned long)now.used, (unsigned long)now.peak,
           (unsigned long)now.largest_free);
}
