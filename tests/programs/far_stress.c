/* Threads read and write random pages, and every word is checked. far_stress MIB THREADS LENGTH
   LENGTH is a number of seconds, `until-eof` (the end of standard input), or `N-steps` for each thread.
   A page belongs to one thread and its neighbours to others, so that all threads share transfer units. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, WORDS = PAGE / 8 };

static uint64_t (*pages)[WORDS];
static unsigned char *version; /* number of writes to each page */
static size_t count;
static long threads;
static double end;
static uint64_t most_steps; /* most steps of each thread; 0 means no limit */
static volatile int input_ended;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13; *state ^= *state >> 7; *state ^= *state << 17;
    return *state;
}

static uint64_t value(size_t page, size_t word) {
    return (page * WORDS + word + 1) * 0x9e3779b97f4a7c15u ^ version[page];
}

static void write_page(size_t page) {
    version[page]++;
    for (size_t w = 0; w < WORDS; w++) pages[page][w] = value(page, w);
}

static uint64_t wrong_in(size_t page) {
    uint64_t wrong = 0;
    for (size_t w = 0; w < WORDS; w++) wrong += pages[page][w] != value(page, w);
    return wrong;
}

struct done { uint64_t wrong, steps; };

static void *work(void *argument) {
    size_t mine = (size_t)(uintptr_t)argument, own = count / (size_t)threads;
    uint64_t state = 88172645463325252ull + mine;
    struct done *done = calloc(1, sizeof *done);
    for (size_t i = 0; i < own; i++) write_page(i * (size_t)threads + mine);
    /* At least one round: the input may end while the pages are written for the first time. */
    do {
        for (int k = 0; k < 64; k++, done->steps++) {
            /* Half of the accesses are to single pages, half to runs of pages. */
            size_t first = next(&state) % own, run = next(&state) % 2 ? 1 : next(&state) % 64;
            int writes = next(&state) % 2 == 0;
            for (size_t i = first; i < first + run && i < own; i++) {
                size_t page = i * (size_t)threads + mine;
                if (writes) write_page(page); else done->wrong += wrong_in(page);
            }
        }
    } while (most_steps ? done->steps < most_steps : end > 0 ? now() < end : !input_ended);
    for (size_t i = 0; i < own; i++) done->wrong += wrong_in(i * (size_t)threads + mine);
    return done;
}

int main(int argc, char **argv) {
    size_t bytes = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
    threads = argc > 2 ? atol(argv[2]) : 8;
    const char *length = argc > 3 ? argv[3] : "3";
    if (strstr(length, "-steps")) most_steps = strtoull(length, NULL, 10);
    else if (strcmp(length, "until-eof")) end = now() + atof(length);
    count = bytes / PAGE;
    pages = aligned_alloc(PAGE, bytes);
    version = calloc(count, 1);
    if (!pages || !version || threads > 64) return 3;
    pthread_t all[64];
    for (long t = 0; t < threads; t++) pthread_create(&all[t], NULL, work, (void *)(uintptr_t)t);
    if (!most_steps && !(end > 0)) {
        while (getchar() != EOF) {}
        input_ended = 1;
    }
    struct done sum = {0, 0};
    for (long t = 0; t < threads; t++) {
        void *one;
        pthread_join(all[t], &one);
        sum.wrong += ((struct done *)one)->wrong;
        sum.steps += ((struct done *)one)->steps;
    }
    printf("%llu wrong\n", (unsigned long long)sum.wrong);
    return sum.wrong != 0 || sum.steps == 0;
}
