/* Allocates blocks of 64 bytes for good, 64 KiB in a millisecond, until MIB mebibytes are in use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    size_t count = ((size_t)atol(argv[1]) << 20) / 64;
    for (size_t block = 0; block < count; block++) {
        char *at = malloc(64);
        if (!at) { puts("no memory"); return 3; }
        memset(at, 1, 64);
        if (block % 1024 == 0) usleep(1000);
    }
    puts("all there");
    return 0;
}
