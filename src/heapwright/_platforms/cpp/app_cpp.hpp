/* app_cpp.hpp: app_heap as a std::pmr::memory_resource. */
#ifndef APP_CPP_HPP
#define APP_CPP_HPP

#include "app_heap.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <new>

/* What pmr containers allocate from a heap with. The heap must outlive it, and it what was allocated with it. Where
 * several threads use it, the recipe's threads must be "lock" or "cached". */
class app_resource final : public std::pmr::memory_resource
{
  public:
    explicit app_resource(app_heap *heap) noexcept : heap_(heap)
    {
    }

    app_heap *heap() const noexcept
    {
        return heap_;
    }

  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        void *memory =
            alignment <= APP_ALIGNMENT ? app_malloc(heap_, bytes) : app_aligned_alloc(heap_, alignment, bytes);
        if (memory == nullptr) {
#ifdef __cpp_exceptions
            throw std::bad_alloc();
#else
            std::abort();
#endif
        }
        return memory;
    }

    void do_deallocate(void *memory, std::size_t, std::size_t) override
    {
        app_free(heap_, memory);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }

    app_heap *heap_;
};

/* The heap behind operators new and delete, which app_cpp.cpp defines. */
app_heap *app_new_heap() noexcept;

#endif
