/* The heap as it is: it has to stay in the arena, and a sanitizer looks at its own accesses. */
#define {{ unchecked }}
{% if threads != "none" %}
#define {{ upper }}_LOCK(heap) ((void)(heap), (uintptr_t)0)
#define {{ upper }}_UNLOCK(heap, key) ((void)(heap), (void)(key))
{% endif %}
#include "{{ prefix }}_heap.c"
