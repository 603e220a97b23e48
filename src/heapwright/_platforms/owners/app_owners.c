/* app_owners.c: an app_heap that knows who holds how many bytes. */
#include "app_owners.h"

static unsigned char *tag_of(const struct app_owners *owners, const void *pointer)
{
    return (unsigned char *)(uintptr_t)pointer + app_usable_size(owners->heap, pointer) - 1u;
}

unsigned app_owner_of(const struct app_owners *owners, const void *pointer)
{
    return *tag_of(owners, pointer) % APP_OWNERS_MOST;
}

/* The object is its owner's from now on. */
static void give(struct app_owners *owners, void *pointer, unsigned owner)
{
    struct app_owner *to = &owners->owner[owner];
    *tag_of(owners, pointer) = (unsigned char)owner;
    to->objects++;
    to->bytes += app_usable_size(owners->heap, pointer) - 1u;
    if (to->bytes > to->most_bytes) {
        to->most_bytes = to->bytes;
    }
}

/* Subtracts an object of `bytes` bytes from an owner's account. */
static void take(struct app_owners *owners, unsigned owner, size_t bytes)
{
    owners->owner[owner].objects--;
    owners->owner[owner].bytes -= bytes;
}

static unsigned current(void)
{
    const unsigned owner = app_owner_now();
    return owner < APP_OWNERS_MOST ? owner : APP_OWNERS_MOST - 1u;
}

void *app_owned_malloc(struct app_owners *owners, size_t size)
{
    void *memory = size < SIZE_MAX ? app_malloc(owners->heap, size + 1u) : NULL;
    if (memory != NULL) {
        give(owners, memory, current());
    }
    return memory;
}

void *app_owned_calloc(struct app_owners *owners, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - 1u) / size) {
        return NULL;
    }
    void *memory = app_calloc(owners->heap, 1, count * size + 1u);
    if (memory != NULL) {
        give(owners, memory, current());
    }
    return memory;
}

void *app_owned_realloc(struct app_owners *owners, void *pointer, size_t size)
{
    if (pointer == NULL) {
        return app_owned_malloc(owners, size);
    }
    const unsigned owner = app_owner_of(owners, pointer);
    const size_t had = app_usable_size(owners->heap, pointer) - 1u;
    void *memory = size < SIZE_MAX ? app_realloc(owners->heap, pointer, size + 1u) : NULL;
    if (memory != NULL) {
        take(owners, owner, had);
        give(owners, memory, owner);
    }
    return memory;
}

void app_owned_free(struct app_owners *owners, void *pointer)
{
    if (pointer != NULL) {
        take(owners, app_owner_of(owners, pointer), app_usable_size(owners->heap, pointer) - 1u);
        app_free(owners->heap, pointer);
    }
}
