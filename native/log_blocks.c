/* Live blocks by address, in short sorted lists. */
#include "logs.h"

#include "types.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 128 };

struct list {
    uint32_t count;
    uint64_t address[LONGEST], block[LONGEST], put[LONGEST];
};

struct hw_blocks {
    struct list **lists; /* only the first may be empty, when it is the only one */
    uint64_t *begins;    /* no address of a list is below its begin, none from the next one's on; the first is 0 */
    size_t count, room;
    uint64_t blocks, puts;
};

static int add_list(struct hw_blocks *const blocks, const size_t at, const uint64_t begin)
{
    if (blocks->count == blocks->room) {
        const size_t room = blocks->room * 2;
        struct list **const lists = realloc(blocks->lists, room * sizeof *lists);
        blocks->lists = lists != NULL ? lists : blocks->lists;
        uint64_t *const begins = realloc(blocks->begins, room * sizeof *begins);
        blocks->begins = begins != NULL ? begins : blocks->begins;
        if (lists == NULL || begins == NULL) {
            return HW_NO_MEMORY;
        }
        blocks->room = room;
    }
    struct list *const list = malloc(sizeof *list);
    if (list == NULL) {
        return HW_NO_MEMORY;
    }
    list->count = 0;
    memmove(blocks->lists + at + 1, blocks->lists + at, (blocks->count - at) * sizeof *blocks->lists);
    memmove(blocks->begins + at + 1, blocks->begins + at, (blocks->count - at) * sizeof *blocks->begins);
    blocks->lists[at] = list;
    blocks->begins[at] = begin;
    blocks->count++;
    return 0;
}

struct hw_blocks *hw_blocks_new(void)
{
    struct hw_blocks *const blocks = calloc(1, sizeof *blocks);
    if (blocks == NULL) {
        return NULL;
    }
    blocks->room = 1;
    blocks->lists = malloc(sizeof *blocks->lists);
    blocks->begins = malloc(sizeof *blocks->begins);
    if (blocks->lists == NULL || blocks->begins == NULL || add_list(blocks, 0, 0) != 0) {
        hw_blocks_delete(blocks);
        return NULL;
    }
    return blocks;
}

void hw_blocks_delete(struct hw_blocks *const blocks)
{
    for (size_t i = 0; blocks != NULL && i < blocks->count; i++) {
        free(blocks->lists[i]);
    }
    if (blocks != NULL) {
        free(blocks->lists);
        free(blocks->begins);
        free(blocks);
    }
}

uint64_t hw_blocks_count(const struct hw_blocks *const blocks)
{
    return blocks->blocks;
}

/* The last of `count` sorted numbers that is at most `number`; the first is. */
static size_t last_up_to(const uint64_t *const numbers, const size_t count, const uint64_t number)
{
    size_t at = 0;
    for (size_t rest = count; rest > 1;) {
        const size_t half = rest / 2;
        at = numbers[at + half] <= number ? at + half : at;
        rest -= half;
    }
    return at;
}

/* How many addresses of a list are below one. */
static uint32_t below(const struct list *const list, const uint64_t address)
{
    if (list->count == 0 || list->address[0] >= address) {
        return 0;
    }
    return (uint32_t)last_up_to(list->address, list->count, address - 1) + 1;
}

int hw_blocks_find(const struct hw_blocks *const blocks, const uint64_t address, uint64_t *const block)
{
    const struct list *const list = blocks->lists[last_up_to(blocks->begins, blocks->count, address)];
    const uint32_t at = below(list, address);
    if (at == list->count || list->address[at] != address) {
        return 0;
    }
    *block = list->block[at];
    return 1;
}

static void drop_list(struct hw_blocks *const blocks, const size_t at)
{
    free(blocks->lists[at]);
    blocks->count--;
    memmove(blocks->lists + at, blocks->lists + at + 1, (blocks->count - at) * sizeof *blocks->lists);
    memmove(blocks->begins + at, blocks->begins + at + 1, (blocks->count - at) * sizeof *blocks->begins);
    blocks->begins[0] = 0;
}

