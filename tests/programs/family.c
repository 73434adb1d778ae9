/* Checks the rules of the malloc family at sizes above and below the library's smallest one. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KB (1ul << 10)
#define MB (1ul << 20)
static int failures;
#define CHECK(claim) do { if (!(claim)) { failures++; printf("line %d: not so: %s\n", __LINE__, #claim); } } while (0)
/* These are volatile so that the compiler does not know what they return. */
static void *(*volatile get)(size_t) = malloc;
static void *(*volatile zeroed)(size_t, size_t) = calloc;
static void *(*volatile again)(void *, size_t) = realloc;
static void *(*volatile array)(void *, size_t, size_t) = reallocarray;

static unsigned char pattern(size_t i, unsigned seed) { return (unsigned char)(i * 31 + (i >> 8) * 7 + (i >> 16) + seed); }
static void fill(unsigned char *p, size_t n, unsigned seed) { for (size_t i = 0; i < n; i++) p[i] = pattern(i, seed); }
static int holds(const unsigned char *p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++) if (p[i] != pattern(i, seed)) { printf("byte %zu of %zu\n", i, n); return 0; }
    return 1;
}
static int is_zero(const unsigned char *p, size_t n) { for (size_t i = 0; i < n; i++) if (p[i]) { printf("byte %zu of %zu is %d\n", i, n, p[i]); return 0; } return 1; }

static const size_t sizes[] = { 0, 1, 24, 1000, 64 * KB - 1, 64 * KB, 100 * KB, 256 * KB - 1, 256 * KB, 256 * KB + 1, 300000,
    512 * KB, MB - 1, MB, MB + 1, 2 * MB - 4096, 2 * MB - 1, 2 * MB, 2 * MB + 1, 3 * MB, 4 * MB, 5 * MB + 17, 17 * MB };
#define SIZES (sizeof sizes / sizeof *sizes)

static void plain(void) {
    for (unsigned i = 0; i < SIZES; i++) {
        unsigned char *p = get(sizes[i]);
        CHECK(p && (uintptr_t)p % 16 == 0);
        CHECK(malloc_usable_size(p) >= sizes[i]);
        size_t usable = malloc_usable_size(p);
        fill(p, usable, i); CHECK(holds(p, usable, i)); /* all usable bytes may be written */
        unsigned char *q = get(sizes[i]); CHECK(q != p); fill(q, sizes[i], i + 1); CHECK(holds(p, usable, i));
        free(q); CHECK(holds(p, usable, i)); free(p);
    }
    free(NULL); CHECK(malloc_usable_size(NULL) == 0);
}

static void growth(void) {
    for (unsigned i = 0; i < SIZES; i++) for (unsigned k = i % 2; k < SIZES; k += 2) {
        if (sizes[i] == 0 || sizes[k] == 0) continue;
        unsigned char *p = get(sizes[i]); fill(p, sizes[i], k);
        unsigned char *q = again(p, sizes[k]);
        size_t least = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
        CHECK(q && (uintptr_t)q % 16 == 0 && holds(q, least, k) && malloc_usable_size(q) >= sizes[k]);
        memset(q, 0xee, sizes[k]); free(q);
    }
    /* The block grows in small steps, sometimes with a neighbour that blocks its growth, and shrinks again. */
    unsigned char *p = get(100 * KB), *neighbours[60]; size_t n = 100 * KB; int count = 0;
    fill(p, n, 9);
    while (n < 40 * MB) {
        size_t more = n + n / 3 + 12345; p = again(p, more);
        CHECK(holds(p, n, 9)); fill(p, more, 9); n = more;
        neighbours[count] = get(300 * KB); memset(neighbours[count++], 0xdd, 300 * KB);
    }
    while (n > 1000) { n = n / 2 - 3; p = again(p, n); CHECK(holds(p, n, 9)); }
    while (count) { CHECK(neighbours[--count][299 * KB] == 0xdd); free(neighbours[count]); }
    free(p);
    p = again(NULL, 3 * MB); CHECK(p); fill(p, 3 * MB, 1); CHECK(again(p, 0) == NULL);
    p = array(NULL, 3, MB); CHECK(p); fill(p, 3 * MB, 2); p = array(p, 5, MB); CHECK(p && holds(p, 3 * MB, 2)); free(p);
}

static void zeros(void) {
    static const size_t some[] = { 300 * KB, MB, 2 * MB, 5 * MB + 5, 17 * MB };
    for (int round = 0; round < 4; round++) for (unsigned i = 0; i < 5; i++) {
        unsigned char *dirty[4];
        for (int k = 0; k < 4; k++) { dirty[k] = get(some[(i + k) % 5]); memset(dirty[k], 0xff, malloc_usable_size(dirty[k])); }
        for (int k = 0; k < 4; k++) free(dirty[(k + round) % 4]);
        if (round == 2) malloc_trim(0);
        unsigned char *p = zeroed(1, some[i]), *q = zeroed(some[i] / 8 + 1, 8);
        CHECK(is_zero(p, some[i])); CHECK(is_zero(q, some[i]));
        memset(p, 0xff, some[i]); memset(q + some[i] / 2, 0xff, some[i] / 4);
        free(q); free(p);
        /* Cleared blocks are written in part or not at all, freed, and allocated cleared again. */
        p = zeroed(1, 16 * MB); CHECK(is_zero(p + 5 * MB, 4096)); p[9 * MB] = 1; free(p);
        p = zeroed(16, MB); CHECK(is_zero(p, 16 * MB)); free(p);
        /* The block grows by moving its pages. Their old addresses must then read as zeros in a cleared block. */
        p = get(4 * MB); memset(p, 0xff, 4 * MB); q = get(64 * KB * 5); p = again(p, 12 * MB); memset(p, 0xfe, 12 * MB);
        unsigned char *r = zeroed(1, 4 * MB); CHECK(is_zero(r, 4 * MB)); free(r); free(q); free(p);
        r = zeroed(1, 12 * MB); CHECK(is_zero(r, 12 * MB)); free(r);
    }
}

