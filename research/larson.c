/* larson.c: a server's loop, after Larson and Krishnan 1998.
 *
 *     larson THREADS REPLACEMENTS [OBJECTS LEAST MOST ROUNDS]
 *
 * Each thread holds OBJECTS blocks of LEAST to MOST bytes and replaces them at random, REPLACEMENTS times in all. After
 * each of ROUNDS rounds it hands its blocks to a new thread, which goes on with them, and ends. Prints the CPU seconds
 * of the process from the first replacement to the last, and the resident set at its largest, in KiB.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct work {
    void **blocks;
    unsigned objects, least, most, rounds;
    unsigned long replacements; /* of one round */
    uint64_t random;
    pthread_mutex_t *mutex;
    pthread_cond_t *ended;
    unsigned *running;
};

static unsigned below(struct work *work, unsigned bound)
{
    work->random = work->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((work->random >> 32) * bound >> 32);
}

static void *block(struct work *work)
{
    unsigned char *made = malloc(work->least + below(work, work->most - work->least + 1u));
    if (made == NULL) {
        perror("larson");
        _Exit(1);
    }
    made[0] = 1;
    return made;
}

static void start(struct work *work);

static void *serve(void *argument)
{
    struct work *work = argument;
    for (unsigned long i = 0; i < work->replacements; i++) {
        void **place = &work->blocks[below(work, work->objects)];
        free(*place);
        *place = block(work);
    }
    if (--work->rounds) {
        start(work);
        return NULL;
    }
    pthread_mutex_lock(work->mutex);
    --*work->running;
    pthread_cond_signal(work->ended);
    pthread_mutex_unlock(work->mutex);
    return NULL;
}

static void start(struct work *work)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, work) != 0) {
        perror("larson");
        _Exit(1);
    }
    pthread_detach(thread);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* VmHWM of this process alone; ru_maxrss would take over that of the one that started it. */
static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) {
        (void)sscanf(line, "VmHWM: %ld", &kib);
    }
    return kib;
}

static unsigned long word(int count, char **words, int at, unsigned long otherwise)
{
    return at < count ? strtoul(words[at], NULL, 10) : otherwise;
}

int main(int count, char **words)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
    const unsigned threads = (unsigned)word(count, words, 1, 1);
    unsigned running = threads;
    struct work *all = calloc(threads, sizeof *all);
    for (unsigned i = 0; i < threads; i++) {
        struct work *work = &all[i];
        work->objects = (unsigned)word(count, words, 3, 1000);
        work->least = (unsigned)word(count, words, 4, 8);
        work->most = (unsigned)word(count, words, 5, 1000);
        work->rounds = (unsigned)word(count, words, 6, 10);
        work->replacements = word(count, words, 2, 1000000) / work->rounds;
        work->random = i + 1u;
        work->mutex = &mutex;
        work->ended = &ended;
        work->running = &running;
        work->blocks = malloc(work->objects * sizeof *work->blocks);
        for (unsigned k = 0; k < work->objects; k++) {
            work->blocks[k] = block(work);
        }
    }
    const double begun = cpu_seconds();
    for (unsigned i = 0; i < threads; i++) {
        start(&all[i]);
    }
    pthread_mutex_lock(&mutex);
    while (running) {
        pthread_cond_wait(&ended, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    const double seconds = cpu_seconds() - begun;
    printf("%.4f %ld\n", seconds, resident_kib());
    return 0;
}