/* Moves what stands from `from` on to `to`. */
static void shift(struct list *const list, const uint32_t from, const uint32_t to)
{
    const size_t bytes = (list->count - from) * sizeof *list->address;
    memmove(list->address + to, list->address + from, bytes);
    memmove(list->block + to, list->block + from, bytes);
    memmove(list->put + to, list->put + from, bytes);
}

int hw_blocks_take(struct hw_blocks *const blocks, const uint64_t address, uint64_t *const block)
{
    const size_t number = last_up_to(blocks->begins, blocks->count, address);
    struct list *const list = blocks->lists[number];
    const uint32_t at = below(list, address);
    if (at == list->count || list->address[at] != address) {
        return 0;
    }
    *block = list->block[at];
    shift(list, at + 1, at);
    list->count--;
    blocks->blocks--;
    if (list->count == 0 && blocks->count > 1) {
        drop_list(blocks, number);
    }
    return 1;
}

/* Moves the upper half of a full list to a new one. */
static int halve(struct hw_blocks *const blocks, const size_t number)
{
    struct list *const list = blocks->lists[number];
    const uint32_t half = list->count / 2;
    if (add_list(blocks, number + 1, list->address[half]) != 0) {
        return HW_NO_MEMORY;
    }
    struct list *const upper = blocks->lists[number + 1];
    upper->count = list->count - half;
    memcpy(upper->address, list->address + half, upper->count * sizeof *upper->address);
    memcpy(upper->block, list->block + half, upper->count * sizeof *upper->block);
    memcpy(upper->put, list->put + half, upper->count * sizeof *upper->put);
    list->count = half;
    return 0;
}

int hw_blocks_put(struct hw_blocks *const blocks, const uint64_t address, const uint64_t block)
{
    size_t number = last_up_to(blocks->begins, blocks->count, address);
    if (blocks->lists[number]->count == LONGEST) {
        if (halve(blocks, number) != 0) {
            return HW_NO_MEMORY;
        }
        number += address >= blocks->begins[number + 1];
    }
    struct list *const list = blocks->lists[number];
    const uint32_t at = below(list, address);
    if (at == list->count || list->address[at] != address) {
        shift(list, at, at + 1);
        list->count++;
        blocks->blocks++;
    }
    list->address[at] = address;
    list->block[at] = block;
    list->put[at] = blocks->puts++;
    return 0;
}

static uint64_t size_of(const uint64_t block)
{
    return block == HW_LEFT_OUT ? 0 : block & UINT32_MAX;
}

int hw_blocks_overlapped(const struct hw_blocks *const blocks, const uint64_t address, const uint64_t size,
                         uint64_t *const first)
{
    size_t number = last_up_to(blocks->begins, blocks->count, address);
    const struct list *list = blocks->lists[number];
    uint32_t at = below(list, address);
    if (size != 0 && (at != 0 || number != 0)) {
        const struct list *const lower = at != 0 ? list : blocks->lists[number - 1];
        const uint32_t before = at != 0 ? at - 1 : lower->count - 1;
        if (lower->count != 0 && size_of(lower->block[before]) > address - lower->address[before]) {
            *first = lower->address[before];
            return 1;
        }
    }
    if (at == list->count && number + 1 < blocks->count) {
        list = blocks->lists[number + 1];
        at = 0;
    }
    if (at == list->count || list->address[at] - address >= (size != 0 ? size : 1)) {
        return 0;
    }
    *first = list->address[at];
    return 1;
}

void hw_blocks_list(const struct hw_blocks *const blocks, uint64_t *address, uint64_t *block, uint64_t *put)
{
    for (size_t i = 0; i < blocks->count; i++) {
        const struct list *const list = blocks->lists[i];
        memcpy(address, list->address, list->count * sizeof *address);
        memcpy(block, list->block, list->count * sizeof *block);
        memcpy(put, list->put, list->count * sizeof *put);
        address += list->count;
        block += list->count;
        put += list->count;
    }
}
