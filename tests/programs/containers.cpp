// Tests growing containers, exceptions, aligned new, and threads that pass blocks on.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct alignas(4096) Page { std::uint64_t words[512 * 100]; };

static std::mutex door;
static std::queue<std::unique_ptr<std::vector<std::uint32_t>>> handed;

static void make(unsigned seed) {
    for (unsigned i = 0; i < 60; i++) {
        auto block = std::make_unique<std::vector<std::uint32_t>>();
        for (unsigned k = 0; k < 200000; k++) block->push_back(seed * 1000 + i + k);
        std::lock_guard<std::mutex> lock(door);
        handed.push(std::move(block));
    }
}

int main() {
    std::vector<double> v;
    for (int i = 0; i < 3000000; i++) v.push_back(i % 1000 / 7.0);
    std::sort(v.begin(), v.end());
    std::printf("%.17g %.17g %zu\n", std::accumulate(v.begin(), v.end(), 0.0), v[1500000], v.size());
    v.resize(10); v.shrink_to_fit();
    std::string text;
    for (int i = 0; i < 300000; i++) text += "abcdefgh";
    std::printf("%zu %zu\n", text.size(), text.find("habc", 1000000));
    std::unordered_map<int, int> map;
    for (int i = 0; i < 300000; i++) map[i * 7919ll % 1000003] += i;
    long long sum = 0;
    for (auto &pair : map) sum += pair.second;
    std::printf("%zu %lld\n", map.size(), sum);
    std::deque<std::vector<int>> deque;
    for (int i = 0; i < 200; i++) { deque.emplace_back(100000, i); if (i % 3 == 0) deque.pop_front(); }
    std::printf("%zu %d\n", deque.size(), deque.back()[99999]);
    auto *page = new Page[3];
    std::printf("%d\n", (int)((std::uintptr_t)page % 4096));
    page[2].words[99] = 1;
    delete[] page;
    unsigned long long total = 0; std::size_t count = 0;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; t++) threads.emplace_back(make, t);
    while (count < 240) {
        std::unique_ptr<std::vector<std::uint32_t>> block;
        { std::lock_guard<std::mutex> lock(door); if (!handed.empty()) { block = std::move(handed.front()); handed.pop(); } }
        if (!block) { std::this_thread::yield(); continue; }
        total += std::accumulate(block->begin(), block->end(), 0ull); count++;
    }
    for (auto &thread : threads) thread.join();
    std::printf("%llu\n", total);
    try { std::vector<char> huge(1ull << 46); std::printf("had it\n"); }
    catch (const std::bad_alloc &error) { std::printf("%s\n", error.what()); }
    std::fprintf(stderr, "to stderr\n");
    return 11;
}
