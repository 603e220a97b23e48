/* drain.h: a program that is recorded (TRACED) prints what its ring has; as it is otherwise, it has none. */
#ifndef DRAIN_H
#define DRAIN_H

#ifdef TRACED
#include <stdio.h>

#include "app_trace.h"

static void drain_line(const char *line)
{
    fputs(line, stdout);
}

static inline void drain(void)
{
    app_trace_drain(drain_line);
}
#else
static inline void drain(void)
{
}
#endif

#endif
