/* app_cpp_test.cpp: whether every form of new and delete reaches app_heap, and containers keep what is theirs.
 *
 * With a recipe of threads = "lock" or "cached" compile it with -DAPP_TEST_THREADS=4, and with "cached" also with
 * -DAPP_TEST_CACHED. It wants 4 MiB for APP_ARENA_BYTES. Where there is a main already, compile it with
 * -Dmain=app_cpp_test and call that.
 */
#include "app_cpp.hpp"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#ifdef APP_TEST_THREADS
#include <thread>
#else
#define APP_TEST_THREADS 0
#endif

static int failures;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        std::printf("FAILED: %s\n", what);
        __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED);
    }
}

static std::uint32_t blocks(app_heap *heap = app_new_heap())
{
    return app_statistics(heap).used_blocks;
}

/* What is in use outside a thread's cache. */
static std::uint32_t used()
{
#ifdef APP_TEST_CACHED
    app_release_thread(app_new_heap());
#endif
    return blocks();
}

static const std::string before_main(100, 'b');

struct alignas(128) Wide {
    unsigned char bytes[128];
};

static bool is_wide(const void *memory)
{
    return reinterpret_cast<std::uintptr_t>(memory) % alignof(Wide) == 0;
}

static void test_forms()
{
    const std::align_val_t wide{alignof(Wide)};
    const std::uint32_t before = used();
    void *const plain[] = {
        ::operator new(10), ::operator new[](10), ::operator new(10, std::nothrow), ::operator new[](10, std::nothrow),
        ::operator new(0),  ::operator new[](0)};
    void *const aligned[] = {::operator new(10, wide), ::operator new[](10, wide),
                             ::operator new(10, wide, std::nothrow), ::operator new[](10, wide, std::nothrow)};
    expect(plain[4] != plain[5], "objects of no bytes differ");
    expect(blocks() >= before + 10u, "every form of new is in the heap");
    for (void *memory : aligned) {
        expect(is_wide(memory), "aligned forms align");
    }
    ::operator delete(plain[0]);
    ::operator delete[](plain[1]);
    ::operator delete(plain[2], std::nothrow);
    ::operator delete[](plain[3], std::nothrow);
    ::operator delete(plain[4], std::size_t{0});
    ::operator delete[](plain[5], std::size_t{0});
    ::operator delete(aligned[0], wide);
    ::operator delete[](aligned[1], std::size_t{10}, wide);
    ::operator delete(aligned[2], wide, std::nothrow);
    ::operator delete[](aligned[3], std::size_t{10}, wide);
    ::operator delete(nullptr);
    expect(used() == before, "every form of delete gives back");
    expect(app_check(app_new_heap()) == 0, "the heap is whole");
}

static int handled;

static void give_up()
{
    handled++;
    std::set_new_handler(nullptr);
}

static void test_no_room()
{
    static volatile std::size_t huge = SIZE_MAX / 4;
    std::set_new_handler(give_up);
    expect(::operator new(huge, std::nothrow) == nullptr &&handled == 1, "the new handler is called");
    expect(::operator new(huge, std::align_val_t{256}, std::nothrow) == nullptr, "no room for an aligned object");
#ifdef __cpp_exceptions
    int thrown = 0;
    try {
        ::operator delete(::operator new(huge));
    } catch (const std::bad_alloc &) {
        thrown++;
    }
    std::set_new_handler([] { throw std::bad_alloc(); });
    expect(::operator new(huge, std::nothrow) == nullptr, "nothing is thrown where nothing may be");
    std::set_new_handler(nullptr);
    expect(thrown == 1, "bad_alloc is thrown");
#endif
}

/* Containers of every kind, checked as they change. */
template <class Map, class List> static void churn(Map &map, List &list, unsigned seed)
{
    bool whole = true;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const unsigned key = seed >> 22;
        const auto found = map.find(key);
        if (found != map.end()) {
            whole &= !found->second.empty() && found->second.front() == static_cast<char>('a' + key % 26);
            whole &= found->second.back() == found->second.front();
            map.erase(found);
        } else {
            map[key].assign(1u + (seed >> 8) % 120u, static_cast<char>('a' + key % 26));
        }
        list.push_back(i);
        while (list.size() > 500) {
            whole &= list.front() + 500 == i;
            list.pop_front();
        }
    }
    expect(whole, "containers keep what is theirs");
}

static void test_resource()
{
    constexpr std::size_t bytes = 1 << 20;
    const std::unique_ptr<unsigned char[]> memory(new (std::align_val_t{64}) unsigned char[bytes]);
    app_resource resource(app_init(memory.get(), bytes));
    const std::uint32_t outside = blocks();
    {
        std::pmr::unordered_map<unsigned, std::pmr::string> hashed(&resource);
        std::pmr::map<unsigned, std::pmr::string> sorted(&resource);
        std::pmr::deque<unsigned> list(&resource), other(&resource);
        std::pmr::vector<std::pmr::vector<Wide>> wides(5, &resource);
        for (std::pmr::vector<Wide> &wide : wides) {
            wide.resize(3);
            expect(is_wide(wide.data()), "a container's alignment is kept");
        }
        churn(hashed, list, 1);
        churn(sorted, other, 2);
        expect(blocks(resource.heap()) > hashed.size() + sorted.size(), "containers are in the resource's heap");
        expect(blocks() == outside, "and in no other");
        expect(app_check(resource.heap()) == 0, "the resource's heap is whole");
    }
    expect(resource == resource, "a resource is equal to itself");
    void *const one = resource.allocate(1000, 8);
    resource.deallocate(one, 1000, 8);
#ifdef __cpp_exceptions
    try {
        resource.deallocate(resource.allocate(bytes), bytes);
        expect(false, "bad_alloc is thrown where a resource has no room");
    } catch (const std::bad_alloc &) {
    }
#endif
}

static void work(unsigned seed)
{
    std::unordered_map<unsigned, std::string> hashed;
    std::map<unsigned, std::string> sorted;
    std::deque<unsigned> list, other;
    churn(hashed, list, seed);
    churn(sorted, other, seed + 1);
    const std::unique_ptr<Wide> wide = std::make_unique<Wide>();
    expect(is_wide(wide.get()), "make_unique aligns");
}

static void test_threads()
{
    work(7);
#if APP_TEST_THREADS
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < APP_TEST_THREADS; i++) {
        threads.emplace_back(work, i);
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
#endif
    expect(app_check(app_new_heap()) == 0, "the heap is whole after the threads");
}

int main()
{
    expect(before_main.size() == 100 && blocks() > 0, "calls before main are served");
    test_forms();
    const std::uint32_t before = used();
    test_no_room();
    test_resource();
    test_threads();
    expect(used() <= before + 1u, "all is given back");
    std::printf("app_cpp: %s\n", failures ? "FAILED" : "ok");
    return failures != 0;
}
