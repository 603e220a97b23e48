/* What ESP-IDF's heap_caps_base.c has. */
#pragma once
#include <stddef.h>
#include <stdint.h>
void *heap_caps_malloc_base(size_t size, uint32_t caps);
void *heap_caps_calloc_base(size_t n, size_t size, uint32_t caps);
void *heap_caps_realloc_base(void *ptr, size_t size, uint32_t caps);
void *heap_caps_aligned_alloc_base(size_t alignment, size_t size, uint32_t caps);
void heap_caps_free(void *ptr);
