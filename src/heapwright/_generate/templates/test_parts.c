{# What the tests of a heap in one memory and in several have in common. #}
{% macro say() %}
#ifndef {{ upper }}_TEST_QUIET
#include <stdio.h>
#define SAY(format, what) printf(format, what)
#else
#define SAY(format, what) ((void)(what))
#endif

enum { OBJECTS = 256, ROUNDS = 5000 };
{%- endmacro %}

{% macro objects() %}
static struct {
    unsigned char *bytes;
    size_t size;
} objects[OBJECTS];

static uint32_t state = 1;

static uint32_t random_below(uint32_t bound)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % bound;
}

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        SAY("FAILED: %s\n", what);
        failures++;
    }
}
{%- endmacro %}

{% macro is_intact() %}
static int is_intact(unsigned i, size_t bytes)
{
    for (size_t k = 0; k < bytes; k++) {
        if (objects[i].bytes[k] != (unsigned char)(i * 31u + k)) {
            return 0;
        }
    }
    return 1;
}
{%- endmacro %}
