/* What app_riot.c uses of RIOT, declared as in core/include/rmutex.h; this stub counts. */
#ifndef RMUTEX_H
#define RMUTEX_H

typedef struct rmutex_t {
    int refcount;
} rmutex_t;

#define RMUTEX_INIT {0}

void rmutex_lock(rmutex_t *rmutex);
void rmutex_unlock(rmutex_t *rmutex);

#endif
