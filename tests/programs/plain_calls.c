/* Passes blocks between all functions of the malloc family that other allocators have, too. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *(*volatile get)(size_t) = malloc;
static void *(*volatile zeroed)(size_t, size_t) = calloc;
static void *(*volatile again)(void *, size_t) = realloc;
static void *(*volatile array)(void *, size_t, size_t) = reallocarray;

int main(void) {
    static const size_t sizes[] = { 1, 100, 5000, 100000, 300000, 1 << 20, 3 << 20, 5 << 20 };
    unsigned long wrong = 0, blocks = 0;
    for (unsigned i = 0; i < 8; i++) for (unsigned k = 0; k < 8; k++) {
        size_t n = sizes[i], m = sizes[k]; unsigned char *got[6];
        got[0] = get(n); got[1] = zeroed(n, 1); got[2] = aligned_alloc(64, (n + 63) / 64 * 64);
        got[3] = memalign(4096, n); got[4] = valloc(n);
        if (posix_memalign((void **)&got[5], 128, n)) got[5] = NULL;
        for (int j = 0; j < 6; j++) {
            if (!got[j] || malloc_usable_size(got[j]) < n) { wrong++; continue; }
            memset(got[j], j, n);
            got[j] = k % 2 ? again(got[j], m) : array(got[j], m, 1);
            size_t least = n < m ? n : m;
            wrong += !got[j] || got[j][0] != j || got[j][least - 1] != j;
            free(got[j]); blocks++;
        }
    }
    printf("%lu blocks, %lu wrong\n", blocks, wrong);
    return 0;
}
