/* What a heap manager of NuttX has to define, as in include/nuttx/mm/mm.h and mm/tlsf/mm_tlsf.c; FAR is nothing on
 * these machines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mm_heap_s;
struct malltask;
struct mm_memdump_s;

#ifdef NUTTX_12_12 /* until then */
struct mm_heap_s *mm_initialize(const char *name, void *heap_start, size_t heap_size);
#else
#define KRN_HEAP NULL

struct mm_heap_config_s {
    struct mm_heap_s *heap;
    const char *name;
    void *start;
    size_t size;
    bool nokasan;
};

struct mm_heap_s *mm_initialize_heap(const struct mm_heap_config_s *config);

static inline struct mm_heap_s *mm_initialize(const char *name, void *heapstart, size_t heapsize)
{
    const struct mm_heap_config_s config = {NULL, name, heapstart, heapsize, false};
    return mm_initialize_heap(&config);
}
#endif
void mm_addregion(struct mm_heap_s *heap, void *heapstart, size_t heapsize);
void mm_uninitialize(struct mm_heap_s *heap);
void *mm_malloc(struct mm_heap_s *heap, size_t size);
size_t mm_malloc_size(struct mm_heap_s *heap, void *mem);
void mm_free(struct mm_heap_s *heap, void *mem);
void *mm_realloc(struct mm_heap_s *heap, void *oldmem, size_t size);
void *mm_calloc(struct mm_heap_s *heap, size_t n, size_t elem_size);
void *mm_zalloc(struct mm_heap_s *heap, size_t size);
void *mm_memalign(struct mm_heap_s *heap, size_t alignment, size_t size);
bool mm_heapmember(struct mm_heap_s *heap, void *mem);
void *mm_brkaddr(struct mm_heap_s *heap, int region);
void mm_extend(struct mm_heap_s *heap, void *mem, size_t size, int region);
size_t mm_heapfree(struct mm_heap_s *heap);
size_t mm_heapfree_largest(struct mm_heap_s *heap);
struct mallinfo mm_mallinfo(struct mm_heap_s *heap);
struct mallinfo_task mm_mallinfo_task(struct mm_heap_s *heap, const struct malltask *task);
void mm_memdump(struct mm_heap_s *heap, const struct mm_memdump_s *dump);
void mm_checkcorruption(struct mm_heap_s *heap);
