/* The heap itself has to stay in the arena: marks that a sanitizer gets of what is handed out would mix with that. */
#define {{ upper }}_UNWATCHED
#define {{ unchecked }}
{% if threads != "none" %}
#define {{ upper }}_LOCK(heap) ((void)(heap), (uintptr_t)0)
#define {{ upper }}_UNLOCK(heap, key) ((void)(heap), (void)(key))
{% endif %}
#include "{{ prefix }}_heap.c"
