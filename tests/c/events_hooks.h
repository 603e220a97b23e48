/* events_hooks.h: the hooks of a generated heap, which report to the test in events.c. */
#include <stddef.h>

void told_allocated(const void *pointer, size_t size);
void told_resized(const void *from, const void *pointer, size_t size);
void told_freed(const void *pointer);
void told_refused(size_t size);
void told_misused(void);

#define APP_ALLOCATED(heap, pointer, size) told_allocated(pointer, size)
#define APP_RESIZED(heap, from, pointer, size) told_resized(from, pointer, size)
#define APP_FREED(heap, pointer) told_freed(pointer)
#define APP_REFUSED(heap, size) told_refused(size)
#define APP_MISUSED(heap) told_misused()
