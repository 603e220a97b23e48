/* The bins of app_heap.c, for all sizes.
 *
 * Bounds: {{ bounds }}.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define {{ unchecked }}
{% if threads != "none" %}
#define APP_LOCK(heap) ((void)(heap), (uintptr_t)0)
#define APP_UNLOCK(heap, key) ((void)(heap), (void)(key))
{% endif %}
#include "app_heap.c"

enum { MOST_TOLD = 16 };

static const char *told[MOST_TOLD];

static void fail(uint32_t size, const char *what)
{
    for (unsigned i = 0; i < MOST_TOLD; i++) {
        if (told[i] == what) {
            return;
        }
        if (told[i] == NULL) {
            told[i] = what;
            printf("failed %u %s\n", (unsigned)size, what);
            return;
        }
    }
}

#define prove(condition, size, what) ((condition) ? (void)0 : fail(size, what))

/* The smallest block of each bin; those from `known` on have not been seen. */
static uint32_t least_of[{{ "APP_BINS" }} + 1u], known;

/* Each bin holds sizes that follow each other: the first of a bin comes once, and in order. */
static void check_blocks(void)
{
    uint32_t before = 0;
    for (uint32_t size = {{ least }}u;; size += {{ step }}u) {
        const uint32_t bin = app_bin_of(size);
        if (size == {{ least }}u || bin != before) {
            prove(bin < APP_BINS, size, "bins: every block has one");
            prove(size == {{ least }}u || bin > before, size, "bins: larger blocks have no lower one");
            for (; known <= bin && bin < APP_BINS; known++) {
                least_of[known] = size;
            }
            before = bin;
        }
        if (size == {{ last }}u) {
            break;
        }
    }
    for (; known <= APP_BINS; known++) {
        least_of[known] = UINT32_MAX;
    }
}
{% if searches %}

/* Where a search of all bins begins, every block is large enough; and a bin ahead holds at least one that is not. */
static void check_searches(void)
{
    for (uint32_t size = {{ least }}u;; size += {{ step }}u) {
        const uint32_t bin = app_bin_above(size), own = app_bin_of(size);
        prove(bin >= own && (bin <= own + 1u{{ " || " + "bin == APP_BINS" if bounded else "" }}), size, "bins: a search begins in the size's own or the next");
        {% if bounded %}
        prove(bin >= APP_BINS - 1u || least_of[bin] >= size, size, "bins: what a search finds is large enough");
        {% else %}
        prove(bin >= APP_BINS || least_of[bin] >= size, size, "bins: what a search finds is large enough");
        {% endif %}
        prove(bin == own || bin >= APP_BINS || least_of[own] < size, size, "bins: no bin of blocks that are large enough is passed");
        if (size == {{ last }}u) {
            break;
        }
    }
}
{% endif %}
{% if sized %}

/* A request's block holds it, and is the smallest that does. */
static void check_requests(void)
{
    for (uint32_t n = 0; n <= {{ most }}u; n++) {
        const uint32_t size = app_block_size_for(n), need = n + {{ overhead }}u;
        {% if powers %}
        prove(size >= need && (size == {{ least }}u || size / 2u < need), n, "bins: a request's block is the smallest that holds it");
        {% else %}
        prove(size >= need && (size == {{ least }}u || size - need < {{ step }}u), n, "bins: a request's block is the smallest that holds it");
        {% endif %}
        prove(size % {{ step }}u == 0 && size >= {{ least }}u, n, "bins: a request's block is one that there can be");
    }
}
{% endif %}
{% if summary %}

/* The bitmap's words lie in front of the lists, and its summary has a bit for each. */
static void check_bitmap(void)
{
    for (uint32_t bin = 0; bin < APP_BINS; bin++) {
        const uint32_t at = app_mark_at(bin);
        prove(at >= APP_BITMAP_AT && at - APP_BITMAP_AT == bin / 32u * 4u && bin / 32u < 32u, bin, "bins: the bitmap has a mark for each");
        prove(at + 4u <= APP_LISTS_AT || at >= APP_LISTS_AT + APP_BINS * APP_LIST_STRIDE, bin, "bins: bitmap and lists lie apart");
        prove(at + 4u <= APP_START && APP_LISTS_AT + (bin + 1u) * APP_LIST_STRIDE <= APP_START, bin, "bins: all lies in the control data");
    }
}
{% endif %}

int main(void)
{
    check_blocks();
{% if searches %}
    check_searches();
{% endif %}
{% if sized %}
    check_requests();
{% endif %}
{% if summary %}
    check_bitmap();
{% endif %}
    puts("done");
    return 0;
}
