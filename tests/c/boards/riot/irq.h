/* As in core/include/irq.h. */
#ifndef IRQ_H
#define IRQ_H

#include <stdbool.h>

bool irq_is_in(void);

#endif
