/* Allocates blocks of 20 MiB by each function of the malloc family in turn, until one fails. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 20 << 20 };
static void *another(int kind) {
    void *block = NULL;
    switch (kind % 5) {
        case 0: return malloc(SIZE);
        case 1: return calloc(2, SIZE / 2);
        case 2: return aligned_alloc(64, SIZE);
        case 3: return posix_memalign(&block, 128, SIZE) ? NULL : block;
        default: return realloc(malloc(100), SIZE);
    }
}
int main(void) {
    int got = 0; char *block;
    errno = 0;
    while (got < 100 && (block = another(got))) { memset(block, 1, SIZE); got++; }
    printf("%s after %d blocks, %s\n", got < 100 ? "NULL" : "no end", got, errno == ENOMEM ? "ENOMEM" : "another error");
    for (int i = 0; i < 5; i++) if (another(i)) printf("but %d had one\n", i); /* these refusals must cause no further message */
    return 0;
}
