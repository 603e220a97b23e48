/* random_program.h: what programs of random calls on one heap share: the policy that they are handed, and random
 * numbers.
 *
 *     PROGRAM POLICY ARENA_BYTES COUNT SEED
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct hw_policy policy;
static uint32_t arena_bytes;
static uint64_t state;

/* A number below a bound. */
static uint32_t below(uint32_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % bound);
}

/* Reads the arguments of the command line: the count, or -1 if they are wrong. */
static int read_arguments(int argc, char **argv)
{
    FILE *file = argc == 5 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL || fread(&policy, sizeof policy, 1, file) != 1) {
        return -1;
    }
    fclose(file);
    arena_bytes = (uint32_t)atoi(argv[2]);
    state = (uint64_t)atoi(argv[4]);
    return atoi(argv[3]);
}

#endif
