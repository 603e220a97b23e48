/* A program of FreeRTOS that is recorded: three tasks make packets of many sizes, a fourth keeps some for a while and
 * frees them. It prints what its ring has as it goes on, where it has one, and in the end what the kernel counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#include "drain.h"
#include "timed_calls.h"

enum { MAKERS = 3, PACKETS = 600, KEPT = 40, DRAIN_EVERY = 60 };

static QueueHandle_t queue;

void vApplicationMallocFailedHook(void)
{
    puts("no memory");
    exit(1);
}

static void make(void *number)
{
    uint32_t state = (uint32_t)(uintptr_t)number * 2654435761u + 1u;
    for (unsigned i = 0; i < PACKETS; i++) {
        state = state * 1664525u + 1013904223u;
        const size_t size = state >> 28 ? 24u + (state >> 20) % 300u : 1500u;
        uint8_t *packet = i % 16u ? pvPortMalloc(size) : pvPortCalloc(1, size);
        memset(packet, (int)i, size);
        xQueueSend(queue, &packet, portMAX_DELAY);
    }
    vTaskDelete(NULL);
}

static void consume(void *unused)
{
    uint8_t *kept[KEPT] = {NULL};
    uint32_t state = 7;
    (void)unused;
    for (unsigned i = 0; i < MAKERS * PACKETS; i++) {
        uint8_t *packet;
        xQueueReceive(queue, &packet, portMAX_DELAY);
        state = state * 1664525u + 1013904223u;
        vPortFree(kept[(state >> 16) % KEPT]);
        kept[(state >> 16) % KEPT] = packet;
        if (i % DRAIN_EVERY == 0) {
            drain();
        }
    }
    vTaskDelay(100); /* the idle task frees what belonged to the makers */
    drain();
    HeapStats_t told;
    vPortGetHeapStats(&told);
    printf("mallocs %u frees %u least %u\n", (unsigned)told.xNumberOfSuccessfulAllocations,
           (unsigned)told.xNumberOfSuccessfulFrees, (unsigned)told.xMinimumEverFreeBytesRemaining);
    print_timed();
    exit(0);
}

int main(void)
{
    queue = xQueueCreate(8, sizeof(uint8_t *));
    for (uintptr_t i = 0; i < MAKERS; i++) {
        xTaskCreate(make, "make", configMINIMAL_STACK_SIZE, (void *)(i + 1), 1, NULL);
    }
    xTaskCreate(consume, "consume", 4 * configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    vTaskStartScheduler();
    return 1;
}
