/* app_trace_lines.h: the calls of app_trace_ring.h as lines of text, 2 to 4 characters a call; included there, once.
 *
 *     hw:RRRRRRRRLLLLLLLLAAAAAAAA   ticks a second, calls lost so far, bytes of the arena; at first, and now and then
 *     hw*NCALLS...CC                N codes, and a checksum
 *
 * Characters are digits to the base of 91, from '$' to '~'. CALLS are bits, 13 in two digits, the highest first. A line
 * can be read without those before it: what is lost on the way costs a line, and leaves the peak as it was. They are
 *
 *     how many calls were written before (12 bits), how many mallocs more than frees, those missing included (12),
 *     1, the live bytes, and how far the peak so far is above them (numbers), or 0 if they are not known,
 *     the time in units (number), an address (32), a thread, 1 if call sites are recorded, and the codes:
 *
 *     - code: 0 freed, 10 malloc, 110 calloc, 1110 resized, 11110 resizing, 111110 a change of thread, and
 *       11111100 what is missing here: numbers of calls; of objects more and bytes more whose mallocs were lost, both
 *                with a sign; of others that were freed, and their bytes; and how far the live bytes rose
 *       11111101 freed as 0, and a size: of a large object, or one whose malloc was lost
 *       11111110 a site: its number (number) and its address (32); when it is first met, and one in each line
 *     - time, in the first five: 0 as before, 10 a unit later, 11 and how many later (number)
 *     - place: 0 and how many places of this line ago it was named (5), or how far it is from the one before: 10, sign
 *       and number in units of 8 bytes, or 11, the same in bytes
 *     - size: 0 and how many new sizes of this line ago it was named (3), or 1 and the number
 *     - thread: one of the first 14 (4); 14 before any was written; 15 and another thread's identity (32)
 *     - site: 0 and how many new sites of this line ago it was named (3), or 1 and its number (number); 0 is none
 *     - number: how many bits it has (4), or 15 and how many more than that (5); and all of them but the highest
 *     - number with a sign: twice the number, or one less than twice what is below 0
 *
 * A unit of time is the least power of two of ticks of which at most 2,000 make a second. freed and resizing have a
 * place, malloc and calloc a place (0: the request failed) and a size, resized the place that was, a size, and 0 where
 * it has no place now, or 1 and that; malloc, calloc and resized a site, if sites are recorded. The checksum is the
 * upper 13 bits of FNV-1a, 32 bits, of N and CALLS.
 */
enum {
    LINE_BITS = 13,  /* of two characters */
    LINE_LONG = 192, /* characters after which a line ends */
    LINE_CODES = 90, /* at most, of a line */
    LINE_MOST = 48,  /* characters of a code, at most */
    LINE_PLACES = 32,
    LINE_SIZES = 8,
    LINE_THREADS = 14,                      /* that have numbers */
    LINE_SITES = APP_TRACE_SITES ? 255 : 1, /* that have numbers */
    LINE_LARGE = 16,                        /* an object is large that holds more than the peak divided by this */
    LINE_UNITS = 2000,
    LINE_HEADER_EVERY = 64
};

struct trace_call {
    uint32_t kind; /* of its last record */
    uint32_t word, size, ticks;
    uint32_t from;    /* of a realloc, 0 of all others */
    uint32_t gone;    /* bytes of the object that was freed or resized */
    uint32_t lost[6]; /* of what is missing, as app_trace_ring.h has them */
};

/* What was handed out so far, and the line that is being made. For one thread at a time, as app_trace_drain(). */
static struct {
    uint32_t lines, calls, objects, lost; /* live objects, by the calls written so far */
    uint32_t time, ticks;                 /* units, and ticks beyond them */
    uint32_t live, peak;                  /* bytes */
    uint32_t thread, threads, known[LINE_THREADS];
    uint32_t site, sites, place[LINE_SITES], again; /* the site that is repeated next */
} trace_sent;

static struct {
    uint32_t length, codes, bits, count; /* bits that make no character yet */
    uint32_t places, place[LINE_PLACES], sizes, size[LINE_SIZES], sites, site[LINE_SIZES];
    char text[LINE_LONG + LINE_MOST + 5];
} trace_line;

/* Appends bits, the highest first: each 13 are two characters. */
static void line_bits(uint32_t value, unsigned count)
{
    while (count-- > 0) {
        trace_line.bits = trace_line.bits << 1 | (value >> count & 1u);
        if (++trace_line.count == LINE_BITS) {
            const uint32_t high = trace_line.bits * 2881u >> 18; /* divided by 91, exactly for 13 bits */
            trace_line.text[trace_line.length++] = (char)('$' + high);
            trace_line.text[trace_line.length++] = (char)('$' + trace_line.bits - high * 91u);
            trace_line.bits = trace_line.count = 0;
        }
    }
}

static void line_number(uint32_t value)
{
    unsigned bits = 0;
    while (bits < 32 && value >> bits != 0) {
        bits++;
    }
    if (bits < 15) {
        line_bits(bits, 4);
    } else {
        line_bits(15, 4);
        line_bits(bits - 15, 5);
    }
    line_bits(value, bits == 0 ? 0 : bits - 1);
}

