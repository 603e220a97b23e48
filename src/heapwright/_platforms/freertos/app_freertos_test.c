/* app_freertos_test.c: tasks and queues that allocate, and 100,000 blocks whose bytes and statistics are checked.
 *
 * main starts the scheduler, prints "app_freertos: ok" where all holds, and ends with exit code 0. On a target without
 * stdio define APP_TEST_QUIET and app_freertos_done(failures), which is then called in their place. It wants 64 KiB for
 * configTOTAL_HEAP_SIZE, and vTaskDelete and vTaskSuspendAll in the kernel.
 */
#include "app_heap.h"

#include <stdlib.h>
#include <string.h>

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#ifndef APP_TEST_QUIET
#include <stdio.h>
#define SAY(format, what) printf(format, what)
#define app_freertos_done(failures) exit((failures) != 0)
#else
#define SAY(format, what) ((void)(what))
void app_freertos_done(int failures);
#endif

enum {
    WORKERS = 4,
    BLOCKS = 25000,
    QUEUE_LENGTH = 16,
    LARGEST = 300,
    KEPT = 16,
    SENT_EVERY = 10,
    STATISTICS_EVERY = 50
};

struct packet {
    uint16_t size;
    uint8_t pattern;
    uint8_t bytes[];
};

struct app_heap *app_freertos_heap(void);

static QueueHandle_t queue;
static int failures;
static size_t least_seen = (size_t)-1, served;

static void expect(int holds, const char *what)
{
    if (!holds) {
        SAY("FAILED: %s\n", what);
        failures++;
    }
}

/* The walk and the kernel's functions must agree. */
static void check_statistics(void)
{
    HeapStats_t stats;
    vTaskSuspendAll();
    struct app_block block = {0, 0, 0, 0, 0};
    size_t used = 0, blocks = 0, smallest = (size_t)-1, largest = 0, free_bytes = 0;
    while (app_next_block(app_freertos_heap(), &block)) {
        used += block.state == APP_BLOCK_USED ? block.size : 0;
        if (block.state != APP_BLOCK_USED) {
            blocks++;
            free_bytes += block.size;
            smallest = block.size < smallest ? block.size : smallest;
            largest = block.size > largest ? block.size : largest;
        }
    }
    vPortGetHeapStats(&stats);
    static size_t all; /* used and free, of which there is always the same */
    const size_t rest = stats.xAvailableHeapSpaceInBytes - free_bytes;
    const size_t fresh = rest >= 2u * APP_ALIGNMENT ? rest : 0; /* no block has covered it yet */
    all = all ? all : used + stats.xAvailableHeapSpaceInBytes;
    expect(stats.xAvailableHeapSpaceInBytes == xPortGetFreeHeapSize(), "free bytes, both ways");
    expect(stats.xAvailableHeapSpaceInBytes + used == all, "free bytes and the walk");
    expect(rest <= stats.xAvailableHeapSpaceInBytes, "no more in free blocks than is free");
    expect(stats.xNumberOfFreeBlocks == blocks + (fresh != 0), "number of free blocks");
    expect(stats.xSizeOfSmallestFreeBlockInBytes == (fresh && fresh < smallest ? fresh : smallest),
           "smallest free block");
    expect(stats.xSizeOfLargestFreeBlockInBytes == (fresh > largest ? fresh : largest), "largest free block");
    expect(stats.xMinimumEverFreeBytesRemaining == xPortGetMinimumEverFreeHeapSize(), "least ever free, both ways");
    expect(stats.xMinimumEverFreeBytesRemaining <= least_seen, "least ever free and what was seen");
    expect(stats.xNumberOfSuccessfulAllocations - stats.xNumberOfSuccessfulFrees ==
               app_statistics(app_freertos_heap()).used_blocks,
           "calls and the walk");
    expect(stats.xNumberOfSuccessfulAllocations >= served, "calls are counted");
    expect(app_check(app_freertos_heap()) == 0, "the heap's invariants hold");
    (void)xTaskResumeAll();
}

