/* Sorts 40 million numbers by their digits to base 256, with two arrays of 305 MiB. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 40000000 };

int main(void) {
    uint32_t (*from)[2] = malloc(COUNT * sizeof *from), (*to)[2] = malloc(COUNT * sizeof *to);
    if (!from || !to) { puts("no memory"); return 3; }
    uint32_t state = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        from[i][0] = state, from[i][1] = i;
    }
    for (int shift = 0; shift < 32; shift += 8) {
        size_t places[257] = { 0 };
        for (size_t i = 0; i < COUNT; i++) places[(from[i][0] >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++) places[digit + 1] += places[digit];
        for (size_t i = 0; i < COUNT; i++) {
            size_t at = places[from[i][0] >> shift & 255]++;
            to[at][0] = from[i][0], to[at][1] = from[i][1];
        }
        void *before = from;
        from = to, to = before;
    }
    uint64_t sum = 0;
    for (size_t i = 1; i < COUNT; i++) {
        if (from[i - 1][0] > from[i][0]) { puts("not sorted"); return 1; }
        sum = sum * 31 + from[i][1];
    }
    printf("%llu %u %u\n", (unsigned long long)sum, from[0][0], from[COUNT / 2][1]);
    return 0;
}
