#define assume __CPROVER_assume
#define prove __CPROVER_assert

unsigned nondet_number(void);
unsigned char nondet_byte(void);

static unsigned any_up_to(unsigned most)
{
    const unsigned number = nondet_number();
    assume(number <= most);
    return number;
}

/* A program writes what it likes, as far as it may. */
static void write_object(unsigned char *pointer, size_t usable)
{
    pointer[usable - 1u] = nondet_byte();
}

/* The counterexample's calls, as the model checker's trace records them. */
static void told(unsigned call, unsigned object, unsigned size, unsigned alignment)
{
    (void)call, (void)object, (void)size, (void)alignment;
}

static int every(void (*program)(void))
{
    program();
    return 0;
}
