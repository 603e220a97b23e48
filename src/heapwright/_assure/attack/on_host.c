/* on_host.c: an attack on this machine: many runs of each fault, a process each.
 *
 *     on_host CALLS ARENA_BYTES RUNS SEED
 *
 * CALLS is a record a call, of three uint32: operation in the upper 2 bits of the first, over the object's slot; size;
 * alignment. A line for each kind of fault: its number, runs, and how many were noticed at once, noticed later,
 * harmless, silent, and crashed; then each signal that ended a run, and how many it ended. A heap that stops the
 * program has noticed. Nothing here lies in memory of malloc, which may be what is attacked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"

/* What came of a run is its process's status, less OWN_STATUS. One that ends otherwise was stopped by its heap,
 * crashed, or hung until its alarm. */
enum { SECONDS = 2, OWN_STATUS = 64, SIGNALS = 65 };

static void end(int outcome)
{
    _exit(OWN_STATUS + outcome);
}

#ifndef ATTACKED_BLOCK_FREE
/* One that is mapped. */
static unsigned char *some_word(int of_metadata)
{
    (void)of_metadata;
    const size_t words = (attacked_highest - attacked_lowest) / 4u;
    for (;;) {
        const uintptr_t at = (attacked_lowest & ~(uintptr_t)3) + (size_t)random_below((uint32_t)words) * 4u;
        if (msync((void *)(at & ~(uintptr_t)4095), 4096, MS_ASYNC) == 0) {
            return (unsigned char *)at;
        }
    }
}
#endif

/* The status of a process that replays once. */
static int status_of(enum fault fault, uint32_t seed)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDERR_FILENO);
        alarm(SECONDS);
        carry_out(fault, seed);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("attack");
        exit(1);
    }
    return status;
}

static int is_stop(int number)
{
    return number == SIGABRT || number == SIGTRAP || number == SIGILL;
}

static int outcome_of(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) >= OWN_STATUS && WEXITSTATUS(status) < OWN_STATUS + CRASHED) {
        return WEXITSTATUS(status) - OWN_STATUS;
    }
    const int stopped = WIFEXITED(status) || is_stop(WTERMSIG(status));
    return !stopped ? CRASHED : told->at_once ? AT_ONCE : LATER;
}

static void *pages(size_t bytes)
{
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        perror("attack");
        exit(1);
    }
    return found;
}

/* An arena in the middle of nothing: any offset of 32 bits that leads out of it leads to no memory. */
static unsigned char *alone(size_t bytes)
{
    const size_t beyond = sizeof(void *) > 4 ? (size_t)UINT32_MAX + 1u : 0;
    void *found = mmap(NULL, bytes + beyond, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED || mprotect(found, bytes, PROT_READ | PROT_WRITE) != 0) {
        perror("attack");
        exit(1);
    }
    return found;
}

static void read_calls(const char *path)
{
    const int file = open(path, O_RDONLY);
    const off_t bytes = file < 0 ? -1 : lseek(file, 0, SEEK_END);
    if (bytes < 0 || (calls = mmap(NULL, (size_t)bytes, PROT_READ, MAP_PRIVATE, file, 0)) == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    count = (uint32_t)((size_t)bytes / sizeof *calls);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = calls[i].op_and_slot & 0x3fffffffu;
        slots = slot >= slots ? slot + 1u : slots;
    }
    objects = mmap(NULL, slots * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void attack_with(enum fault fault, uint32_t runs, uint32_t seed)
{
    uint32_t outcomes[OUTCOMES] = {0}, signals[SIGNALS] = {0};
    for (uint32_t i = 0; i < runs; i++) {
        const int status = status_of(fault, seed_of(seed, fault, i));
        outcomes[outcome_of(status)]++;
        signals[WIFSIGNALED(status) ? WTERMSIG(status) : 0]++;
    }
    printf("%d %u", (int)fault, runs);
    for (int i = 0; i < OUTCOMES; i++) {
        printf(" %u", outcomes[i]);
    }
    for (int i = 1; i < SIGNALS; i++) {
        if (signals[i]) {
            printf(" %d %u", i, signals[i]);
        }
    }
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: on_host CALLS ARENA_BYTES RUNS SEED\n");
        return 2;
    }
    read_calls(argv[1]);
    told = pages(sizeof *told);
    arena_bytes = strtoul(argv[2], NULL, 10);
    arena = alone((arena_bytes + 65536u + 16u) & ~(size_t)65535u); /* an overflow of the last object is no crash */
    if (objects == MAP_FAILED) {
        perror("attack");
        return 1;
    }
    const int status = status_of(FAULTS, 1);
    if (outcome_of(status) != HARMLESS && outcome_of(status) != SILENT) {
        fprintf(stderr, "no heap in an arena of %s bytes\n", argv[2]);
        return 1;
    }
    if (told->fails) {
        fprintf(stderr, "the heap fails without a fault\n");
        return 1;
    }
    for (enum fault fault = 0; fault < FAULTS; fault++) {
#ifndef ATTACKED_BLOCK_FREE
        if (fault == METADATA_WRITE) {
            continue; /* where a third-party heap keeps it is unknown */
        }
#endif
        attack_with(fault, (uint32_t)strtoul(argv[3], NULL, 10), (uint32_t)strtoul(argv[4], NULL, 10));
    }
    return 0;
}
