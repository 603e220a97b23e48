/* timed_calls.h: what a program does in the end whose calls are timed. */
#ifdef TIMED
void print_timed(void);
#else
#define print_timed() ((void)0)
#endif
