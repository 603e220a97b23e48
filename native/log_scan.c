/* Lines of logs that fit a form become events. */
#define _GNU_SOURCE
#include "log_names.h"

enum { DIGITS_OF_HEX = 16, NANOSECOND_DIGITS = 9, HEX_BASE = 16, DECIMAL_BASE = 10 };

#define LARGEST_DECIMAL ((UINT64_C(1) << 63) - 1)
#define LARGEST_EXACT (UINT64_C(1) << 53)

struct hw_scanner {
    const struct hw_log_form *forms;
    const struct hw_log_part *parts;
    const char *literals;
    const char *needles;
    struct hw_names names;
    uint32_t count, needle_count, head;
    uint32_t latest[HW_LOG_PARTS];
    unsigned char starts[256], digit[256], blank[256], name[256], word[256], loss[256];
    int any_start;
};

/* A line as it is read. */
struct line {
    struct hw_scanner *scanner;
    const char *at, *end;
    struct hw_log_event *event;
    uint64_t count; /* of calloc */
    int counted, reports;
};

/* The first four letters of words of which any line that reports a loss has one (losses.py). */
static const char *const LOSSES[] = {"lost", "drop", "disc", "over", "entr", "supp", "repe", "miss"};

static uint32_t four(const char *const text)
{
    uint32_t result = 0;
    memcpy(&result, text, sizeof result);
    return result | 0x20202020u;
}

static int may_report(const struct hw_scanner *const scanner, const char *const text, const char *const end)
{
    for (const char *at = text; at + 4 <= end; at++) {
        const unsigned char word = scanner->loss[(unsigned char)*at];
        for (unsigned i = 0; word != 0 && i < sizeof LOSSES / sizeof *LOSSES; i++) {
            if (four(at) == four(LOSSES[i])) {
                return 1;
            }
        }
    }
    return 0;
}

struct hw_scanner *hw_scanner_new(const struct hw_log_form *const forms, const uint32_t count,
                                  const struct hw_log_part *const parts, const char *const literals,
                                  const uint32_t head)
{
    struct hw_scanner *const scanner = calloc(1, sizeof *scanner);
    if (scanner == NULL) {
        return NULL;
    }
    scanner->forms = forms;
    scanner->count = count;
    scanner->parts = parts;
    scanner->literals = literals;
    scanner->head = head;
    scanner->any_start = 1;
    memset(scanner->digit, 0xFF, sizeof scanner->digit);
    memset(scanner->word, 1, sizeof scanner->word);
    for (unsigned i = 0; i < 10; i++) {
        scanner->digit['0' + i] = (unsigned char)i;
    }
    for (unsigned i = 0; i < 6; i++) {
        scanner->digit['a' + i] = (unsigned char)(10 + i);
        scanner->digit['A' + i] = (unsigned char)(10 + i);
    }
    for (const char *at = " \t\n\r\f\v"; *at != '\0'; at++) {
        scanner->blank[(unsigned char)*at] = 1;
    }
    for (const char *at = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+/-"; *at != '\0'; at++) {
        scanner->name[(unsigned char)*at] = 1;
        scanner->word[(unsigned char)*at] = strchr(".+/-", *at) != NULL;
    }
    for (unsigned i = 0; i < sizeof LOSSES / sizeof *LOSSES; i++) {
        scanner->loss[(unsigned char)LOSSES[i][0]] = 1;
        scanner->loss[(unsigned char)LOSSES[i][0] - 0x20] = 1;
    }
    for (unsigned i = 0; i < HW_LOG_PARTS; i++) {
        scanner->latest[i] = HW_LOG_AS_BEFORE;
    }
    return scanner;
}

void hw_scanner_delete(struct hw_scanner *const scanner)
{
    if (scanner != NULL) {
        free(scanner->names.text);
        free(scanner->names.begins);
        free(scanner->names.table);
        free(scanner);
    }
}

uint32_t hw_scanner_number(struct hw_scanner *const scanner, const char *const name, const size_t length)
{
    return number_of_name(&scanner->names, name, length);
}

