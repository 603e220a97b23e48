/* huffman.c: compresses a text with Huffman's codes and takes it apart again, as a node would before it sends readings.
 *
 *     huffman FILE
 *
 * A heap node for each letter and each pair of subtrees, a string for each code, and the packed text. Reads and writes
 * without stdio, whose buffers are no part of the algorithm.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 65536

struct node {
    struct node *next; /* in the list of trees, rarest first */
    struct node *zero, *one;
    unsigned long count;
    unsigned char letter;
};

static void *need(void *memory)
{
    if (memory == NULL) {
        _exit(1);
    }
    return memory;
}

static void insert(struct node **list, struct node *node)
{
    while (*list && (*list)->count <= node->count) {
        list = &(*list)->next;
    }
    node->next = *list;
    *list = node;
}

static struct node *leaf(unsigned char letter, unsigned long count)
{
    struct node *node = need(calloc(1, sizeof *node));
    node->letter = letter;
    node->count = count;
    return node;
}

static struct node *build(const unsigned char *text, size_t length)
{
    unsigned long counts[256] = {0};
    struct node *list = NULL;
    for (size_t i = 0; i < length; i++) {
        counts[text[i]]++;
    }
    for (int letter = 0; letter < 256; letter++) {
        if (counts[letter]) {
            insert(&list, leaf((unsigned char)letter, counts[letter]));
        }
    }
    while (list && list->next) {
        struct node *pair = leaf(0, list->count + list->next->count);
        pair->zero = list;
        pair->one = list->next;
        list = list->next->next;
        insert(&list, pair);
    }
    return list;
}

/* Each code is a string of its own; those of inner nodes go away once their children have theirs. */
static void name(const struct node *node, char *code, char **codes)
{
    if (node->zero == NULL) {
        codes[node->letter] = code;
        return;
    }
    const size_t length = strlen(code);
    for (int bit = 0; bit < 2; bit++) {
        char *longer = need(malloc(length + 2));
        memcpy(longer, code, length);
        longer[length] = bit ? '1' : '0';
        longer[length + 1] = 0;
        name(bit ? node->one : node->zero, longer, codes);
    }
    free(code);
}

static void release(struct node *node)
{
    if (node) {
        release(node->zero);
        release(node->one);
        free(node);
    }
}

/* Packs the text into a buffer that grows as needed; returns the number of bits. */
static size_t pack(const unsigned char *text, size_t length, char **codes, unsigned char **packed)
{
    size_t bits = 0, room = 64;
    unsigned char *out = need(calloc(room, 1));
    for (size_t i = 0; i < length; i++) {
        for (const char *bit = codes[text[i]]; *bit; bit++, bits++) {
            if (bits / 8 == room) {
                out = need(realloc(out, 2 * room));
                memset(out + room, 0, room);
                room *= 2;
            }
            out[bits / 8] |= (unsigned char)((*bit == '1') << bits % 8);
        }
    }
    *packed = out;
    return bits;
}

static void check(const unsigned char *text, const struct node *root, const unsigned char *packed, size_t bits)
{
    const struct node *node = root;
    for (size_t bit = 0; bit < bits; bit++) {
        node = packed[bit / 8] >> bit % 8 & 1 ? node->one : node->zero;
        if (node->zero == NULL) {
            if (node->letter != *text++) {
                _exit(2);
            }
            node = root;
        }
    }
}

int main(int argc, char **argv)
{
    static unsigned char text[MOST];
    const int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    const ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);
    if (length < 2) {
        return 1;
    }
    for (ssize_t at = 0; at < length; at += 4096) { /* a message at a time */
        const size_t part = (size_t)(length - at < 4096 ? length - at : 4096);
        char *codes[256] = {0};
        struct node *root = build(text + at, part);
        name(root, need(strdup("")), codes);
        unsigned char *packed;
        const size_t bits = pack(text + at, part, codes, &packed);
        check(text + at, root, packed, bits);
        free(packed);
        for (int letter = 0; letter < 256; letter++) {
            free(codes[letter]);
        }
        release(root);
    }
    return 0;
}
