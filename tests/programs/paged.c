/* Several threads make random reads and writes, and every word is checked. paged MIB THREADS ROUNDS */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t *words;
static size_t count;
static long threads, rounds;
#ifdef THREAD_LOCAL
/* KiB of thread-local data, which the C library puts on the stack of each thread. */
static __thread volatile char own_data[THREAD_LOCAL << 10] = {1};
/* Whether the thread has its first look at its copy, which it changes. */
#define IS_NEW() (own_data[0] == 1 && ++own_data[0] == 2)
#else
#define IS_NEW() 1
#endif

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13; *state ^= *state >> 7; *state ^= *state << 17;
    return *state;
}

/* Word w belongs to thread w % threads and holds w * 3 + the number of times it was written. The
   second pass repeats the first one's random sequence, so that it knows how often that was. */
static void *work(void *argument) {
    long mine = (long)argument;
    uint64_t state = 88172645463325252ull + (uint64_t)mine, again = state, wrong = !IS_NEW();
    size_t own = count / (size_t)threads;
    for (long i = 0; i < rounds; i++) words[next(&state) % own * (size_t)threads + (size_t)mine] += 1;
    unsigned char *times = calloc(own, 1);
    for (long i = 0; i < rounds; i++) times[next(&again) % own]++;
    for (size_t i = 0; i < own; i++) {
        size_t w = i * (size_t)threads + (size_t)mine;
        wrong += words[w] != w * 3 + times[i];
    }
    free(times);
    return (void *)(uintptr_t)wrong;
}

int main(int argc, char **argv) {
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
    threads = argc > 2 ? atol(argv[2]) : 4;
    rounds = argc > 3 ? atol(argv[3]) : 100000;
    count = bytes / 8;
    words = malloc(bytes);
    if (!words) { puts("no memory"); return 3; }
    for (size_t w = 0; w < count; w++) words[w] = w * 3;
    pthread_t all[64];
    for (long t = 0; t < threads; t++) pthread_create(&all[t], NULL, work, (void *)t);
    uint64_t wrong = 0;
    for (long t = 0; t < threads; t++) { void *one; pthread_join(all[t], &one); wrong += (uintptr_t)one; }
    printf("%zu words, %llu wrong\n", count, (unsigned long long)wrong);
    free(words);
    return wrong != 0;
}