uint32_t hw_scanner_names(const struct hw_scanner *const scanner)
{
    return scanner->names.count;
}

const char *hw_scanner_name(const struct hw_scanner *const scanner, const uint32_t number, size_t *const length)
{
    *length = scanner->names.begins[number + 1] - scanner->names.begins[number];
    return scanner->names.text + scanner->names.begins[number];
}

void hw_scanner_ignore(struct hw_scanner *const scanner, const char *const needles, const uint32_t count,
                       const char *const starts)
{
    scanner->needles = needles;
    scanner->needle_count = count;
    scanner->any_start = starts == NULL;
    for (const char *at = starts; at != NULL && *at != '\0'; at++) {
        scanner->starts[(unsigned char)*at] = 1;
    }
}

static int put_number(struct line *const line, const struct hw_log_part *const part, const uint64_t number)
{
    struct hw_log_event *const event = line->event;
    const uint64_t plus = line->scanner->forms[event->form].plus;
    switch (part->slot) {
    case HW_LOG_ADDRESS:
        event->address = number + plus;
        break;
    case HW_LOG_OLD_ADDRESS:
        event->old = number + plus;
        break;
    case HW_LOG_SIZE:
        event->size = number;
        break;
    case HW_LOG_COUNT:
        line->count = number;
        line->counted = 1;
        break;
    case HW_LOG_ALIGN:
        event->align = number <= UINT32_MAX ? (uint32_t)number : 0;
        return number <= UINT32_MAX;
    default:
        break;
    }
    return 1;
}

/* Digits of a base, of which there must be `least` to `most`, followed by none. Leaves the line where it ends. */
static int digits(struct line *const line, const unsigned base, const unsigned least, const unsigned most,
                  uint64_t *const number)
{
    const unsigned char *const digit = line->scanner->digit;
    const char *const begin = line->at;
    uint64_t value = 0;
    for (; line->at < line->end && digit[(unsigned char)*line->at] < base; line->at++) {
        value = value * base + digit[(unsigned char)*line->at];
    }
    *number = value;
    const size_t length = (size_t)(line->at - begin);
    return length >= least && length <= most && (base == HEX_BASE || length < 19 || value <= LARGEST_DECIMAL);
}

static int is_lower(const char *at, const char *const end)
{
    for (; at < end; at++) {
        if (*at >= 'A' && *at <= 'F') {
            return 0;
        }
    }
    return 1;
}

static int hexadecimal(struct line *const line, const struct hw_log_part *const part, uint64_t *const number)
{
    const char *const begin = line->at;
    return digits(line, HEX_BASE, 1, DIGITS_OF_HEX, number) &&
           ((part->flags & HW_LOG_UPPER) != 0 || is_lower(begin, line->at));
}

static int has(struct line *const line, const char *const text, const size_t length)
{
    if ((size_t)(line->end - line->at) < length || memcmp(line->at, text, length) != 0) {
        return 0;
    }
    line->at += length;
    return 1;
}

static int take_number(struct line *const line, const struct hw_log_part *const part)
{
    uint64_t number = 0;
    const unsigned flags = part->flags;
    if ((flags & HW_LOG_HEX) != 0 && has(line, "0x", 2)) {
        return hexadecimal(line, part, &number) && put_number(line, part, number);
    }
    if ((flags & HW_LOG_NIL) != 0 && (has(line, "(nil)", 5) || has(line, "nil", 3))) {
        return put_number(line, part, 0);
    }
    if ((flags & HW_LOG_BARE) != 0) {
        return hexadecimal(line, part, &number) && put_number(line, part, number);
    }
    const char *const begin = line->at;
    return (flags & (HW_LOG_DECIMAL | HW_LOG_ZEROS)) != 0 &&
           digits(line, DECIMAL_BASE, part->least, part->most < 19 ? part->most : 19, &number) &&
           ((flags & HW_LOG_ZEROS) != 0 || *begin != '0' || line->at == begin + 1) && put_number(line, part, number);
}

