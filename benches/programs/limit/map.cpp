// A hash map of 12 million entries in small blocks.
#include <cstdint>
#include <cstdio>
#include <unordered_map>

int main() {
    std::unordered_map<std::uint64_t, std::uint64_t> squares;
    for (std::uint64_t i = 0; i < 12'000'000; i++) squares[i * 0x9E3779B97F4A7C15u] = i * i;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 12'000'000; i += 3) sum += squares[i * 0x9E3779B97F4A7C15u] ^ i;
    std::printf("%zu %llu\n", squares.size(), static_cast<unsigned long long>(sum));
}
