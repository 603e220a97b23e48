/* app_preload_test.c: whether a program's calls reach app_preload.so, and are served as glibc's manual says.
 *
 * Run it with app_preload.so preloaded. Exit code 0 and "ok" where all holds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 20000, OBJECTS = 64, FORKS = 50 };

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        printf("FAILED: %s\n", what);
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
}

static void *volatile before_main;

__attribute__((constructor(101))) static void early(void)
{
    before_main = calloc(3, 100);
}

static void test_symbols(void)
{
    static const char *const names[] = {
        "malloc",    "free",    "calloc",      "realloc",      "aligned_alloc",      "posix_memalign",
        "memalign",  "valloc",  "pvalloc",     "reallocarray", "malloc_usable_size", "mallinfo",
        "mallinfo2", "mallopt", "malloc_info", "malloc_stats", "malloc_trim"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Dl_info found = {0};
        void *symbol = dlsym(RTLD_DEFAULT, names[i]);
        const char *file = dladdr(symbol, &found) && found.dli_fname ? found.dli_fname : "nothing";
        if (strstr(file, "app_preload.so") == NULL) {
            printf("%s is found in %s\n", names[i], file);
            failures++;
        }
    }
}

static void test_each_function(void)
{
    unsigned char *zero = before_main;
    expect(zero && zero[0] == 0 && zero[299] == 0, "calls before main are served");
    free(zero);
    errno = 1234;
    void *some = malloc(1);
    expect(some && malloc_usable_size(some) >= 1, "malloc");
    some = realloc(some, 100000);
    expect(some && malloc_usable_size(some) >= 100000, "realloc");
    some = reallocarray(some, 10, 20);
    expect(some && malloc_usable_size(some) >= 200, "reallocarray");
    expect(realloc(some, 0) == NULL, "realloc to 0 frees");
    free(NULL);
    for (size_t alignment = 8; alignment <= 65536; alignment *= 2) {
        void *out = NULL;
        expect(posix_memalign(&out, alignment, 33) == 0 && (uintptr_t)out % alignment == 0, "posix_memalign");
        void *other = aligned_alloc(alignment, 33);
        expect(other && (uintptr_t)other % alignment == 0, "aligned_alloc");
        void *third = memalign(alignment - 1, 33);
        expect(third && (uintptr_t)third % alignment == 0, "memalign rounds up");
        free(out);
        free(other);
        free(third);
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *paged = valloc(3);
    expect(paged && (uintptr_t)paged % page == 0, "valloc");
    free(paged);
    paged = pvalloc(3);
    expect(paged && (uintptr_t)paged % page == 0 && malloc_usable_size(paged) >= page, "pvalloc");
    free(paged);
    expect(errno == 1234, "errno is kept where all goes well");
}

static void test_what_is_told(void)
{
    const struct mallinfo2 before = mallinfo2();
    void *some = malloc(5000);
    const struct mallinfo2 with = mallinfo2();
    expect(with.uordblks >= before.uordblks + 5000, "mallinfo2 counts what is handed out");
    expect(with.arena == with.uordblks + with.fordblks, "mallinfo2 adds up");
    expect(mallinfo().uordblks == (int)with.uordblks, "mallinfo and mallinfo2 agree");
    free(some);
    expect(mallinfo2().uordblks == before.uordblks, "mallinfo2 after a free");
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    expect(malloc_info(1, file) == EINVAL && malloc_info(0, file) == 0, "malloc_info");
    fclose(file);
    expect(strncmp(text, "<malloc version=\"1\">", 20) == 0 && strstr(text, "</malloc>\n"), "malloc_info's document");
    free(text);
    expect(mallopt(M_MMAP_THRESHOLD, 100000) == 0, "nothing is set");
}

/* Bytes of this process that are in memory. */
static size_t resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*ld %ld", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_memory_goes_back(void)
{
    enum { BLOCKS = 512, BYTES = 100000 };
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], 1, BYTES);
    }
    const size_t most = resident();
    for (int i = 1; i < BLOCKS; i++) { /* the first pins what lies before it */
        free(blocks[i]);
    }
    (void)malloc_trim(0);
    const size_t now = resident();
    expect(now + (size_t)BLOCKS * BYTES * 3 / 4 < most, "free pages go back to the kernel");
    int differs = 0;
    for (int i = 0; i < BYTES; i++) {
        differs += blocks[0][i] != 1;
    }
    expect(differs == 0, "an object keeps its bytes when pages around it go back");
    free(blocks[0]);
}

