/* NuttX's critical section for the test of the platform nuttx: it aborts where it is left as it was not entered, and
 * fails where it was not entered for every call. */
#include <stdlib.h>
#include <unistd.h>

#include <nuttx/irq.h>

static unsigned depth, entered;

irqstate_t enter_critical_section(void)
{
    entered++;
    return depth++;
}

void leave_critical_section(irqstate_t flags)
{
    if (--depth != flags) {
        abort();
    }
}

__attribute__((destructor)) static void check(void)
{
    if (depth != 0 || entered < 40000) {
        _exit(2);
    }
}
