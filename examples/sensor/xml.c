/* xml.c: reads meter readings in XML event by event, with expat, as a node of a smart grid would.
 *
 *     xml FILE
 *
 * In addition to the parser's memory it allocates a copy of the name of each open element and a record for each
 * reading; the records of a meter are added up and freed at its end.
 */
#include <expat.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct element {
    struct element *outer;
    char *name;
};

struct reading {
    struct reading *next;
    long value;
};

struct state {
    struct element *open;
    struct reading *readings;
    char text[64];
    size_t length;
    long sum;
};

static void *need(void *memory)
{
    if (memory == NULL) {
        _exit(1);
    }
    return memory;
}

static void start(void *data, const char *name, const char **attributes)
{
    (void)attributes;
    struct state *state = data;
    struct element *element = need(malloc(sizeof *element));
    element->name = need(strdup(name));
    element->outer = state->open;
    state->open = element;
    state->length = 0;
}

static void text(void *data, const char *part, int length)
{
    struct state *state = data;
    for (int i = 0; i < length && state->length + 1 < sizeof state->text; i++) {
        state->text[state->length++] = part[i];
    }
}

static void end(void *data, const char *name)
{
    struct state *state = data;
    struct element *element = state->open;
    state->text[state->length] = 0;
    if (strcmp(name, "value") == 0) {
        struct reading *reading = need(malloc(sizeof *reading));
        reading->value = atol(state->text);
        reading->next = state->readings;
        state->readings = reading;
    }
    while (strcmp(name, "meter") == 0 && state->readings) {
        struct reading *first = state->readings;
        state->readings = first->next;
        state->sum += first->value;
        free(first);
    }
    state->open = element->outer;
    free(element->name);
    free(element);
}

int main(int argc, char **argv)
{
    struct state state = {0};
    char buffer[512];
    ssize_t length;
    const int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    XML_Parser parser = XML_ParserCreate(NULL);
    if (file < 0 || parser == NULL) {
        return 1;
    }
    XML_SetUserData(parser, &state);
    XML_SetElementHandler(parser, start, end);
    XML_SetCharacterDataHandler(parser, text);
    do {
        length = read(file, buffer, sizeof buffer);
        if (length < 0 || XML_Parse(parser, buffer, (int)length, length == 0) != XML_STATUS_OK) {
            return 2;
        }
    } while (length > 0);
    XML_ParserFree(parser);
    return state.sum > 0 ? 0 : 3;
}
