/* Calls on addresses become calls on objects, the rows of a trace, as far as that needs only the live blocks. */
#include "logs.h"

#include "types.h"

enum { LATEST_BITS = 62, SIZE_BITS = 32 };

#define LARGEST (UINT64_C(1) << 31)

static uint64_t larger(const uint64_t a, const uint64_t b)
{
    return a > b ? a : b;
}

static void add_row(struct hw_log_state *const state, const uint8_t op, const uint64_t number, const uint64_t size,
                    const uint64_t more)
{
    const uint64_t row = state->rows++;
    const int64_t latest = INT64_C(1) << LATEST_BITS;
    state->bytes += more;
    state->peak_bytes = larger(state->peak_bytes, state->bytes);
    if (state->ended_bytes != 0) {
        state->peak_without_ending = larger(state->peak_without_ending, state->bytes + state->ended_bytes);
    }
    state->to->op[row] = op;
    state->to->id[row] = (uint32_t)number;
    state->to->size[row] = (uint32_t)size;
    state->to->now_ns[row] = state->now_ns < latest ? state->now_ns : latest;
}

static void add_free(struct hw_log_state *const state, const uint64_t block)
{
    state->objects--;
    add_row(state, HW_OP_FREE, block >> SIZE_BITS, 0, 0 - (block & UINT32_MAX));
}

static void change_align(struct hw_log_state *const state, const uint32_t align)
{
    const uint64_t at = state->aligns++;
    state->to->align_row[at] = state->first_row + state->rows;
    state->to->align[at] = align;
}

static uint32_t power_up_to(const uint32_t align)
{
    uint32_t power = 1;
    while (power < align) {
        power *= 2;
    }
    return power;
}

static int contains(const struct hw_blocks *const blocks, const uint64_t address)
{
    uint64_t block = 0;
    return hw_blocks_count(blocks) != 0 && hw_blocks_find(blocks, address, &block);
}

/* Whether a block could lie there at once, but for one that begins there where blocks may overlap. */
static int is_free(struct hw_log_state *const state, const uint64_t address, const uint64_t size)
{
    uint64_t other = 0;
    return address != 0 && size <= LARGEST && !contains(state->ended, address) &&
           (state->overlap || !hw_blocks_overlapped(state->live, address, size != 0 ? size : 1, &other));
}

/* Ends a block that begins at an address, whose free the log lacks. */
static int end_unseen(struct hw_log_state *const state, const uint64_t address)
{
    uint64_t block = 0;
    if (!state->overlap || !hw_blocks_find(state->live, address, &block)) {
        return 1;
    }
    if (block == HW_LEFT_OUT) {
        return 0;
    }
    (void)hw_blocks_take(state->live, address, &block);
    state->unseen_frees++;
    add_free(state, block);
    return 1;
}

static int allocate(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    if (event->align > LARGEST || !is_free(state, event->address, event->size) || !end_unseen(state, event->address)) {
        return 0;
    }
    if (hw_blocks_put(state->live, event->address, state->next_number << SIZE_BITS | event->size) != 0) {
        return 0;
    }
    if (event->align != 0) {
        change_align(state, power_up_to(event->align));
    }
    state->objects++;
    state->peak_objects = larger(state->peak_objects, state->objects);
    add_row(state, event->kind == HW_LOG_CALLOC ? HW_OP_CALLOC : HW_OP_MALLOC, state->next_number, event->size,
            event->size);
    if (event->align != 0) {
        change_align(state, 0);
    }
    state->next_number++;
    state->requests++;
    state->requested_bytes += event->size;
    return 1;
}

static int release(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    uint64_t block = 0;
    if (event->address == 0) {
        return 1;
    }
    if (hw_blocks_take(state->live, event->address, &block)) {
        if (block != HW_LEFT_OUT) {
            add_free(state, block);
        }
        return 1;
    }
    if (contains(state->ended, event->address)) {
        return 0;
    }
    state->unknown_frees++;
    return 1;
}

/* Puts a block that was taken from its address at the new one. */
static int move(struct hw_log_state *const state, const uint64_t block, const struct hw_log_event *const event)
{
    if (block == HW_LEFT_OUT || !is_free(state, event->address, event->size) || !end_unseen(state, event->address)) {
        return 0;
    }
    if (hw_blocks_put(state->live, event->address, block >> SIZE_BITS << SIZE_BITS | event->size) != 0) {
        return 0;
    }
    add_row(state, HW_OP_REALLOC, block >> SIZE_BITS, event->size, event->size - (block & UINT32_MAX));
    return 1;
}

