/* Every program within the bounds is run, one after the other, with a sanitizer that looks at each access.
 *
 * A program is the list of its choices. The next one differs in the last choice that can still be raised; what came
 * before is chosen again. Each runs in an arena of zeros{% if second_content %} and in one of ones{% endif %}, and fills its objects with the same.
 */
{% include "telling.h" %}

enum { MOST_CHOICES = 64 };

static struct {
    unsigned made[MOST_CHOICES], most[MOST_CHOICES];
    unsigned count, known; /* made in this run; taken over from the last one */
} choices;

static unsigned char fill;
static unsigned long long moved;

static void assume(int condition)
{
    if (!condition) {
        longjmp(end_of_run, ASSUMPTION);
    }
}

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

static int every(void (*program)(void))
{
    unsigned long long whole = 0;
    watch();
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
