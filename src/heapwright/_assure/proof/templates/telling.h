/* Failures, and the calls that show each, on standard output; a harness of one's own programs has to count `programs`. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_TOLD = 64, MOST_FAILURES = 16, PATIENCE_S = 20 };

/* How a run ends before its program does. */
enum { ASSUMPTION = 1, FAILURE = 2 };

/* Both sanitizers end by SIGABRT, so that the calls can be printed. */
const char *__asan_default_options(void)
{
    return "abort_on_error=1:handle_abort=0:detect_leaks=0";
}

const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=0";
}

static struct {
    unsigned call, object;
    size_t size, alignment;
} calls[MOST_TOLD];

static unsigned calls_told;
static unsigned long long programs, looked_at;
static const char *failures[MOST_FAILURES];
static unsigned failed;
static jmp_buf end_of_run;

static void tell_calls(void)
{
    for (unsigned i = 0; i < calls_told; i++) {
        printf("call %u %u %zu %zu\n", calls[i].call, calls[i].object, calls[i].size, calls[i].alignment);
    }
    fflush(stdout);
}

/* Prints the calls of the first program that shows a failure. */
static void tell_failure(const char *what)
{
    for (unsigned i = 0; i < failed; i++) {
        if (failures[i] == what) {
            return;
        }
    }
    printf("failed %s\n", what);
    tell_calls();
    if (failed == MOST_FAILURES) {
        _exit(0);
    }
    failures[failed++] = what;
}

static void fail(const char *what)
{
    tell_failure(what);
    longjmp(end_of_run, FAILURE);
}

#define prove(condition, what) ((condition) ? (void)0 : fail(what))

static void told(unsigned call, unsigned object, size_t size, size_t alignment)
{
    if (calls_told < MOST_TOLD) {
        calls[calls_told].call = call;
        calls[calls_told].object = object;
        calls[calls_told].size = size;
        calls[calls_told++].alignment = alignment;
    }
}

static void die(int signal)
{
    (void)signal;
    printf("failed sanitizer\n");
    tell_calls();
    _exit(0);
}

/* A program takes microseconds: where none ended since the last look, one never will. */
static void look(int signal)
{
    (void)signal;
    if (looked_at == programs) {
        printf("failed unwinding: a call does not end\n");
        tell_calls();
        _exit(0);
    }
    looked_at = programs;
}

/* From here on a signal that ends the program is reported as a failure. */
static void watch(void)
{
    const struct timeval time = {PATIENCE_S, 0};
    const struct itimerval patience = {time, time};
    signal(SIGABRT, die);
    signal(SIGPROF, look);
    setitimer(ITIMER_PROF, &patience, NULL);
}