/* How many of the last `room` values ago this one was named; `room` where it was not. */
static uint32_t line_again(const uint32_t *values, uint32_t count, uint32_t room, uint32_t value)
{
    uint32_t ago = 0;
    const uint32_t known = count < room ? count : room;
    while (ago < known && values[(count - 1 - ago) % room] != value) {
        ago++;
    }
    return ago < known ? ago : room;
}

static void line_place(uint32_t address)
{
    const uint32_t ago = line_again(trace_line.place, trace_line.places, LINE_PLACES, address);
    if (ago < LINE_PLACES) {
        line_bits(ago, 6);
    } else {
        const uint32_t before = trace_line.place[(trace_line.places - 1) % LINE_PLACES];
        const uint32_t far = address < before ? before - address : address - before;
        const uint32_t fine = far % 8u != 0;
        line_bits(4u | fine << 1 | (address < before), 3);
        line_number(fine ? far : far / 8u);
    }
    trace_line.place[trace_line.places++ % LINE_PLACES] = address;
}

/* A value that is one of the last few new ones, or a new one. */
static void line_value(uint32_t *values, uint32_t *count, uint32_t value)
{
    const uint32_t ago = line_again(values, *count, LINE_SIZES, value);
    if (ago < LINE_SIZES) {
        line_bits(ago, 4);
    } else {
        line_bits(1, 1);
        line_number(value);
        values[(*count)++ % LINE_SIZES] = value;
    }
}

static void line_size(uint32_t size)
{
    line_value(trace_line.size, &trace_line.sizes, size);
}

static void line_signed(uint32_t value)
{
    line_number(value << 1 ^ (0u - (value >> 31)));
}

/* The number of the site of the calls that follow; those beyond LINE_SITES have none. */
static uint32_t line_site(void)
{
    uint32_t number = 0;
    while (number < trace_sent.sites && trace_sent.place[number] != trace_sent.site) {
        number++;
    }
    return trace_sent.site == 0 || number == trace_sent.sites ? 0 : number + 1;
}

static void line_write_site(uint32_t number)
{
    trace_line.codes++;
    line_bits(254, 8);
    line_number(number);
    line_bits(trace_sent.place[number - 1], 32);
}

static void line_thread(uint32_t thread)
{
    uint32_t number = 0;
    while (number < trace_sent.threads && trace_sent.known[number] != thread) {
        number++;
    }
    if (number == LINE_THREADS) {
        line_bits(LINE_THREADS + 1u, 4);
        line_bits(thread, 32);
        return;
    }
    if (number == trace_sent.threads) {
        trace_sent.known[trace_sent.threads++] = thread;
    }
    line_bits(number, 4);
}

static uint32_t line_unit_bits(void)
{
    uint32_t bits = 0;
    while (app_trace_ring.ticks_per_second >> bits > LINE_UNITS) {
        bits++;
    }
    return bits;
}

/* How many units have passed after `ticks` more ticks. */
static uint32_t line_units(uint32_t ticks)
{
    const uint32_t bits = line_unit_bits();
    const uint32_t beyond = trace_sent.ticks + (ticks & ((1u << bits) - 1u));
    const uint32_t units = (ticks >> bits) + (beyond >> bits);
    trace_sent.ticks = beyond & ((1u << bits) - 1u);
    trace_sent.time += units;
    return units;
}

static void line_begin(uint32_t address)
{
    trace_line.length = 4;
    trace_line.codes = trace_line.bits = trace_line.count = trace_line.sizes = trace_line.sites = 0;
    line_bits(trace_sent.calls, 12);
    line_bits(trace_sent.objects, 12);
    if (trace_homeless != 0 || (APP_TRACE_NEWEST && app_trace_ring.lost != 0)) {
        line_bits(0, 1);
    } else {
        line_bits(1, 1);
        line_number(trace_sent.live);
        line_number(trace_sent.peak - trace_sent.live);
    }
    line_number(trace_sent.time);
    line_bits(address, 32);
    trace_line.places = 1;
    trace_line.place[0] = address;
    if (trace_sent.threads == 0) {
        line_bits(LINE_THREADS, 4);
    } else {
        line_thread(trace_sent.thread);
    }
    line_bits(APP_TRACE_SITES, 1);
    if (trace_sent.sites != 0) {
        trace_sent.again = trace_sent.again < trace_sent.sites ? trace_sent.again + 1 : 1;
        line_write_site(trace_sent.again);
    }
}

static void line_end(void (*line)(const char *text))
{
    uint32_t hash = 2166136261u;
    if (trace_line.codes == 0) {
        return;
    }
    if (trace_line.count != 0) {
        line_bits(0, LINE_BITS - trace_line.count);
    }
    trace_line.text[0] = 'h';
    trace_line.text[1] = 'w';
    trace_line.text[2] = '*';
    trace_line.text[3] = (char)('$' + trace_line.codes);
    for (uint32_t k = 3; k < trace_line.length; k++) {
        hash = (hash ^ (uint8_t)trace_line.text[k]) * 16777619u;
    }
    line_bits(hash >> 19, LINE_BITS);
    trace_line.text[trace_line.length] = '\n';
    trace_line.text[trace_line.length + 1] = '\0';
    trace_line.codes = 0;
    trace_sent.lines++;
    line(trace_line.text);
}

