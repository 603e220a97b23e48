/* board.h: the console of lwIP's example application on QEMU's mps2-an385. */
#ifndef BOARD_H
#define BOARD_H

/* Prints on the console, once, that the network is up. */
void board_ready(void);

/* Whether the console requested the end of the application. */
int board_over(void);

#ifdef TIMED
/* Prints what a malloc and a free take on average, in thousandths of the timer's ticks. */
void print_timed(void);
#else
static inline void print_timed(void)
{
}
#endif

#endif