static int add_time(struct line *const line, const uint64_t number, const int64_t factor)
{
    struct hw_log_event *const event = line->event;
    const int64_t before = event->now_ns < 0 ? 0 : event->now_ns;
    if (number > (uint64_t)(INT64_MAX / 2 - before) / (uint64_t)factor) {
        return 0;
    }
    event->now_ns = before + (int64_t)number * factor;
    return 1;
}

static int take_time(struct line *const line, const struct hw_log_part *const part)
{
    uint64_t number = 0;
    const unsigned base = (part->flags & HW_LOG_BARE) != 0 ? HEX_BASE : DECIMAL_BASE;
    return digits(line, base, part->least, part->most, &number) && add_time(line, number, part->factor);
}

static int take_fraction(struct line *const line, const struct hw_log_part *const part)
{
    uint64_t number = 0;
    const char *const begin = line->at;
    if (!digits(line, DECIMAL_BASE, part->least, part->most, &number)) {
        return 0;
    }
    for (long length = line->at - begin; length < NANOSECOND_DIGITS; length++) {
        number *= DECIMAL_BASE;
    }
    return add_time(line, number, 1);
}

/* The quotient of two exact numbers is rounded as Python's float() rounds, which reads the same digits. */
static int take_float(struct line *const line, const struct hw_log_part *const part)
{
    const unsigned char *const digit = line->scanner->digit;
    uint64_t number = 0;
    double power = 1;
    if (!digits(line, DECIMAL_BASE, 1, part->most, &number)) {
        return 0;
    }
    if (line->at < line->end && *line->at == '.') {
        const char *const begin = ++line->at;
        for (; line->at < line->end && digit[(unsigned char)*line->at] < DECIMAL_BASE; line->at++) {
            number = number < LARGEST_EXACT ? number * DECIMAL_BASE + digit[(unsigned char)*line->at] : number;
            power *= DECIMAL_BASE;
        }
        if (line->at == begin || line->at - begin > NANOSECOND_DIGITS) {
            return 0;
        }
    }
    const double now = (double)number / power * (double)part->factor;
    if (number >= LARGEST_EXACT || now >= (double)(INT64_C(1) << 62)) {
        return 0;
    }
    const int64_t whole = (int64_t)now;
    const double rest = now - (double)whole;
    line->event->now_ns = whole + (rest > 0.5 || (rest == 0.5 && (whole & 1) != 0));
    return 1;
}

static int all_of(const char *const begin, const size_t length, const unsigned char *const kinds, const unsigned below)
{
    for (size_t i = 0; i < length; i++) {
        if (kinds[(unsigned char)begin[i]] >= below) {
            return 0;
        }
    }
    return 1;
}

static int is_cell(const struct line *const line, const char *const begin, const size_t length)
{
    const unsigned char first = (unsigned char)begin[0], last = (unsigned char)begin[length - 1];
    const unsigned char *const blank = line->scanner->blank;
    return !blank[first] && !blank[last] && first < 0x80 && last < 0x80 && memchr(begin, '"', length) == NULL &&
           memchr(begin, ';', length) == NULL && memchr(begin, ',', length) == NULL &&
           memchr(begin, '\t', length) == NULL;
}

static int is_plain_word(const struct line *const line, const struct hw_log_part *const part, const char *const begin,
                         const size_t length)
{
    if (length < part->least) {
        return 0;
    }
    if (length == 0) {
        return 1;
    }
    return ((part->more & 1) == 0 || all_of(begin, length, line->scanner->digit, 10)) &&
           ((part->more & 2) == 0 || is_cell(line, begin, length)) &&
           ((part->more & 4) == 0 || (begin[0] != '(' && begin[length - 1] != ')')) &&
           ((part->more & 8) == 0 || all_of(begin, length, line->scanner->word, 1));
}

static void put_name(struct line *const line, const struct hw_log_part *const part, const char *const name,
                     const size_t length)
{
    struct hw_scanner *const scanner = line->scanner;
    uint32_t number = scanner->latest[part->slot];
    if (number == HW_LOG_AS_BEFORE || !is_name(&scanner->names, number, name, length)) {
        number = scanner->latest[part->slot] = number_of_name(&scanner->names, name, length);
    }
    uint32_t *const slot = part->slot == HW_LOG_THREAD ? &line->event->thread
                           : part->slot == HW_LOG_SITE ? &line->event->site
                                                       : &line->event->process;
    *slot = number;
}