static void note_least(void)
{
    const size_t now = xPortGetFreeHeapSize();
    vTaskSuspendAll();
    least_seen = now < least_seen ? now : least_seen;
    served++;
    (void)xTaskResumeAll();
}

static void give_back(struct packet *packet)
{
    for (unsigned k = 0; packet != NULL && k < packet->size; k++) {
        if (packet->bytes[k] != packet->pattern) {
            expect(0, "a block keeps its bytes");
            break;
        }
    }
    vPortFree(packet);
}

static struct packet *make_packet(uint32_t random)
{
    const uint16_t size = (uint16_t)((random >> 16) % LARGEST);
    struct packet *packet = pvPortMalloc(sizeof *packet + size);
    expect(packet != NULL && (uintptr_t)packet % portBYTE_ALIGNMENT == 0, "there is room for an aligned packet");
    if (packet != NULL) {
        note_least();
        packet->size = size;
        packet->pattern = (uint8_t)random;
        memset(packet->bytes, packet->pattern, size);
    }
    return packet;
}

/* Keeps some packets, and sends some to the collector. */
static void work(void *number)
{
    struct packet *kept[KEPT] = {NULL};
    uint32_t state = (uint32_t)(uintptr_t)number * 2654435761u + 1u;
    for (unsigned i = 0; i < BLOCKS; i++) {
        state = state * 1664525u + 1013904223u;
        struct packet *packet = make_packet(state);
        if (i % SENT_EVERY == 0) {
            xQueueSend(queue, &packet, portMAX_DELAY);
        } else {
            give_back(kept[(state >> 8) % KEPT]);
            kept[(state >> 8) % KEPT] = packet;
        }
    }
    for (unsigned i = 0; i < KEPT; i++) {
        give_back(kept[i]);
    }
    vTaskDelete(NULL);
}

static void test_failures(void)
{
    const size_t before = xPortGetFreeHeapSize();
    expect(pvPortMalloc(configTOTAL_HEAP_SIZE) == NULL, "more than there is is refused");
    expect(pvPortMalloc(0) == NULL, "0 bytes are refused, as by heap_4");
    expect(pvPortCalloc((size_t)-1 / 2, 4) == NULL, "a product that overflows is refused");
    uint8_t *zero = pvPortCalloc(10, 30);
    expect(zero && zero[0] == 0 && zero[299] == 0, "pvPortCalloc clears");
    vPortFree(zero);
    vPortFree(NULL);
    expect(xPortGetFreeHeapSize() == before, "all is given back");
}

static void collect(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < WORKERS * BLOCKS / SENT_EVERY; i++) {
        struct packet *packet;
        xQueueReceive(queue, &packet, portMAX_DELAY);
        give_back(packet);
        if (i % STATISTICS_EVERY == 0) {
            check_statistics();
        }
    }
    vQueueDelete(queue);
    vTaskDelay(100); /* the idle task frees what belonged to the workers */
    test_failures();
    check_statistics();
    xPortResetHeapMinimumEverFreeHeapSize();
    expect(xPortGetMinimumEverFreeHeapSize() == xPortGetFreeHeapSize(), "least ever free is reset");
    SAY("app_freertos: %s\n", failures ? "FAILED" : "ok");
    app_freertos_done(failures);
}

int main(void)
{
    expect(xPortGetFreeHeapSize() == 0, "nothing is free before the first call");
    queue = xQueueCreate(QUEUE_LENGTH, sizeof(struct packet *));
    for (uintptr_t i = 0; i < WORKERS; i++) {
        expect(xTaskCreate(work, "work", configMINIMAL_STACK_SIZE, (void *)(i + 1), 1, NULL) == pdPASS,
               "a task is made");
    }
    expect(xTaskCreate(collect, "collect", 2 * configMINIMAL_STACK_SIZE, NULL, 2, NULL) == pdPASS, "a task is made");
    vTaskStartScheduler();
    return 1;
}
