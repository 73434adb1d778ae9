/* Fills MIB mebibytes in blocks of BLOCK_MIB, frees every second block, and waits until the others are on large pages
   while a thread writes to them. Then it forks a child that checks them, and fills the freed blocks again. Every word is
   checked. ROUNDS is the number of times that it does so.
   near_again MIB BLOCK_MIB ROUNDS */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096, STRIDE = 512 };
static uint64_t *blocks[MOST];
static size_t count, words;
static atomic_int stop;

/* The first word of each stretch is the writing thread's. */
static uint64_t value(size_t block, size_t word, uint64_t round) { return block * 1000003 + word * 7919 + round; }
static void fill(size_t block, uint64_t round) {
    for (size_t word = 0; word < words; word++) blocks[block][word] = word % STRIDE ? value(block, word, round) : 0;
}
static size_t wrong(size_t block, uint64_t round) {
    size_t found = 0;
    for (size_t word = 0; word < words; word++) found += word % STRIDE && blocks[block][word] != value(block, word, round);
    return found;
}
static size_t wrong_in_all(size_t step, uint64_t (*round)(size_t)) {
    size_t found = 0;
    for (size_t block = 0; block < count; block += step) found += wrong(block, round(block));
    return found;
}
static uint64_t rounds[MOST];
static uint64_t last(size_t block) { return rounds[block]; }

/* Counts up the first word of each stretch in half of the blocks that are kept. */
static void *write_all(void *none) {
    size_t found = 0;
    (void)none;
    for (uint64_t turn = 1; !stop; turn++)
        for (size_t block = 0; block < count; block += 4)
            for (size_t word = 0; word < words; word += STRIDE) found += blocks[block][word]++ != turn - 1;
    return (void *)found;
}

static long large_kib(void) {
    char line[256];
    long kib = 0;
    FILE *smaps = fopen("/proc/self/smaps_rollup", "r");
    while (smaps && fgets(line, sizeof line, smaps)) sscanf(line, "AnonHugePages: %ld", &kib);
    if (smaps) fclose(smaps);
    return kib;
}
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
static int get(size_t block) {
    blocks[block] = malloc(words * 8);
    return blocks[block] != 0;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    size_t block_mib = (size_t)atol(argv[2]), found = 0;
    int times = atoi(argv[3]);
    words = (block_mib << 20) / sizeof(uint64_t);
    count = (size_t)atol(argv[1]) / block_mib;
    for (size_t block = 0; block < count; block++) {
        if (!get(block)) { puts("no memory"); return 3; }
        fill(block, 0);
    }
    for (int time = 1; time <= times; time++) {
        found += wrong_in_all(1, last);
        long kept = (long)((count + 1) / 2 * block_mib) << 10;
        for (size_t block = 1; block < count; block += 2) free(blocks[block]);
        for (size_t block = 0; block < count; block += 4)
            for (size_t word = 0; word < words; word += STRIDE) blocks[block][word] = 0;
        pthread_t writer;
        void *bad;
        stop = 0;
        pthread_create(&writer, 0, write_all, 0);
        double began = now();
        while (large_kib() < kept / 10 * 9 && now() - began < 100) usleep(10000);
        stop = 1;
        pthread_join(writer, &bad);
        found += (size_t)bad + wrong_in_all(2, last);
        printf("after %.1f s %ld of %ld KiB are on large pages\n", now() - began, large_kib(), kept);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            size_t bad = wrong_in_all(2, last);
            for (size_t block = 0; block < count; block += 4) fill(block, 99), bad += wrong(block, 99);
            _exit(bad != 0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) { printf("the child ended with %#x\n", status); return 4; }
        for (size_t block = 1; block < count; block += 2) {
            if (!get(block)) { puts("no memory"); return 3; }
            rounds[block] = (uint64_t)time;
            fill(block, rounds[block]);
        }
    }
    found += wrong_in_all(1, last);
    printf("%zu blocks, %zu wrong\n", count, found);
    return found != 0;
}
