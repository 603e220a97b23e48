/* field_boots.c: a device that resets: what its block holds after each step, on stdout, a line of hexadecimal digits.
 */
#include <stdio.h>
#include <string.h>

#include "app_heap.h"

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char arena[4096];
static struct app_field field; /* as in a section .noinit: nothing but the functions clears it */

static void show(void)
{
    const unsigned char *bytes = (const unsigned char *)&field;
    for (size_t i = 0; i < sizeof field; i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
}

/* A boot: `objects` of 40 bytes, then `refused` requests of 5000 bytes, which are larger than the arena. */
static void boot(unsigned objects, unsigned refused)
{
    struct app_heap *heap = app_init(arena, sizeof arena);
    app_field_boot(&field);
    for (unsigned i = 0; i < objects; i++) {
        (void)app_malloc(heap, 40);
    }
    for (unsigned i = 0; i < refused; i++) {
        (void)app_malloc(heap, 5000u + i);
    }
    app_field(heap, &field);
    show();
}

int main(void)
{
    memset(&field, 0xa5, sizeof field);
    boot(5, 0);
    boot(20, 3);
    boot(2, 1);
    ((unsigned char *)&field)[40] ^= 1u; /* the supply failed: one bit is another */
    boot(1, 0);
    return 0;
}
