/* hooks.c: what an application gives the kernel. */
#include <stdio.h>
#include <stdlib.h>

#include "FreeRTOS.h"
#include "task.h"

static unsigned failed;

void vApplicationMallocFailedHook(void)
{
    failed++;
}

/* The test's end: its three requests that cannot be served have called the hook twice, as calloc's product is refused
 * before. */
void app_freertos_done(int failures)
{
    printf("%d failures, %u calls of the hook\n", failures, failed);
    exit(failures != 0 || failed != 2);
}
