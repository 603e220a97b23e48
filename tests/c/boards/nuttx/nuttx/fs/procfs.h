/* As in include/nuttx/fs/procfs.h: what /proc/meminfo lists, and NSH's `free` prints. */
#pragma once

#include <nuttx/mm/mm.h>

struct procfs_meminfo_entry_s {
    const char *name;
    struct mm_heap_s *heap;
    struct procfs_meminfo_entry_s *next;
};

void procfs_register_meminfo(struct procfs_meminfo_entry_s *entry);
void procfs_unregister_meminfo(struct procfs_meminfo_entry_s *entry);
