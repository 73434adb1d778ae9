/* Requests of the malloc family that C libraries answer differently: odd alignments, sizes of zero, overflows. Prints
   every answer, so that a run with the library can be compared with one without. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KB (1ul << 10)
#define MB (1ul << 20)
#define GB (1ul << 30)
#define HALF (1ul << 63) /* PTRDIFF_MAX + 1 */
#define ALL (-1ul)
static const size_t aligns[] = { 0, 1, 2, 3, 4, 7, 8, 12, 16, 17, 24, 32, 48, 63, 64, 100, 128, 1000, 4095, 4096, 4097, 12288,
    64 * KB, 65 * KB, MB, 3 * MB, 2 * MB, GB, GB + 1, HALF / 2, HALF - 1, HALF, HALF + 1, ALL - 1, ALL };
static const size_t sizes[] = { 0, 1, 100, 4000, 64 * KB - 1, 64 * KB, 256 * KB - 1, 256 * KB, 256 * KB + 1, 300001, MB, 2 * MB + 17, 5 * MB,
    1ul << 46, HALF / 2, HALF - 4096, HALF - 1, HALF, HALF + 1, ALL - 2 * MB, ALL - 4096, ALL - 4095, ALL - 16, ALL };
#define COUNT(table) (sizeof table / sizeof *table)

/* These are volatile so that the compiler does not know what they do. */
static void *(*volatile get)(size_t) = malloc;
static void *(*volatile zeroed)(size_t, size_t) = calloc;
static void *(*volatile again)(void *, size_t) = realloc;
static void *(*volatile array)(void *, size_t, size_t) = reallocarray;

static void say(const char *call, size_t a, size_t b, void *got, size_t align, size_t usable) {
    int error = errno;
    printf("%s(%zx, %zx):", call, a, b);
    if (!got) { printf(" NULL, errno %d\n", error); return; }
    if (usable) memset(got, 1, usable < 8 * MB ? usable : 8 * MB);
    printf(" a block, errno %d, aligned %d, large enough %d\n", error, (uintptr_t)got % align == 0, malloc_usable_size(got) >= usable);
    errno = 4712; free(got);
    if (errno != 4712) printf("free changed errno to %d\n", errno);
}

/* Returns an alignment that a block must have. glibc rounds odd alignments up to a power of two. */
static size_t known(size_t align) { return align && (align & (align - 1)) == 0 ? align : 8; }

static void alignments(void) {
    for (unsigned i = 0; i < COUNT(aligns); i++) for (unsigned k = 0; k < COUNT(sizes); k++) {
        size_t align = aligns[i], size = sizes[k];
        errno = 4711; say("aligned_alloc", align, size, aligned_alloc(align, size), known(align), size);
        errno = 4711; say("memalign", align, size, memalign(align, size), known(align), size);
        void *block = &block; errno = 4711;
        int error = posix_memalign(&block, align, size);
        if (error) printf("posix_memalign(%zx, %zx): %d, written %d\n", align, size, error, block != &block);
        else say("posix_memalign", align, size, block, known(align), size);
    }
}

static void pages(void) {
    for (unsigned k = 0; k < COUNT(sizes); k++) {
        errno = 4711; say("valloc", sizes[k], 0, valloc(sizes[k]), 4096, sizes[k]);
        errno = 4711; say("pvalloc", sizes[k], 0, pvalloc(sizes[k]), 4096, (sizes[k] + 4095) / 4096 * 4096);
        errno = 4711; say("malloc", sizes[k], 0, get(sizes[k]), 16, sizes[k]);
        errno = 4711; say("calloc", sizes[k], 1, zeroed(sizes[k], 1), 16, sizes[k]);
    }
}

static void products(void) {
    static const size_t factors[] = { 0, 1, 2, 3, 1000, 64 * KB, 1ul << 33, (1ul << 33) + 1, HALF - 1, HALF, ALL / 2 + 2, ALL };
    for (unsigned i = 0; i < COUNT(factors); i++) for (unsigned k = 0; k < COUNT(factors); k++) {
        size_t a = factors[i], b = factors[k], product = a * b;
        if (product > GB && product < 1ul << 46 && product / a == b) continue; /* whether this succeeds depends on the machine */
        errno = 4711; say("calloc", a, b, zeroed(a, b), 16, product);
        errno = 4711; say("reallocarray of nothing", a, b, array(NULL, a, b), 16, product);
        for (size_t first = 100; first < 10 * MB; first *= 3000) {
            char *block = get(first); memset(block, 7, first); errno = 4711;
            char *got = array(block, a, b);
            if (!got && errno == ENOMEM) { printf("kept %d, ", block[0] == 7 && block[first - 1] == 7); free(block); errno = ENOMEM; }
            else if (got && product && got[0] != 7) printf("contents lost, ");
            say("reallocarray", a, b, got, 16, product);
        }
    }
}

static void resizes(void) {
    for (unsigned i = 0; i < COUNT(sizes); i++) for (unsigned k = 0; k < COUNT(sizes); k++) {
        if (sizes[i] > GB) continue;
        size_t first = sizes[i], size = sizes[k], least = first < size ? first : size;
        unsigned char *block = get(first); memset(block, 9, first); errno = 4711;
        unsigned char *got = again(block, size);
        if (!got && errno == ENOMEM) { printf("kept %d, ", !first || (block[0] == 9 && block[first - 1] == 9)); free(block); errno = ENOMEM; }
        else if (got && least && (got[0] != 9 || got[least - 1] != 9)) printf("contents lost, ");
        say("realloc", first, size, got, 16, size);
    }
}

int main(void) {
    alignments(); pages(); products(); resizes();
    errno = 4713; printf("malloc_usable_size(NULL): %zu, errno %d\n", malloc_usable_size(NULL), errno);
    free(NULL); printf("free(NULL): errno %d\n", errno);
    return 0;
}