static int resize(struct hw_log_state *const state, const uint64_t old, const struct hw_log_event *const event)
{
    uint64_t block = 0;
    if (old == 0) {
        return event->address != 0 && allocate(state, event);
    }
    if (event->address == 0 || event->size > LARGEST || !hw_blocks_find(state->live, old, &block) ||
        block == HW_LEFT_OUT) {
        return 0;
    }
    (void)hw_blocks_take(state->live, old, &block);
    if (move(state, block, event)) {
        return 1;
    }
    (void)hw_blocks_put(state->live, old, block); /* Python takes it again at once, so its age does not matter */
    return 0;
}

static int resize_old(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    if (!state->has_old) {
        return 1;
    }
    if (!resize(state, state->old, event)) {
        return 0;
    }
    state->has_old = 0;
    return 1;
}

static int begin(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    struct hw_log_pending *const pending = &state->pending[event->thread];
    pending->old = event->address;
    pending->now_ns = state->now_ns;
    pending->state = hw_blocks_take(state->live, event->address, &pending->block) ? 2 : 1;
    return 1;
}

static int end(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    struct hw_log_pending *const pending = &state->pending[event->thread];
    const uint64_t old = pending->state == 0 ? 0 : pending->old;
    const int done = pending->state == 2 ? event->address != 0 && move(state, pending->block, event)
                                         : old == 0 && event->address != 0 && allocate(state, event);
    pending->state = done ? 0 : pending->state;
    return done;
}

static int nothing(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    state->skipped += event->kind == HW_LOG_SKIPPED;
    return 1;
}

static int keep_old(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    state->old = event->address;
    state->has_old = 1;
    return 1;
}

static int remembered(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    return resize(state, event->old, event);
}

static int resize_self(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    return resize(state, event->address, event);
}

static int for_python(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    (void)state;
    (void)event;
    return 0;
}

static int (*const MAKES[HW_LOG_KINDS])(struct hw_log_state *, const struct hw_log_event *) = {
    [HW_LOG_LINE] = for_python,
    [HW_LOG_NOTHING] = nothing,
    [HW_LOG_SKIPPED] = nothing,
    [HW_LOG_MALLOC] = allocate,
    [HW_LOG_CALLOC] = allocate,
    [HW_LOG_FREE] = release,
    [HW_LOG_FAIL] = for_python,
    [HW_LOG_CANCEL] = for_python,
    [HW_LOG_KIND] = for_python,
    [HW_LOG_OF_KIND] = for_python,
    [HW_LOG_NEWEST] = for_python,
    [HW_LOG_CALL] = for_python,
    [HW_LOG_RETURN] = for_python,
    [HW_LOG_RESIZE] = remembered,
    [HW_LOG_OLD] = keep_old,
    [HW_LOG_RESIZE_SELF] = resize_self,
    [HW_LOG_RESIZE_OLD] = resize_old,
    [HW_LOG_BEGIN] = begin,
    [HW_LOG_END] = end,
};

/* What an event says of the next calls. */
static void set(struct hw_log_state *const state, const struct hw_log_event *const event)
{
    if (event->now_ns != INT64_MIN) {
        state->now_ns = event->now_ns;
    }
    if (event->thread != HW_LOG_AS_BEFORE && event->thread != state->thread) {
        state->thread = event->thread;
        state->to->thread_row[state->threads] = state->first_row + state->rows;
        state->to->thread[state->threads++] = event->thread;
    }
    if (event->site != HW_LOG_AS_BEFORE && event->site != state->site) {
        state->site = event->site;
        state->to->site_row[state->sites] = state->first_row + state->rows;
        state->to->site[state->sites++] = event->site;
    }
}

uint32_t hw_log_apply(struct hw_log_state *const state, const struct hw_log_event *const events,
                      const uint32_t *const which, const uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct hw_log_event *const event = &events[which != NULL ? which[i] : i];
        set(state, event);
        if (state->rows + 2 > state->room || !MAKES[event->kind](state, event)) {
            return i;
        }
    }
    return count;
}