static int line_frees(const struct trace_call *call)
{
    return call->kind == TRACE_OTHER && call->size != TRACE_RESIZING;
}

/* Whether a call frees a large object, or one whose malloc was lost: then the line also has its size. */
static int line_frees_sized(const struct trace_call *call)
{
    return line_frees(call) && (call->size == TRACE_STRAY || call->gone > trace_sent.peak / LINE_LARGE);
}

static int line_is_loss(const struct trace_call *call)
{
    return call->kind == TRACE_OTHER && call->size >= TRACE_LOST && call->size < TRACE_LOST_END;
}

static void line_operation(const struct trace_call *call)
{
    if (call->from != 0) {
        line_bits(14, 4);
    } else if (call->kind == TRACE_MALLOC) {
        line_bits(2, 2);
    } else if (call->kind != TRACE_OTHER) {
        line_bits(6, 3);
    } else if (line_frees_sized(call)) {
        line_bits(253, 8);
    } else if (line_frees(call)) {
        line_bits(0, 1);
    } else {
        line_bits(30, 5);
    }
}

static void line_time(uint32_t units)
{
    if (units == 0) {
        line_bits(0, 1);
    } else if (units == 1) {
        line_bits(2, 2);
    } else {
        line_bits(3, 2);
        line_number(units);
    }
}

static void line_call(const struct trace_call *call)
{
    line_operation(call);
    line_time(line_units(call->ticks));
    line_place(call->from != 0 ? call->from : call->word);
    if (call->kind != TRACE_OTHER) {
        line_size(call->size);
    } else if (line_frees_sized(call)) {
        line_size(call->gone);
    }
    if (call->from != 0) {
        line_bits(call->word != 0, 1);
        if (call->word != 0) {
            line_place(call->word);
        }
    }
    if (APP_TRACE_SITES && call->kind != TRACE_OTHER) {
        line_value(trace_line.site, &trace_line.sites, line_site());
    }
    trace_sent.calls++;
    trace_sent.objects +=
        (call->kind != TRACE_OTHER && call->from == 0 && call->word != 0) - (uint32_t)line_frees(call);
}

/* Updates the live bytes. */
static void line_count(const struct trace_call *call)
{
    const int failed = call->word == 0;
    uint32_t most = 0;
    if (call->kind != TRACE_OTHER && !failed) {
        trace_sent.live += call->size;
    }
    if (line_is_loss(call)) {
        most = trace_sent.live + call->lost[5];
        trace_sent.live += call->lost[2] - call->lost[4];
    }
    trace_sent.live -= call->gone;
    most = most > trace_sent.live ? most : trace_sent.live;
    trace_sent.peak = trace_sent.peak > most ? trace_sent.peak : most;
}

/* Puts the site of a call into the line if it is met first and there is room for its number. */
static void line_new_site(const struct trace_call *call)
{
    if (APP_TRACE_SITES && call->kind != TRACE_OTHER && line_site() == 0 && trace_sent.sites < LINE_SITES &&
        trace_sent.site != 0) {
        trace_sent.place[trace_sent.sites++] = trace_sent.site;
        line_write_site(trace_sent.sites);
    }
}

static void line_loss(const struct trace_call *call)
{
    line_bits(252, 8);
    for (uint32_t k = 0; k < 6; k++) {
        if (k == 1 || k == 2) {
            line_signed(call->lost[k]);
        } else {
            line_number(call->lost[k] & ~TRACE_CROWDED);
        }
    }
    trace_sent.objects += call->lost[1] - call->lost[3];
}

/* Puts a call, a change of thread or a mark of what was lost into the line, which ends before where it is full. */
static void line_code(const struct trace_call *call, void (*line)(const char *text))
{
    if (trace_line.codes >= LINE_CODES - 1 || trace_line.length >= LINE_LONG) {
        line_end(line);
    }
    if (trace_line.codes == 0) {
        line_begin(call->from != 0 ? call->from : call->word);
    }
    line_new_site(call);
    trace_line.codes++;
    if (call->kind == TRACE_OTHER && call->size == TRACE_THREAD) {
        trace_sent.thread = call->word;
        line_bits(62, 6);
        line_thread(call->word);
    } else if (line_is_loss(call)) {
        line_loss(call);
    } else {
        line_call(call);
    }
    line_count(call);
}

static void line_header(void (*line)(const char *text))
{
    const uint32_t words[3] = {app_trace_ring.ticks_per_second, app_trace_ring.lost, APP_TRACE_ARENA};
    char *text = trace_line.text;
    text[0] = 'h';
    text[1] = 'w';
    text[2] = ':';
    for (unsigned k = 0; k < 24; k++) {
        text[3 + k] = "0123456789abcdef"[words[k / 8u] >> (28u - 4u * (k % 8u)) & 15u];
    }
    text[27] = '\n';
    text[28] = '\0';
    trace_sent.lost = words[1];
    line(text);
}
