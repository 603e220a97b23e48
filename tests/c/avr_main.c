/* avr_main.c: runs a generated heap's test on an AVR, which says what it found on the serial line.
 *
 * The test is compiled with -Dmain=test_main. A processor that sleeps with interrupts off ends the simulation.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>

int test_main(void);

static int put(char sign, FILE *file)
{
    (void)file;
    while (!(UCSR0A & (1 << UDRE0))) {
    }
    UDR0 = (unsigned char)sign;
    return 0;
}

static FILE uart = FDEV_SETUP_STREAM(put, NULL, _FDEV_SETUP_WRITE);

int main(void)
{
    UCSR0B = 1 << TXEN0;
    stdout = &uart;
    test_main();
    cli();
    sleep_mode();
}
