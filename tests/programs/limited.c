/* Fills MIB mebibytes in blocks of BLOCK_MIB, frees and reallocates some, and checks all of them, in threads and in a
   forked child if asked. The last line has its peak of resident memory.
   limited MIB BLOCK_MIB [threads|fork|grow] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096, THREADS = 3 };
static uint64_t *blocks[MOST];
static size_t count, words;

static uint64_t value(size_t block, size_t word, uint64_t round) { return block * 1000003 + word * 7919 + round; }

static void fill(size_t block, uint64_t round) {
    for (size_t word = 0; word < words; word++) blocks[block][word] = value(block, word, round);
}
static size_t wrong(size_t block, uint64_t round) {
    size_t found = 0;
    for (size_t word = 0; word < words; word++) found += blocks[block][word] != value(block, word, round);
    return found;
}
static size_t wrong_in_all(size_t first, size_t step, uint64_t round) {
    size_t found = 0;
    for (size_t block = first; block < count; block += step) found += wrong(block, round);
    return found;
}
static void *look(void *first) { return (void *)wrong_in_all((uintptr_t)first, THREADS, 1); }

static long peak_kib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kib);
    if (status) fclose(status);
    return kib;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t block_mib = (size_t)atol(argv[2]), found = 0;
    const char *how = argc > 3 ? argv[3] : "";
    words = (block_mib << 20) / sizeof(uint64_t);
    count = (size_t)atol(argv[1]) / block_mib;
    for (size_t block = 0; block < count; block++) {
        if (!strcmp(how, "grow")) {
            /* The block grows to its size, in place or not. */
            size_t half = words / 2;
            blocks[block] = malloc(half * 8);
            if (!blocks[block]) { puts("no memory"); return 3; }
            for (size_t word = 0; word < half; word++) blocks[block][word] = value(block, word, 0);
            uint64_t *more = realloc(blocks[block], words * 8);
            if (!more) { puts("no memory"); return 3; }
            blocks[block] = more;
            for (size_t word = 0; word < half; word++) found += more[word] != value(block, word, 0);
        } else {
            blocks[block] = malloc(words * 8);
            if (!blocks[block]) { puts("no memory"); return 3; }
        }
        fill(block, 0);
    }
    found += wrong_in_all(0, 1, 0);
    /* Freed blocks are used again, and those of calloc are zero. */
    for (size_t block = 0; block < count; block += 3) {
        free(blocks[block]);
        blocks[block] = calloc(words, 8);
        if (!blocks[block]) { puts("no memory"); return 3; }
        for (size_t word = 0; word < words; word += 512) found += blocks[block][word] != 0;
    }
    for (size_t block = 0; block < count; block++) fill(block, 1);
    if (!strcmp(how, "threads")) {
        pthread_t threads[THREADS];
        void *sum;
        for (uintptr_t first = 0; first < THREADS; first++) pthread_create(&threads[first], 0, look, (void *)first);
        for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], &sum), found += (uintptr_t)sum;
    }
    if (!strcmp(how, "fork")) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            size_t bad = wrong_in_all(0, 1, 1);
            for (size_t block = 0; block < count; block += 2) fill(block, 2);
            for (size_t block = 0; block < count; block++) bad += wrong(block, block % 2 ? 1 : 2);
            _exit(bad != 0);
        }
        for (size_t block = 1; block < count; block += 2) fill(block, 1);
        int status;
        waitpid(child, &status, 0);
        if (status) { printf("the child ended with %#x\n", status); return 4; }
    }
    found += wrong_in_all(0, 1, 1);
    printf("%zu blocks, %zu wrong\n", count, found);
    printf("peak %ld KiB\n", peak_kib());
    return found != 0;
}