static int take_word(struct line *const line, const struct hw_log_part *const part)
{
    const unsigned char *const blank = line->scanner->blank;
    const char *const begin = line->at;
    const char stop = part->length != 0 ? line->scanner->literals[part->literal] : ' ';
    if ((part->more & 2) != 0) {
        while (line->at < line->end && *line->at != stop) {
            line->at++;
        }
    } else {
        while (line->at < line->end && *line->at != stop && !blank[(unsigned char)*line->at]) {
            line->at++;
        }
    }
    const size_t length = (size_t)(line->at - begin);
    if (length > part->most * (part->factor != 0 ? (size_t)part->factor : 1) ||
        !is_plain_word(line, part, begin, length)) {
        return 0;
    }
    if ((part->more & 1) == 0) {
        line->reports |= may_report(line->scanner, begin, line->at);
    }
    if (part->slot != HW_LOG_NO_SLOT) {
        put_name(line, part, begin, length);
    }
    return 1;
}

static int take_literal(struct line *const line, const struct hw_log_part *const part)
{
    return has(line, line->scanner->literals + part->literal, part->length);
}

static int take_skip(struct line *const line, const struct hw_log_part *const part)
{
    const char *const begin = line->at;
    const char *const literal = line->scanner->literals + part->literal;
    for (const char *from = begin; from < line->end; from++) {
        const char *const found = memmem(from, (size_t)(line->end - from), literal, part->length);
        if (found == NULL) {
            return 0;
        }
        if (part->flags == 0 || (found > begin && line->scanner->blank[(unsigned char)found[-1]])) {
            line->reports |= may_report(line->scanner, begin, found);
            line->at = found + part->length;
            return 1;
        }
        from = found;
    }
    return 0;
}

static int take_run(struct line *const line, const struct hw_log_part *const part)
{
    const char *const begin = line->at;
    while (line->at < line->end && line->scanner->name[(unsigned char)*line->at]) {
        line->at++;
    }
    line->reports |= may_report(line->scanner, begin, line->at);
    return line->at - begin > part->least && line->at[-1] == '-';
}

static int take_blanks(struct line *const line, const struct hw_log_part *const part)
{
    const char *const begin = line->at;
    while (line->at < line->end &&
           (part->flags != 0 ? *line->at == ' ' : line->scanner->blank[(unsigned char)*line->at])) {
        line->at++;
    }
    return line->at - begin >= part->least && line->at - begin <= part->most;
}

static int take_last(struct line *const line, const struct hw_log_part *const part)
{
    if (part->flags != 0) {
        line->reports |= may_report(line->scanner, line->at, line->end);
        return 1;
    }
    return line->at == line->end;
}

static int (*const TAKES[HW_LOG_CODES])(struct line *, const struct hw_log_part *) = {
    [HW_LOG_LITERAL] = take_literal,   [HW_LOG_SKIP] = take_skip,   [HW_LOG_NUMBER] = take_number,
    [HW_LOG_TIME] = take_time,         [HW_LOG_WORD] = take_word,   [HW_LOG_RUN] = take_run,
    [HW_LOG_FRACTION] = take_fraction, [HW_LOG_FLOAT] = take_float, [HW_LOG_BLANKS] = take_blanks,
    [HW_LOG_LAST] = take_last,
};

static int take_parts(struct line *const line, const struct hw_log_part *const parts, const uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_log_part *const part = &parts[i];
        if (part->code != HW_LOG_OPTIONAL) {
            if (!TAKES[part->code](line, part)) {
                return 0;
            }
            continue;
        }
        const struct hw_log_event event = *line->event;
        const struct line before = *line;
        if (!take_parts(line, part + 1, part->count)) {
            *line = before;
            *line->event = event;
        }
        i += part->count;
    }
    return 1;
}

