/* ESP-IDF's spinlock for the test of the platform esp-idf: it aborts where it is taken twice, and where it was not
 * taken for every call. */
#include <stdlib.h>

#include <freertos/FreeRTOS.h>

int app_multi_heap_test(void);

static int taken;

void standin_enter(portMUX_TYPE *mux)
{
    taken++;
    if (mux->held++) {
        abort();
    }
}

void standin_leave(portMUX_TYPE *mux)
{
    if (--mux->held) {
        abort();
    }
}

int main(void)
{
    const int failures = app_multi_heap_test();
    return failures || taken < 40000;
}