static void test_small_blocks_go_back(void)
{
    enum { BLOCKS = 100000, BYTES = 64 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(malloc(BYTES), 1, BYTES);
    }
    const size_t most = resident();
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    const struct mallinfo2 listed = mallinfo2();
    expect(listed.arena == listed.uordblks + listed.fordblks, "mallinfo2 adds up with long lists");
    (void)malloc_trim(0);
    expect(mallinfo2().fordblks >= (size_t)BLOCKS * BYTES * 3 / 4, "small blocks are free again");
    expect(resident() + (size_t)BLOCKS * BYTES * 3 / 4 < most, "pages of small blocks go back to the kernel");
}

static void test_failures(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    void *out = &failures;
    errno = 0;
    expect(malloc(huge) == NULL && errno == ENOMEM, "ENOMEM of malloc");
    errno = 0;
    expect(calloc(huge, 3) == NULL && errno == ENOMEM, "ENOMEM of calloc");
    errno = 0;
    expect(reallocarray(NULL, huge, 3) == NULL && errno == ENOMEM, "ENOMEM of reallocarray");
    void *some = malloc(10);
    errno = 0;
    expect(realloc(some, huge) == NULL && errno == ENOMEM, "ENOMEM of realloc");
    free(some);
    errno = 0;
    expect(posix_memalign(&out, 3, 10) == EINVAL && posix_memalign(&out, 64, huge) == ENOMEM,
           "posix_memalign returns its errors");
    expect(out == &failures && errno == 0, "a failed posix_memalign changes nothing else");
}

static void *churn(void *seed)
{
    unsigned char *objects[OBJECTS] = {0};
    size_t sizes[OBJECTS] = {0};
    uint32_t state = (uint32_t)(uintptr_t)seed * 2654435761u + 1u;
    for (unsigned round = 0; round < ROUNDS; round++) {
        state = state * 1664525u + 1013904223u;
        const unsigned i = (state >> 8) % OBJECTS;
        for (size_t k = 0; k < sizes[i]; k++) {
            expect(objects[i][k] == (unsigned char)(i + (uintptr_t)seed), "a thread's objects keep their bytes");
        }
        const size_t size = (state >> 16) % 300;
        if (round % 3 == 0) {
            objects[i] = realloc(objects[i], size + 1);
        } else {
            free(objects[i]);
            objects[i] = malloc(size + 1);
        }
        sizes[i] = size;
        memset(objects[i], (int)(i + (uintptr_t)seed), size);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        free(objects[i]);
    }
    return NULL;
}

static void test_threads_and_forks(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    }
    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();
        if (child == 0) {
            free(malloc(500)); /* waits for ever where another thread held the lock when this process was made */
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        expect(status == 0, "a child can allocate");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void *volatile held;

static void on_alarm(int number)
{
    (void)number;
    unsigned char *mine = malloc(100);
    memset(mine, 7, 100);
    mine = realloc(mine, 300);
    expect(mine[99] == 7, "a signal handler's object keeps its bytes");
    free(held);
    held = mine;
}

static void test_signal_handlers(void)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    churn((void *)99);
    setitimer(ITIMER_REAL, &never, NULL);
    free(held);
}

int main(void)
{
    test_symbols();
    if (failures == 0) {
        test_each_function();
        test_what_is_told();
        test_memory_goes_back();
        test_small_blocks_go_back();
        test_failures();
        test_threads_and_forks();
        test_signal_handlers();
    }
    puts(failures ? "app_preload: FAILED" : "app_preload: ok");
    return failures != 0;
}
