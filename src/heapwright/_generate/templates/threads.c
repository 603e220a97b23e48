#ifndef {{ upper }}_LOCK
#if !defined(__unix__) && !defined(__APPLE__)
#error "no POSIX threads: define {{ upper }}_LOCK(heap) and {{ upper }}_UNLOCK(heap, key), see {{ prefix }}_heap.h"
#endif
#include <pthread.h>

static pthread_mutex_t posix_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t posix_once = PTHREAD_ONCE_INIT;

static uintptr_t posix_lock(void)
{
    return (uintptr_t)pthread_mutex_lock(&posix_mutex);
}

static void posix_unlock(void)
{
    (void)pthread_mutex_unlock(&posix_mutex);
}

static void posix_before_fork(void)
{
    (void)posix_lock();
}

#define {{ upper }}_LOCK(heap) ((void)(heap), posix_lock())
#define {{ upper }}_UNLOCK(heap, key) ((void)(heap), (void)(key), posix_unlock())
{% if threads == "cached" %}

static pthread_key_t posix_key; /* its destructor gives back the cache of a thread that ends */
static struct {{ prefix }}_heap *posix_heap;

static void posix_thread_ends(void *heap)
{
    {{ prefix }}_release_thread(heap);
}

static void posix_after_fork(void)
{
    posix_unlock();
    {{ prefix }}_after_fork(posix_heap);
}

static void posix_start(void)
{
    (void)pthread_key_create(&posix_key, posix_thread_ends);
    (void)pthread_atfork(posix_before_fork, posix_unlock, posix_after_fork);
}

static void posix_started(struct {{ prefix }}_heap *heap)
{
    posix_heap = heap;
    (void)pthread_once(&posix_once, posix_start);
}

#define {{ upper }}_STARTED(heap) posix_started(heap)
#define {{ upper }}_THREAD_BEGINS(heap) ((void)pthread_setspecific(posix_key, heap))
{% else %}

static void posix_start(void)
{
    (void)pthread_atfork(posix_before_fork, posix_unlock, posix_unlock);
}

#define {{ upper }}_STARTED(heap) ((void)(heap), (void)pthread_once(&posix_once, posix_start))
{% endif %}
#endif

#ifndef {{ upper }}_STARTED
#define {{ upper }}_STARTED(heap) ((void)(heap))
#endif
{% if threads == "cached" %}
#ifndef {{ upper }}_THREAD_BEGINS
#define {{ upper }}_THREAD_BEGINS(heap) ((void)(heap))
#endif
#ifndef {{ upper }}_THREAD
static _Thread_local struct {{ prefix }}_thread this_thread;
#define {{ upper }}_THREAD(heap) ((void)(heap), &this_thread)
#endif
#if defined(__GNUC__) && defined(__LP64__)
#define {{ upper }}_PREFETCH(pointer) __builtin_prefetch(pointer, 1)
#else
#define {{ upper }}_PREFETCH(pointer) ((void)(pointer))
#endif
{% endif %}

