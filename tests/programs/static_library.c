/* A library with static arrays: zeros at the start, initial values, constants that need relocation, thread-local data and
   small variables. Its functions return how many words are wrong. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define ZEROS (12u << 20) /* words: 96 MiB */
#define GIVEN (9u << 17)  /* words: 9 MiB */
static uint64_t zeros[ZEROS];
static uint64_t given[GIVEN] = {11, 22, 33};
static uint64_t *const pointers[1u << 20] = {given, zeros, given + 5}; /* 8 MiB, read-only after relocation */
static __thread uint64_t mine[1u << 11] = {44};
static int small = 5;

/* The library's constructor runs before the arrays become far. */
static uint64_t constructed;
__attribute__((constructor)) static void construct(void) {
    constructed = small;
    zeros[ZEROS / 2] = 7;
    given[GIVEN / 2] = 8;
}

uint64_t wrong_at_start(void) {
    uint64_t wrong = given[0] != 11 || given[1] != 22 || given[2] != 33 || small != 5 || constructed != 5;
    wrong += zeros[ZEROS / 2] != 7 || given[GIVEN / 2] != 8 || pointers[0] != given || pointers[1] != zeros;
    for (unsigned i = 3; i < GIVEN; i++) wrong += given[i] != (i == GIVEN / 2 ? 8 : 0);
    zeros[ZEROS / 2] = given[GIVEN / 2] = given[0] = given[1] = given[2] = 0;
    for (unsigned i = 0; i < ZEROS; i++) wrong += zeros[i];
    return wrong;
}

void add(uint64_t laps) {
    for (unsigned i = 0; i < ZEROS; i++) zeros[i] += laps * i;
    for (unsigned i = 0; i < GIVEN; i++) given[i] += laps * i;
}

uint64_t wrong_after(uint64_t laps) {
    uint64_t wrong = 0;
    for (unsigned i = 0; i < ZEROS; i++) wrong += zeros[i] != laps * i;
    for (unsigned i = 0; i < GIVEN; i++) wrong += given[i] != laps * i;
    return wrong;
}

/* Passes the arrays to the kernel, a piece of each 8 MiB, through a pipe. */
uint64_t wrong_in_pipe(void) {
    int ends[2];
    uint64_t wrong = pipe(ends) != 0, words[512];
    for (unsigned i = 0; i < ZEROS; i += 1u << 20) {
        wrong += write(ends[1], zeros + i, sizeof words) != sizeof words;
        memcpy(words, zeros + i, sizeof words);
        memset(zeros + i, 1, sizeof words);
        wrong += read(ends[0], zeros + i, sizeof words) != sizeof words;
        wrong += memcmp(words, zeros + i, sizeof words) != 0;
    }
    close(ends[0]), close(ends[1]);
    return wrong;
}

static void *use_thread_local(void *unused) {
    (void)unused;
    uint64_t wrong = mine[0] != 44;
    for (unsigned i = 1; i < 1u << 11; i++) wrong += mine[i];
    memset(mine, 3, sizeof mine);
    return (void *)(uintptr_t)wrong;
}

uint64_t wrong_in_threads(void) {
    uint64_t wrong = 0;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *found = 0;
        wrong += pthread_create(&thread, 0, use_thread_local, 0) != 0;
        pthread_join(thread, &found);
        wrong += (uintptr_t)found;
    }
    return wrong;
}
