/* Touches a MiB of executable memory in about a millisecond: executable MIB */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv) {
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
    /* Slightly more than the least that far memory has resident. */
    char *block = malloc(4700 << 10);
    memset(block, 1, 4700 << 10);
    char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) { puts("no memory"); return 3; }
    for (size_t done = 0; done < bytes; done += 256 << 10) {
        memset(all + done, 1, 256 << 10);
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    }
    printf("%d %d\n", block[1], all[bytes - 1]);
    return 0;
}
