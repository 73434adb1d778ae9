/* Writes to each page of a large block and prints the sum of what it reads back: walk MIB. */
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    size_t bytes = (size_t)atoi(count > 1 ? arguments[1] : "32") << 20;
    unsigned char *block = malloc(bytes);
    unsigned long sum = 0;
    for (size_t at = 0; at < bytes; at += 4096)
        block[at] = (unsigned char)(at >> 12);
    for (size_t at = 0; at < bytes; at += 4096)
        sum += block[at];
    printf("sum %lu\n", sum);
    return 0;
}
