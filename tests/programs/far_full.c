/* Allocates memory until malloc fails, tries to enlarge each block, and checks all of it. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 8 << 20, WORDS = BLOCK / 8, MOST = 4096 };

int main(void) {
    static uint64_t *blocks[MOST];
    size_t count = 0, wrong = 0;
    while (count < MOST && (blocks[count] = malloc(BLOCK))) {
        for (size_t w = 0; w < WORDS; w++) blocks[count][w] = count * WORDS + w;
        count++;
    }
    for (size_t b = 0; b < count; b++) {
        errno = 0;
        uint64_t *larger = realloc(blocks[b], 4 * BLOCK);
        if (larger) blocks[b] = larger;
        wrong += larger != NULL || errno != ENOMEM;
    }
    for (size_t b = 0; b < count; b++)
        for (size_t w = 0; w < WORDS; w++) wrong += blocks[b][w] != b * WORDS + w;
    printf("%zu blocks, %zu wrong\n", count, wrong);
    return wrong != 0 || count == MOST;
}
