/* Uses a few blocks of each of many sizes, and an eighth of some larger ones, as interpreters do when they start. Prints
   the anonymous memory that it has resident, in KiB. With an argument, it then fills the larger ones and prints the KiB
   that are on large pages, once they are more than half of them or after ten seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 8, MIB = 1 << 20 };
static char *large[LARGE];

static long kib(const char *file, const char *format) {
    char line[256];
    long found = 0;
    FILE *open = fopen(file, "r");
    while (open && fgets(line, sizeof line, open)) sscanf(line, format, &found);
    if (open) fclose(open);
    return found;
}

int main(int argc, char **argv) {
    for (size_t size = 16; size <= 65536; size += size / 8 < 16 ? 16 : size / 8)
        for (int block = 0; block < 4; block++) {
            char *start = malloc(size);
            if (!start) return 1;
            memset(start, block, size);
        }
    for (int block = 0; block < LARGE; block++) {
        size_t size = (block + 1) * (3 * MIB / LARGE);
        large[block] = malloc(size);
        if (!large[block]) return 1;
        memset(large[block], block, size / 8);
    }
    printf("anonymous %ld KiB\n", kib("/proc/self/status", "RssAnon: %ld"));
    if (argc < 2 || !argv[1]) return 0;
    for (int block = 0; block < LARGE; block++) memset(large[block], block + 1, (block + 1) * (3 * MIB / LARGE));
    long huge = 0;
    for (int tenth = 0; tenth < 100 && huge < 7 * 1024; tenth++) {
        usleep(100000);
        huge = kib("/proc/self/smaps_rollup", "AnonHugePages: %ld");
    }
    size_t wrong = 0;
    for (int block = 0; block < LARGE; block++)
        for (size_t at = 0; at < (size_t)(block + 1) * (3 * MIB / LARGE); at++) wrong += large[block][at] != block + 1;
    printf("large %ld KiB\n%zu wrong\n", huge, wrong);
    return 0;
}
