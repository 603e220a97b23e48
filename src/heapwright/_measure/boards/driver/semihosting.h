/* semihosting.h: hands the results to the emulator's host, as a file, and ends. Needs semihosting(operation,
 * arguments). */
#ifndef HW_SEMIHOSTING_H
#define HW_SEMIHOSTING_H

enum { SYS_OPEN = 0x01, SYS_CLOSE = 0x02, SYS_WRITE = 0x05, SYS_EXIT_EXTENDED = 0x20 };

/* What is written: pieces of memory, until one has no bytes. Placed by the linker script, filled in from outside. */
struct hw_piece {
    const void *start;
    uint32_t bytes;
};

extern const struct hw_piece hw_output[];
extern const char hw_output_path[];

void hw_exit(uint32_t status)
{
    const uint32_t arguments[2] = {0x20026u /* the application's own end */, status};
    semihosting(SYS_EXIT_EXTENDED, arguments);
}

void hw_done(void)
{
    uint32_t length = 0;
    while (hw_output_path[length]) {
        length++;
    }
    const uint32_t open[3] = {(uint32_t)(uintptr_t)hw_output_path, 5 /* wb */, length};
    const uint32_t file = semihosting(SYS_OPEN, open);
    for (const struct hw_piece *piece = hw_output; piece->bytes; piece++) {
        const uint32_t write[3] = {file, (uint32_t)(uintptr_t)piece->start, piece->bytes};
        if (semihosting(SYS_WRITE, write) != 0) {
            hw_exit(2);
        }
    }
    semihosting(SYS_CLOSE, &file);
    hw_exit(0);
}

#endif
