/* NuttX's critical section for the test of the platform nuttx: it aborts where it is left as it was not entered, and
 * fails where it was not entered for every call, or a heap is not in /proc/meminfo as long as it exists. */
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <nuttx/fs/procfs.h>
#include <nuttx/irq.h>

static unsigned depth, entered;

irqstate_t enter_critical_section(void)
{
    entered++;
    return depth++;
}

void leave_critical_section(irqstate_t flags)
{
    if (--depth != flags) {
        abort();
    }
}

static struct procfs_meminfo_entry_s *registered;
static unsigned listed;

void procfs_register_meminfo(struct procfs_meminfo_entry_s *entry)
{
    if (entry->name == NULL || mm_mallinfo(entry->heap).arena == 0) {
        abort();
    }
    entry->next = registered;
    registered = entry;
    listed++;
}

void procfs_unregister_meminfo(struct procfs_meminfo_entry_s *entry)
{
    struct procfs_meminfo_entry_s **at = &registered;
    while (*at != entry) {
        at = &(*at)->next;
    }
    *at = entry->next;
}

__attribute__((destructor)) static void check(void)
{
    if (depth != 0 || entered < 40000 || listed == 0 || registered != NULL) {
        _exit(2);
    }
}