static void aligned(void) {
    for (size_t align = 8; align <= 16 * MB; align *= 2) for (unsigned i = 3; i < SIZES; i += 3) {
        unsigned char *p = NULL; errno = 0; int before = failures;
        CHECK(posix_memalign((void **)&p, align, sizes[i]) == 0 && p && (uintptr_t)p % align == 0 && malloc_usable_size(p) >= sizes[i]);
        fill(p, sizes[i], i); p = again(p, sizes[i] + 400 * KB); CHECK(p && holds(p, sizes[i], i)); free(p);
        p = memalign(align, sizes[i]); CHECK(p && (uintptr_t)p % align == 0); memset(p, 1, sizes[i]); free(p);
        p = aligned_alloc(align, (sizes[i] / align + 1) * align); CHECK(p && (uintptr_t)p % align == 0); memset(p, 1, sizes[i]); free(p);
        if (failures > before) printf("  with alignment %zu and size %zu\n", align, sizes[i]);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *p = valloc(3 * MB + 1); CHECK(p && (uintptr_t)p % page == 0); memset(p, 1, 3 * MB + 1); free(p);
    p = pvalloc(3 * MB + 1); CHECK(p && (uintptr_t)p % page == 0 && malloc_usable_size(p) >= 3 * MB + page); memset(p, 1, 3 * MB + page); free(p);
    void *out = &out;
    CHECK(posix_memalign(&out, 3, MB) == EINVAL && posix_memalign(&out, 2, MB) == EINVAL && posix_memalign(&out, 0, MB) == EINVAL);
    CHECK(out == &out);
    CHECK(posix_memalign(&out, 64, 1ul << 46) == ENOMEM && out == &out);
}

static void absurd(void) {
    static const size_t too_much[] = { 1ul << 46, 1ul << 47, 1ul << 50, 1ul << 62, 1ul << 63, -1ul - 4096, -1ul };
    unsigned char *kept = get(3 * MB); fill(kept, 3 * MB, 5);
    for (unsigned i = 0; i < sizeof too_much / sizeof *too_much; i++) {
        errno = 0; CHECK(get(too_much[i]) == NULL && errno == ENOMEM);
        errno = 0; CHECK(zeroed(too_much[i], 1) == NULL && errno == ENOMEM);
        errno = 0; CHECK(zeroed(1, too_much[i]) == NULL && errno == ENOMEM);
        errno = 0; CHECK(memalign(4096, too_much[i]) == NULL && errno == ENOMEM);
        errno = 0; CHECK(again(kept, too_much[i]) == NULL && errno == ENOMEM);
        errno = 0; CHECK(valloc(too_much[i]) == NULL && errno == ENOMEM);
        errno = 0; CHECK(pvalloc(too_much[i]) == NULL && errno == ENOMEM);
    }
    errno = 0; CHECK(zeroed(1ul << 33, 1ul << 33) == NULL && errno == ENOMEM);
    errno = 0; CHECK(zeroed(-1ul / 2, 3) == NULL && errno == ENOMEM);
    errno = 0; CHECK(array(kept, 1ul << 33, 1ul << 33) == NULL && errno == ENOMEM);
    errno = 0; CHECK(memalign(1ul << 62, MB) == NULL && errno != 0);
    CHECK(holds(kept, 3 * MB, 5)); free(kept); /* a refused growth does not change the block */
}

static void errors_stay(void) {
    for (unsigned i = 0; i < SIZES; i++) {
        void *p = get(sizes[i]); errno = 4711; free(p); CHECK(errno == 4711);
        errno = 4712; p = get(sizes[i]); CHECK(p && errno == 4712);
        errno = 4713; p = again(p, sizes[i] + 3 * MB); CHECK(p && errno == 4713);
        errno = 4714; CHECK(malloc_usable_size(p) && errno == 4714); free(p);
        errno = 4715; p = zeroed(sizes[i] + 1, 1); CHECK(p && errno == 4715); free(p);
    }
    errno = 4716; free(NULL); CHECK(errno == 4716);
}

static size_t resident(void) {
    FILE *file = fopen("/proc/self/statm", "r"); size_t all = 0, here = 0;
    if (file) { if (fscanf(file, "%zu %zu", &all, &here) != 2) here = 0; fclose(file); }
    return here * (size_t)sysconf(_SC_PAGESIZE);
}

static void trimmed(void) {
    unsigned char *p = get(40 * MB); memset(p, 1, 40 * MB); free(p);
    size_t before = resident(); malloc_trim(0); size_t after = resident();
    CHECK(before < after + 40 * MB || before - after >= 20 * MB);
    CHECK(after < before || before < 40 * MB);
    p = zeroed(1, 40 * MB); CHECK(is_zero(p, 40 * MB)); free(p);
}

int main(void) {
    plain(); growth(); zeros(); aligned(); absurd(); errors_stay(); trimmed();
    printf(failures ? "%d failures\n" : "all as it should be\n", failures);
    return failures != 0;
}
