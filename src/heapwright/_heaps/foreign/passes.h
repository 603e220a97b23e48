/* passes.h: a trace again and again for time, a part of driver.c. */
#ifndef HEAPWRIGHT_PASSES_H
#define HEAPWRIGHT_PASSES_H

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* What the loop reads of a call: the operation in the upper 2 bits of the slot, REALLOC for all that is rare. */
struct step {
    uint32_t op_and_slot;
    uint32_t size;
};

/* Plain malloc and free take the short way; what asks for more than that does not, nor does a slot that is resized. */
static const struct step *prepare(const struct driver *d)
{
    struct step *steps = shared(d->count * sizeof *steps);
    unsigned char *resized = shared(d->slots);
    for (uint32_t i = 0; i < d->count; i++) {
        resized[d->calls[i].op_and_slot & 0x3fffffffu] |= d->calls[i].op_and_slot >> 30 == REALLOC;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        const uint32_t slot = d->calls[i].op_and_slot & 0x3fffffffu;
        const uint32_t op = d->calls[i].op_and_slot >> 30;
        const int plain = op == MALLOC && d->calls[i].align <= foreign_align && !resized[slot];
        steps[i].op_and_slot = slot | (plain || op == FREE ? op : (uint32_t)REALLOC) << 30;
        steps[i].size = (uint32_t)wanted(d->calls[i].size);
    }
    return steps;
}

static void write_once(unsigned char *base, uint32_t size)
{
    if (base != NULL) {
        memset(foreign_moves ? foreign_pointer(base) : base, 1, size);
    }
}

static void __attribute__((noinline)) replay_rare(const struct driver *d, uint32_t i, uint32_t slot, void **bases)
{
    struct object *object = &d->objects[slot];
    if (d->calls[i].op_and_slot >> 30 != REALLOC) {
        bases[slot] = allocate(&d->calls[i]);
        object->size = d->calls[i].size;
        if (d->writes) {
            write_once(bases[slot], object->size);
        }
    } else if (bases[slot] != NULL) {
        object->base = object->payload = bases[slot];
        unsigned char *moved = resize(object, object->size, d->calls[i].size);
        bases[slot] = moved ? moved : bases[slot];
        object->size = moved ? d->calls[i].size : object->size;
    }
}

/* As little overhead as can be: 8 bytes of a call are read, and an object's address is stored or read. */
static inline __attribute__((always_inline)) void replay_steps(const struct driver *d, const struct step *steps,
                                                               void **bases, const int writes)
{
    for (uint32_t i = 0, count = d->count; i < count; i++) {
        const uint32_t slot = steps[i].op_and_slot & 0x3fffffffu;
        const uint32_t op = steps[i].op_and_slot >> 30;
        if (op == MALLOC) {
            bases[slot] = foreign_malloc(steps[i].size);
            if (writes) {
                write_once(bases[slot], steps[i].size);
            }
        } else if (op == FREE) {
            if (bases[slot] != NULL) {
                foreign_free(bases[slot]);
            }
        } else {
            replay_rare(d, i, slot, bases);
        }
    }
}

static void replay_fast(const struct driver *d, const struct step *steps, void **bases)
{
    if (d->writes) {
        replay_steps(d, steps, bases, 1);
    } else {
        replay_steps(d, steps, bases, 0);
    }
}

/* The variables of static storage, but for the heap's array, which a fresh heap does not look at. */
extern char __data_start[], _end[];

struct variables {
    size_t before; /* bytes in front of the array */
    char *behind;
    char *copy;
};

static struct variables save_variables(const struct driver *d)
{
    struct variables v = {(size_t)(_end - __data_start), _end, NULL};
    char *array = (char *)foreign_array();
    if (array >= __data_start && array + d->room <= _end) {
        v.before = (size_t)(array - __data_start);
        v.behind = array + d->room;
    }
    v.copy = shared(v.before + (size_t)(_end - v.behind));
    memcpy(v.copy, __data_start, v.before);
    memcpy(v.copy + v.before, v.behind, (size_t)(_end - v.behind));
    return v;
}

static void restore_variables(const struct variables *v)
{
    memcpy(__data_start, v->copy, v->before);
    memcpy(v->behind, v->copy + v->before, (size_t)(_end - v->behind));
}

/* Gives back what the trace leaves; a slot whose object was freed keeps its address. */
static void free_all(const struct driver *d, void **bases)
{
    memset(d->objects, 0, d->slots * sizeof *d->objects);
    for (uint32_t i = 0; i < d->count; i++) {
        d->objects[d->calls[i].op_and_slot & 0x3fffffffu].tag = d->calls[i].op_and_slot >> 30 != FREE;
    }
    for (uint32_t slot = 0; slot < d->slots; slot++) {
        if (d->objects[slot].tag && bases[slot] != NULL && d->memory == NULL) {
            foreign_free(bases[slot]);
        }
        bases[slot] = NULL;
    }
}

/* A heap with an arena starts each pass afresh; one on the system's memory gets everything back. */
static void measure(const struct driver *d, int passes)
{
    const struct variables saved = save_variables(d);
    const struct step *steps = prepare(d);
    void **bases = shared(d->slots * sizeof *bases);
    for (int pass = passes; pass >= 0; pass--) {
        if (d->memory != NULL) {
            restore_variables(&saved);
            memset(d->memory, (int)foreign_poison, foreign_poison == 0 || pass == passes ? d->bytes : 0);
        }
        if (!foreign_init(d->memory, d->bytes)) {
            stop("the heap refuses the arena");
        }
        const int64_t start = now();
        replay_fast(d, steps, bases);
        const int64_t end = now();
        if (pass != passes) {
            dprintf(STDOUT_FILENO, "%lld\n", (long long)(end - start)); /* the first pass only warms up */
        }
        free_all(d, bases);
    }
}

#endif
