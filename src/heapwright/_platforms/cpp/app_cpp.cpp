/* app_cpp.cpp: app_heap behind operators new and delete.
 *
 * The first call makes the heap, so those before main are served. It takes no lock: where several threads allocate, the
 * recipe's threads must be "lock" or "cached".
 */
#include "app_cpp.hpp"

static_assert(APP_ALIGNMENT >= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
              "operator new promises objects aligned to more: take a recipe with that align");

#if defined(APP_ARENA_BYTES)
alignas(APP_ARENA_ALIGNMENT) static unsigned char arena[APP_ARENA_BYTES];
#define ARENA_BEGIN arena
#define ARENA_END (arena + sizeof arena)
#elif defined(APP_ARENA_BEGIN) && defined(APP_ARENA_END)
extern "C" unsigned char APP_ARENA_BEGIN[], APP_ARENA_END[];
#define ARENA_BEGIN APP_ARENA_BEGIN
#define ARENA_END APP_ARENA_END
#else
#error "define APP_ARENA_BYTES, or APP_ARENA_BEGIN and APP_ARENA_END, symbols of the linker script; see app_README.md"
#endif

static app_heap *make_heap() noexcept
{
    const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(ARENA_BEGIN) & (APP_ARENA_ALIGNMENT - 1u);
    app_heap *heap = app_init(ARENA_BEGIN + skipped, static_cast<std::size_t>(ARENA_END - ARENA_BEGIN) - skipped);
    if (heap == nullptr) {
        std::abort(); /* the arena is too small for the heap's own data */
    }
    return heap;
}

app_heap *app_new_heap() noexcept
{
    static app_heap *const heap = make_heap();
    return heap;
}

/* nullptr where there is no room, and no new handler to make some. */
static void *serve(std::size_t size, std::size_t alignment)
{
    for (;;) {
        app_heap *heap = app_new_heap();
        void *memory = alignment <= APP_ALIGNMENT ? app_malloc(heap, size) : app_aligned_alloc(heap, alignment, size);
        if (memory != nullptr) {
            return memory;
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) {
            return nullptr;
        }
        handler();
    }
}

#ifdef __cpp_exceptions

static void *serve_or_throw(std::size_t size, std::size_t alignment)
{
    void *memory = serve(size, alignment);
    return memory ? memory : throw std::bad_alloc();
}

static void *serve_or_null(std::size_t size, std::size_t alignment) noexcept
{
    try {
        return serve(size, alignment);
    } catch (...) { /* what a new handler throws */
        return nullptr;
    }
}

#else

static void *serve_or_throw(std::size_t size, std::size_t alignment)
{
    void *memory = serve(size, alignment);
    if (memory == nullptr) {
        std::abort();
    }
    return memory;
}

#define serve_or_null serve

#endif

void *operator new(std::size_t size)
{
    return serve_or_throw(size, APP_ALIGNMENT);
}

void *operator new[](std::size_t size)
{
    return serve_or_throw(size, APP_ALIGNMENT);
}

void *operator new(std::size_t size, std::align_val_t alignment)
{
    return serve_or_throw(size, static_cast<std::size_t>(alignment));
}

void *operator new[](std::size_t size, std::align_val_t alignment)
{
    return serve_or_throw(size, static_cast<std::size_t>(alignment));
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    return serve_or_null(size, APP_ALIGNMENT);
}

void *operator new[](std::size_t size, const std::nothrow_t &) noexcept
{
    return serve_or_null(size, APP_ALIGNMENT);
}

void *operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept
{
    return serve_or_null(size, static_cast<std::size_t>(alignment));
}

void *operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept
{
    return serve_or_null(size, static_cast<std::size_t>(alignment));
}

void operator delete(void *memory) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete(void *memory, std::size_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory, std::size_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete(void *memory, std::align_val_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory, std::align_val_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete(void *memory, std::size_t, std::align_val_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory, std::size_t, std::align_val_t) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete(void *memory, const std::nothrow_t &) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory, const std::nothrow_t &) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete(void *memory, std::align_val_t, const std::nothrow_t &) noexcept
{
    app_free(app_new_heap(), memory);
}

void operator delete[](void *memory, std::align_val_t, const std::nothrow_t &) noexcept
{
    app_free(app_new_heap(), memory);
}
