/* Writes a block, and adds it up twice, or PASSES times: passes MIB [PASSES] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t count = ((size_t)(argc > 1 ? atol(argv[1]) : 64) << 20) / 8;
    uint64_t *words = malloc(count * 8), sum = 0;
    int passes = argc > 2 ? atoi(argv[2]) : 2;
    if (!words) { puts("no memory"); return 3; }
    for (size_t i = 0; i < count; i++) words[i] = i * 3;
    for (int pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count; i++) sum += words[i];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
