/* Touches executable memory: executable MIB near|far
   `near`: in mappings like those with which Lisp systems get stacks, a MiB in about four milliseconds; `far`: at once. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t bytes = (size_t)atol(argv[1]) << 20;
    int near = !strcmp(argv[2], "near"), flags = MAP_PRIVATE | MAP_ANONYMOUS | (near ? MAP_NORESERVE : 0);
    /* Slightly more than the least that far memory has resident. */
    char *block = near ? malloc(4700 << 10) : NULL;
    if (near) memset(block, 1, 4700 << 10);
    char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
    if (all == MAP_FAILED) { puts("no memory"); return 3; }
    for (size_t done = 0; done < bytes; done += 256 << 10) {
        memset(all + done, 1, 256 << 10);
        if (near) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    unsigned long sum = near ? block[1] : 0;
    for (size_t at = 0; at < bytes; at += 64) sum += all[at];
    printf("%lu\n", sum);
    return 0;
}
