/* The names in a log, numbered in the order in which they come. */
#ifndef HW_LOG_NAMES_H
#define HW_LOG_NAMES_H

#include "logs.h"

#include <stdlib.h>
#include <string.h>

struct hw_names {
    char *text;
    size_t *begins; /* one more than names */
    uint32_t *table;
    size_t text_room;
    uint32_t count, room; /* the table has twice the room */
};

static inline uint64_t hash_name(const char *const name, const size_t length)
{
    uint64_t hash = length * UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001B3);
        hash ^= hash >> 29;
    }
    return hash ^ hash >> 32;
}

static inline int is_name(const struct hw_names *const names, const uint32_t number, const char *const name,
                          const size_t length)
{
    const size_t begin = names->begins[number];
    return names->begins[number + 1] - begin == length && memcmp(names->text + begin, name, length) == 0;
}

/* The place of a name in the table, empty where it is not there. */
static inline uint32_t *place_of_name(const struct hw_names *const names, const char *const name, const size_t length)
{
    const uint32_t mask = names->room * 2 - 1;
    uint32_t at = (uint32_t)hash_name(name, length) & mask;
    while (names->table[at] != HW_LOG_AS_BEFORE && !is_name(names, names->table[at], name, length)) {
        at = (at + 1) & mask;
    }
    return &names->table[at];
}

static inline int more_names(struct hw_names *const names)
{
    const uint32_t room = names->room == 0 ? 64 : names->room * 2;
    uint32_t *const table = malloc(2 * room * sizeof *table);
    size_t *const begins = realloc(names->begins, (room + 1) * sizeof *begins);
    names->begins = begins != NULL ? begins : names->begins;
    if (table == NULL || begins == NULL) {
        free(table);
        return 0;
    }
    names->begins[0] = 0;
    memset(table, 0xFF, 2 * room * sizeof *table);
    free(names->table);
    names->table = table;
    names->room = room;
    for (uint32_t i = 0; i < names->count; i++) {
        *place_of_name(names, names->text + names->begins[i], names->begins[i + 1] - names->begins[i]) = i;
    }
    return 1;
}

/* HW_LOG_AS_BEFORE if there is no memory. */
static inline uint32_t number_of_name(struct hw_names *const names, const char *const name, const size_t length)
{
    if (names->count == names->room && !more_names(names)) {
        return HW_LOG_AS_BEFORE;
    }
    uint32_t *const place = place_of_name(names, name, length);
    if (*place != HW_LOG_AS_BEFORE) {
        return *place;
    }
    const size_t end = names->begins[names->count] + length;
    if (end > names->text_room) {
        char *const text = realloc(names->text, end * 2);
        if (text == NULL) {
            return HW_LOG_AS_BEFORE;
        }
        names->text = text;
        names->text_room = end * 2;
    }
    if (length != 0) {
        memcpy(names->text + names->begins[names->count], name, length);
    }
    names->begins[names->count + 1] = end;
    *place = names->count;
    return names->count++;
}

#endif
