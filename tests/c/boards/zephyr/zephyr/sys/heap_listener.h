/* Declared as in Zephyr's include/zephyr/sys/heap_listener.h. */
#ifndef ZEPHYR_SYS_HEAP_LISTENER_H
#define ZEPHYR_SYS_HEAP_LISTENER_H

#include <stddef.h>
#include <stdint.h>

#define HEAP_ID_FROM_POINTER(heap_pointer) ((uintptr_t)heap_pointer)

void heap_listener_notify_alloc(uintptr_t heap_id, void *mem, size_t bytes);
void heap_listener_notify_free(uintptr_t heap_id, void *mem, size_t bytes);

#endif
