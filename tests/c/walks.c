/* walks.c: what it costs to look at a heap whose quick lists are long.
 *
 *     walks POLICY ARENA_BYTES BLOCKS SEED
 *
 * Compile with HW_EXPLORE. Of BLOCKS objects of one size every second one is freed, so that it waits in a list. Prints
 * the accesses of the statistics, then the accesses of a flush and a walk over all blocks; how many blocks this walk
 * finds used, and how many cached. Exits with 4 if the heap is damaged.
 */
#include "random_program.h"

int main(int argc, char **argv)
{
    const int blocks = read_arguments(argc, argv);
    if (blocks < 0) {
        return 2;
    }
    struct hw_heap heap = {.base = aligned_alloc(4096, arena_bytes)};
    void **objects = calloc((size_t)blocks, sizeof *objects);
    if (heap.base == NULL || objects == NULL || !heap_init(&policy, &heap, arena_bytes)) {
        return 3;
    }
    for (int i = 0; i < blocks; i++) {
        objects[i] = hw_malloc(&policy, &heap, 40);
    }
    for (int i = 0; i < blocks; i += 2) {
        hw_free(&policy, &heap, objects[i]);
    }
    uint64_t before = heap.reads + heap.writes;
    (void)hw_statistics(&policy, &heap);
    const uint64_t statistics = heap.reads + heap.writes - before;
    before += statistics;
    hw_flush(&policy, &heap);
    unsigned used = 0, cached = 0;
    struct hw_block block = {0, 0, 0, 0, 0};
    while (hw_next_block(&policy, &heap, &block)) {
        used += block.state == HW_BLOCK_USED;
        cached += block.state == HW_BLOCK_CACHED;
    }
    const uint64_t walk = heap.reads + heap.writes - before;
    printf("%llu %llu %u %u\n", (unsigned long long)statistics, (unsigned long long)walk, used, cached);
    return hw_check(&policy, &heap) ? 4 : 0;
}
