// Uses every form of operator new and delete, and containers of aligned items.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>
template <std::size_t A> struct alignas(A) Item { unsigned char bytes[A]; };
template <std::size_t A> static void containers() {
    std::vector<Item<A>> items; unsigned long sum = 0;
    for (unsigned i = 0; i < (3u << 20) / A; i++) { items.emplace_back(); items.back().bytes[0] = (unsigned char)i; }
    for (auto &item : items) sum += item.bytes[0];
    std::printf("vector %zu: %zu %lu %d\n", A, items.size(), sum, (int)((std::uintptr_t)items.data() % A));
}
/* Blocks are stored here so that the compiler cannot omit an allocation. */
static void *volatile seen;
static void *use(void *p, std::size_t n) { std::memset(p, 1, n); seen = p; return seen; }

int main() {
    containers<16>(); containers<32>(); containers<64>(); containers<128>(); containers<4096>();
    const std::size_t sizes[] = {100, 100000, 300000, 5 << 20};
    const std::size_t aligns[] = {32, 64, 4096, 1 << 21};
    unsigned long ok = 0;
    for (std::size_t n : sizes) {
        void *p = use(::operator new(n), n); ::operator delete(p); ok++;
        p = use(::operator new(n), n); ::operator delete(p, n); ok++;
        p = use(::operator new[](n), n); ::operator delete[](p); ok++;
        p = use(::operator new[](n), n); ::operator delete[](p, n); ok++;
        p = use(::operator new(n, std::nothrow), n); ::operator delete(p, std::nothrow); ok++;
        p = use(::operator new[](n, std::nothrow), n); ::operator delete[](p, std::nothrow); ok++;
        for (std::size_t a : aligns) {
            std::align_val_t al{a}; auto good = [&](void *q) { ok += (std::uintptr_t)q % a == 0; use(q, n); };
            p = ::operator new(n, al); good(p); ::operator delete(p, al);
            p = ::operator new(n, al); good(p); ::operator delete(p, n, al);
            p = ::operator new[](n, al); good(p); ::operator delete[](p, al);
            p = ::operator new[](n, al); good(p); ::operator delete[](p, n, al);
            p = ::operator new(n, al, std::nothrow); good(p); ::operator delete(p, al, std::nothrow);
            p = ::operator new[](n, al, std::nothrow); good(p); ::operator delete[](p, al, std::nothrow);
        }
    }
    std::printf("%lu forms\n", ok);
    return 0;
}
