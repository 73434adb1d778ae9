/* Fills blocks at full speed, sets a limit while they exist, and fills more than the limit. Every word is checked.
   Two threads exist then: one sleeps until it is told to look at the blocks, and one waits for a byte if asked, until the
   limit was refused because of it.
   set_limit BEFORE_MIB AFTER_MIB LIMIT STORE [waiting]   (mebibytes before and after the call) */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *largesse_limit(const char *, const char *) __attribute__((weak));

enum { BLOCK_MIB = 8, MOST = 4096 };
static uint64_t *blocks[MOST];
static const size_t words = ((size_t)BLOCK_MIB << 20) / sizeof(uint64_t);

static int fill(size_t block) {
    blocks[block] = malloc(words * 8);
    if (!blocks[block]) return 0;
    for (size_t word = 0; word < words; word++) blocks[block][word] = block * 1000003 + word * 7919;
    return 1;
}
static size_t wrong(size_t count) {
    size_t found = 0;
    for (size_t block = 0; block < count; block++)
        for (size_t word = 0; word < words; word++) found += blocks[block][word] != block * 1000003 + word * 7919;
    return found;
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;
static size_t to_look;
static int ends[2];
static void *look(void *none) {
    char page[4096];
    size_t found = 0;
    (void)none;
    pthread_mutex_lock(&mutex);
    while (!to_look) pthread_cond_wait(&told, &mutex);
    pthread_mutex_unlock(&mutex);
    /* The kernel reads each block, too. */
    for (size_t block = 0; block < to_look; block++) {
        int passed = write(ends[1], blocks[block], sizeof page) == sizeof page && read(ends[0], page, sizeof page) > 0;
        found += !passed || memcmp(page, blocks[block], sizeof page);
    }
    return (void *)(found + wrong(to_look));
}
static void *wait_for_byte(void *byte) { return (void *)(intptr_t)read(ends[0], byte, 1); }

static long resident_kib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "VmRSS: %ld", &kib);
    if (status) fclose(status);
    return kib;
}

int main(int argc, char **argv) {
    if (argc < 5 || !largesse_limit) return 2;
    size_t before = (size_t)atol(argv[1]) / BLOCK_MIB, count = before + (size_t)atol(argv[2]) / BLOCK_MIB, found = 0;
    const char *refused = largesse_limit("1M", 0);
    if (!refused || !strstr(refused, "64M")) return 3;
    /* Freed memory may be offered to the kernel before there is a limit. */
    for (int round = 0; round < 2; round++) {
        for (size_t block = 0; block < before; block++) if (!fill(block)) return 4;
        if (round == 0) for (size_t block = 0; block < before; block++) free(blocks[block]);
    }
    pthread_t looker, waiter;
    char byte;
    int waits = argc > 5 && !strcmp(argv[5], "waiting");
    if (pipe(ends) || pthread_create(&looker, 0, look, 0)) return 8;
    if (waits && pthread_create(&waiter, 0, wait_for_byte, &byte)) return 8;
    usleep(20000);
    const char *why = largesse_limit(argv[3], argv[4]);
    if (waits) {
        printf("beside a waiting thread: %s\n", why ? why : "kept");
        if (write(ends[1], "x", 1) != 1 || pthread_join(waiter, 0)) return 8;
        if (why) why = largesse_limit(argv[3], argv[4]);
    }
    if (why) { printf("refused: %s\n", why); return 5; }
    long most = resident_kib();
    for (size_t block = before; block < count; block++) {
        if (!fill(block)) return 4;
        if (resident_kib() > most) most = resident_kib();
    }
    found += wrong(count);
    pthread_mutex_lock(&mutex);
    to_look = count;
    pthread_cond_signal(&told);
    pthread_mutex_unlock(&mutex);
    void *seen;
    pthread_join(looker, &seen);
    found += (size_t)seen;
    if (resident_kib() > most) most = resident_kib();
    refused = largesse_limit("1G", argv[4]);
    if (!refused || !strstr(refused, "chosen with the first limit")) return 6;
    if ((why = largesse_limit("4G", 0))) { printf("refused: %s\n", why); return 7; }
    found += wrong(count);
    printf("%zu blocks, %zu wrong\nresident %ld KiB\n", count, found, most);
    return found != 0;
}