static void begin_event(struct line *const line, const struct hw_log_form *const form)
{
    struct hw_log_event *const event = line->event;
    event->address = event->size = 0;
    event->align = 0;
    event->now_ns = form->now_ns;
    event->thread = form->thread;
    event->site = form->site;
    event->process = form->process;
    event->form = (uint32_t)(form - line->scanner->forms);
}

/* Reads the parts of a form behind those that all forms begin with. */
static int fits(struct line *const line, const uint32_t number)
{
    const struct hw_log_form *const form = &line->scanner->forms[number];
    const uint32_t head = line->scanner->head;
    struct hw_log_event *const event = line->event;
    event->old = form->old;
    event->kind = form->kind;
    event->form = number;
    if (!take_parts(line, line->scanner->parts + form->first + head, form->count - head)) {
        return 0;
    }
    if (line->counted) {
        if (line->count != 0 && event->size > UINT64_MAX / line->count) {
            return 0;
        }
        event->size *= line->count;
    }
    return 1;
}

/* Whether the line lacks a literal of a form. */
static int lacks(const struct line *const line, const char *const begin, const struct hw_log_form *const form)
{
    for (uint32_t i = form->first; i < form->first + form->count; i++) {
        const struct hw_log_part *const part = &line->scanner->parts[i];
        i += part->code == HW_LOG_OPTIONAL ? part->count : 0;
        if ((part->code == HW_LOG_LITERAL || part->code == HW_LOG_SKIP) &&
            memmem(begin, (size_t)(line->end - begin), line->scanner->literals + part->literal, part->length) == NULL) {
            return 1;
        }
    }
    return 0;
}

/* Whether a line that fits no form is about no call. */
static int is_ignored(const struct hw_scanner *const scanner, const char *const begin, const char *const end)
{
    if (!scanner->any_start && (begin == end || !scanner->starts[(unsigned char)*begin])) {
        return 1;
    }
    const char *needle = scanner->needles;
    if (needle == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i < scanner->needle_count; i++, needle += strlen(needle) + 1) {
        if (memmem(begin, (size_t)(end - begin), needle, strlen(needle)) != NULL) {
            return 0;
        }
    }
    return 1;
}

/* Whether there is an event: of a form that fits, or for Python. */
static int read_line(struct line *const line)
{
    struct hw_scanner *const scanner = line->scanner;
    const struct hw_log_form *const forms = scanner->forms;
    const char *const begin = line->at;
    begin_event(line, &forms[0]);
    const int begun = take_parts(line, scanner->parts + forms[0].first, scanner->head);
    const struct line head = *line;
    const struct hw_log_event event = *line->event;
    for (uint32_t i = 0; begun && i < scanner->count; i++) {
        *line = head;
        *line->event = event;
        if (scanner->head == 0) {
            begin_event(line, &forms[i]);
        }
        if (fits(line, i)) {
            return 1;
        }
        if (forms[i].searched && !lacks(line, begin, &forms[i])) {
            line->event->kind = HW_LOG_LINE;
            line->reports = may_report(scanner, begin, line->end);
            return 1;
        }
    }
    line->event->kind = HW_LOG_LINE;
    line->reports = may_report(scanner, begin, line->end);
    return !forms[0].searched && !is_ignored(scanner, begin, line->end);
}

void hw_scanner_scan(struct hw_scanner *const scanner, const char *const text, const size_t length,
                     struct hw_scanned *const to)
{
    while (to->at < length && to->events < to->room && to->reports < to->room) {
        const char *const begin = text + to->at;
        const char *const end = memchr(begin, '\n', length - to->at);
        const size_t whole = end != NULL ? (size_t)(end - begin) : length - to->at;
        const uint64_t at = to->at;
        to->at += whole + 1;
        if (whole > to->longest) {
            continue;
        }
        struct line line = {scanner, begin, begin + whole, &to->event[to->events], 0, 0, 0};
        while (line.end > begin && line.end[-1] == '\r') {
            line.end--;
        }
        line.event->at = at;
        to->events += (uint32_t)read_line(&line);
        if (line.reports) {
            to->report[to->reports++] = at;
        }
    }
}
