/* places.h: a set of places that finds the next one and the one before at once.
 *
 *     level 2   ...1...        a bit for each word of level 1 that is not 0
 *     level 1   ..1..1..       a bit for each word of level 0 that is not 0
 *     level 0   .1...1.1       a bit for each place
 */
#ifndef HW_PLACES_H
#define HW_PLACES_H

#include <stdint.h>
#include <string.h>

#include "kept.h"

enum { PLACE_LEVELS = 3 };

#define NO_PLACE UINT32_MAX

struct places {
    uint64_t *level[PLACE_LEVELS];
    size_t words[PLACE_LEVELS];
    uint32_t highest; /* place that was ever in it */
    size_t bytes;
};

/* Opens an empty set of places below `count`; 0 without memory. */
static int places_open(struct places *m, uint32_t count)
{
    size_t all = 0;
    for (uint32_t k = 0; k < PLACE_LEVELS; k++) {
        count = count / 64u + 1u;
        m->words[k] = count;
        all += count;
    }
    m->bytes = all * sizeof *m->level[0];
    m->level[0] = hw_take_kept(HW_KEPT_PLACES, m->bytes);
    if (m->level[0] == NULL) {
        return 0;
    }
    for (uint32_t k = 1; k < PLACE_LEVELS; k++) {
        m->level[k] = m->level[k - 1u] + m->words[k - 1u];
    }
    return 1;
}

static void places_close(struct places *m)
{
    if (m->level[0] == NULL) {
        return;
    }
    uint32_t word = m->highest;
    for (uint32_t k = 0; k < PLACE_LEVELS; k++) {
        word /= 64u;
        memset(m->level[k], 0, (word + 1u) * sizeof *m->level[k]);
    }
    hw_give_back(HW_KEPT_PLACES, m->level[0], m->bytes, m->highest / 8u);
}

static inline int has_place(const struct places *m, uint32_t i)
{
    return (m->level[0][i / 64u] >> i % 64u & 1u) != 0;
}

static inline void add_place(struct places *m, uint32_t i)
{
    m->highest = i > m->highest ? i : m->highest;
    for (uint32_t k = 0; k < PLACE_LEVELS; k++, i /= 64u) {
        uint64_t *word = &m->level[k][i / 64u];
        const uint64_t before = *word;
        *word = before | (uint64_t)1 << i % 64u;
        if (before) {
            return;
        }
    }
}

static inline void remove_place(struct places *m, uint32_t i)
{
    for (uint32_t k = 0; k < PLACE_LEVELS; k++, i /= 64u) {
        uint64_t *word = &m->level[k][i / 64u];
        *word &= ~((uint64_t)1 << i % 64u);
        if (*word) {
            return;
        }
    }
}

static inline uint32_t lowest_of(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

static inline uint32_t highest_of(uint64_t word)
{
    return 63u - (uint32_t)__builtin_clzll(word);
}

/* The first place from i on; NO_PLACE, or one that is not below `end`, where there is none that is. O(1), and a step
 * for every 262,144 places. */
static inline uint32_t place_from(const struct places *m, uint32_t i, uint32_t end)
{
    const uint32_t words = end / (64u * 64u * 64u) + 1u;
    uint32_t k = 0;
    for (; k < PLACE_LEVELS; k++) {
        const uint64_t ahead = m->level[k][i / 64u] >> i % 64u;
        if (ahead) {
            i += lowest_of(ahead);
            break;
        }
        i = i / 64u + 1u;
    }
    if (k == PLACE_LEVELS) {
        while (i < words && m->level[k - 1u][i] == 0) {
            i++;
        }
        if (i >= words) {
            return NO_PLACE;
        }
    }
    while (k-- > 0) {
        i = 64u * i + lowest_of(m->level[k][i]);
    }
    return i;
}

/* The last place before i; NO_PLACE where there is none. */
static inline uint32_t place_before(const struct places *m, uint32_t i)
{
    uint32_t k = 0;
    for (; k < PLACE_LEVELS; k++) {
        const uint64_t behind = m->level[k][i / 64u] & (((uint64_t)1 << i % 64u) - 1u);
        if (behind) {
            i = i / 64u * 64u + highest_of(behind);
            break;
        }
        i /= 64u;
    }
    if (k == PLACE_LEVELS) {
        while (i > 0 && m->level[k - 1u][i - 1u] == 0) {
            i--;
        }
        if (i-- == 0) {
            return NO_PLACE;
        }
    }
    while (k-- > 0) {
        i = 64u * i + highest_of(m->level[k][i]);
    }
    return i;
}

#endif
