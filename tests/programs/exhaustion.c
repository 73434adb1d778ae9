/* Allocates blocks until malloc fails, frees them, and continues. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (int round = 0; round < 3; round++) {
        static char *blocks[100000]; size_t count = 0, size = (size_t)(1 + round * 3) << 20;
        errno = 0;
        while (count < 100000 && (blocks[count] = malloc(size))) { blocks[count][0] = blocks[count][size - 1] = (char)count; count++; }
        if (errno != ENOMEM || count == 100000) { printf("round %d: no end after %zu, errno %d\n", round, count, errno); return 1; }
        if (count * size < (size_t)200 << 20) { printf("round %d: only %zu blocks of %zu\n", round, count, size); return 1; }
        for (size_t i = 0; i < count; i++) {
            if (blocks[i][0] != (char)i || blocks[i][size - 1] != (char)i) { printf("block %zu is not what it was\n", i); return 1; }
            free(blocks[i]);
        }
        char *small = malloc(100), *again = calloc(1, 50 << 20);
        if (!small || !again || again[49 << 20]) { printf("nothing can be had afterwards\n"); return 1; }
        free(small); free(again);
    }
    puts("went on");
    return 0;
}
