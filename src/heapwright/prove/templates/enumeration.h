/* Every program within the bounds is run, one after the other, with a sanitizer that looks at each access.
 *
 * A program is the list of its choices. The next one differs in the last choice that can still be raised; what came
 * before is chosen again. Each runs in an arena of zeros{% if second_content %} and in one of ones{% endif %}, and fills its objects with the same.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_CHOICES = 64, MOST_TOLD = 32, MOST_FAILURES = 16, PATIENCE_S = 20 };

/* How a run ends before its program does. */
enum { ASSUMPTION = 1, FAILURE = 2 };

/* Both sanitizers end by SIGABRT, so that the calls can be told. */
const char *__asan_default_options(void)
{
    return "abort_on_error=1:handle_abort=0:detect_leaks=0";
}

const char *__ubsan_default_options(void)
{
    return "abort_on_error=1:print_stacktrace=0";
}

static struct {
    unsigned made[MOST_CHOICES], most[MOST_CHOICES];
    unsigned count, known; /* made in this run; taken over from the last one */
} choices;

static struct {
    unsigned call, object, size, alignment;
} calls[MOST_TOLD];

static unsigned calls_told;
static unsigned char fill;
static unsigned long long programs, moved, looked_at;
static const char *failures[MOST_FAILURES];
static unsigned failed;
static jmp_buf end_of_run;

static void tell_calls(void)
{
    for (unsigned i = 0; i < calls_told; i++) {
        printf("call %u %u %u %u\n", calls[i].call, calls[i].object, calls[i].size, calls[i].alignment);
    }
    fflush(stdout);
}

/* Tell the calls of the first program that shows a failure. */
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

static void assume(int condition)
{
    if (!condition) {
        longjmp(end_of_run, ASSUMPTION);
    }
}

#define prove(condition, what) ((condition) ? (void)0 : fail(what))

static unsigned any_up_to(unsigned most)
{
    if (choices.count == MOST_CHOICES) {
        fail("harness: more choices than it has room for");
    }
    const unsigned i = choices.count++;
    if (i >= choices.known) {
        choices.made[i] = 0;
        choices.most[i] = most;
        choices.known = i + 1u;
    }
    return choices.made[i];
}

/* A program writes what it likes, as far as it may. */
static void write_object(unsigned char *pointer, size_t usable)
{
    moved = (moved ^ (uintptr_t)pointer) * 0x100000001b3u;
    memset(pointer, fill, usable);
}

static void told(unsigned call, unsigned object, unsigned size, unsigned alignment)
{
    if (calls_told < MOST_TOLD) {
        calls[calls_told].call = call;
        calls[calls_told].object = object;
        calls[calls_told].size = size;
        calls[calls_told++].alignment = alignment;
    }
}

static void prepare(unsigned char content);

static int run(void (*program)(void), unsigned char content)
{
    fill = content;
    choices.count = 0;
    calls_told = 0;
    moved = 0;
    prepare(content);
    const int ended = setjmp(end_of_run);
    if (ended == 0) {
        program();
    }
    return ended;
}

/* Whether there is another program. What was chosen behind the last choice of this run is forgotten. */
static int next_program(void)
{
    for (choices.known = choices.count; choices.known > 0; choices.known--) {
        if (choices.made[choices.known - 1u] < choices.most[choices.known - 1u]) {
            choices.made[choices.known - 1u]++;
            return 1;
        }
    }
    return 0;
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

static int every(void (*program)(void))
{
    const struct timeval time = {PATIENCE_S, 0};
    const struct itimerval patience = {time, time};
    unsigned long long whole = 0;
    signal(SIGABRT, die);
    signal(SIGPROF, look);
    setitimer(ITIMER_PROF, &patience, NULL);
    do {
        programs++;
        if (run(program, 0) == 0) {
            whole++;
{% if second_content %}
            const unsigned long long places = moved;
            if (run(program, 0xff) == 0 && moved != places) {
                tell_failure("independence: what a program writes moves no object");
            }
{% endif %}
        }
    } while (next_program());
    printf("programs %llu\n", whole);
    return 0;
}
