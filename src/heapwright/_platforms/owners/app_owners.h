/* app_owners.h: an app_heap that knows who holds how many bytes.
 *
 * Each object carries one byte at its end: the number of whom it was allocated for. What a number means is the
 * program's: 0 for start-up, 1 for interrupts, the others for threads, say. Calls are made one at a time: under a lock
 * of the program's, where there are several threads. Objects that these functions
 * handed out are resized and freed by them alone.
 */
#ifndef APP_OWNERS_H
#define APP_OWNERS_H

#include "app_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many owners there are, at most 256; numbers beyond count as the last. */
#ifndef APP_OWNERS_MOST
#define APP_OWNERS_MOST 16u
#endif

/* What one owner holds. Bytes are those that its objects may use. */
struct app_owner {
    size_t bytes;      /* held now */
    size_t most_bytes; /* the most that it ever held */
    uint32_t objects;  /* held now */
};

/* A heap and its owners; `heap` is what app_init() returned, all else is zero at first. */
struct app_owners {
    struct app_heap *heap;
    struct app_owner owner[APP_OWNERS_MOST];
};

/* The program's: the number of whom it allocates for now, such as
 * !is_running() ? 0 : in_interrupt() ? 1 : number_of_this_thread(). */
unsigned app_owner_now(void);

/* As app_malloc(), app_calloc(), app_realloc() and app_free(). A resized object keeps its owner, and an object freed by
 * another owner is subtracted from its own owner's account. O(1) in addition to those. */
void *app_owned_malloc(struct app_owners *owners, size_t size);
void *app_owned_calloc(struct app_owners *owners, size_t count, size_t size);
void *app_owned_realloc(struct app_owners *owners, void *pointer, size_t size);
void app_owned_free(struct app_owners *owners, void *pointer);

/* Whom an object was allocated for. */
unsigned app_owner_of(const struct app_owners *owners, const void *pointer);

#ifdef __cplusplus
}
#endif

#endif
