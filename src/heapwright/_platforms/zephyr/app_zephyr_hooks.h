/* app_zephyr_hooks.h: notifies Zephyr's heap listeners (CONFIG_HEAP_LISTENER), for malloc's heap and for pools. A
 * listener's heap_id is HEAP_ID_FROM_POINTER() of a struct app_heap *. An object that realloc resizes where it is has
 * no event there.
 *
 * zephyr/CMakeLists.txt names this file in APP_HOOKS.
 */
#if defined(CONFIG_HEAP_LISTENER) && !defined(APP_ALLOCATED)
#include <zephyr/sys/heap_listener.h>

#define APP_ALLOCATED(heap, pointer, size)                                                                             \
    heap_listener_notify_alloc(HEAP_ID_FROM_POINTER(heap), pointer, app_usable_size(heap, pointer))
#define APP_FREED(heap, pointer)                                                                                       \
    heap_listener_notify_free(HEAP_ID_FROM_POINTER(heap), pointer, app_usable_size(heap, pointer))
#endif
