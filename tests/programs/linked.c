/* A program that is linked with the library: prints how it reaches it, and whether its large block is served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "largesse.h"

int main(void) {
    char line[4096], path[4096], first[4096] = "";
    int copies = 0;
    char *block = malloc(4 << 20);
    if (!block) return 1;
    memset(block, 1, 4 << 20);
    largesse_stats_t now = {.struct_size = sizeof now};
    if (largesse_stats(&now) != LARGESSE_OK) return 2;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "/liblargesse.so") || sscanf(line, "%*s %*s %*s %*s %*s %4095s", path) != 1) continue;
        copies += strcmp(path, first) != 0;
        strcpy(first, path);
    }
    printf("abi %u, hooked %u, blocks %llu, copies %d\n", largesse_version() >> 16, now.hooked,
           (unsigned long long)now.blocks, copies);
    free(block);
    return 0;
}
