#ifndef ZEPHYR_PRINTK_H
#define ZEPHYR_PRINTK_H

void printk(const char *fmt, ...);

#endif
