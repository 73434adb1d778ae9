/* Threads pass blocks to each other: one fills a block, another checks it and frees or resizes it. Threads end and new ones
 * start, and the process forks while they run.
 * threads.bin MODE: hand | fork | forks | first | watch | plugin FILE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CELLS 64
#define THREADS 8
typedef struct { size_t size; unsigned seed; } head_t;
static _Atomic(head_t *) cells[CELLS];
static atomic_int stop, wrong;

static unsigned char mark(unsigned seed, size_t i) { return (unsigned char)(seed * 17 + i / 4096); }
static head_t *filled(head_t *h, size_t size, unsigned seed, size_t from) {
    if (!h) { wrong++; return NULL; }
    unsigned char *p = (unsigned char *)h;
    for (size_t i = from; i < size; i += 4096) p[i] = mark(seed, i);
    p[size - 1] = mark(seed, size - 1);
    h->size = size; h->seed = seed;
    return h;
}
static void check(head_t *h) {
    unsigned char *p = (unsigned char *)h;
    for (size_t i = 4096; i < h->size; i += 4096) if (p[i] != mark(h->seed, i)) { wrong++; return; }
    if (p[h->size - 1] != mark(h->seed, h->size - 1)) wrong++;
}
static size_t any_size(unsigned *seed) {
    int r = rand_r(seed) % 10;
    return r < 2 ? 5000 + rand_r(seed) % 100000 : r < 9 ? 200000 + rand_r(seed) % 2000000 : 4000000 + rand_r(seed) % 6000000;
}
static void *exchange(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < 400 && !stop; i++) {
        size_t size = any_size(&seed);
        head_t *h = NULL;
        switch (rand_r(&seed) % 4) {
        case 0: h = calloc(1, size);
            for (size_t k = 0; h && k < size; k += 997) if (((char *)h)[k]) { wrong++; break; }
            break;
        case 1: if (posix_memalign((void **)&h, 4096, size)) wrong++; break;
        default: h = malloc(size);
        }
        h = filled(h, size, seed, 4096);
        head_t *other = atomic_exchange(&cells[rand_r(&seed) % CELLS], h);
        if (!other) continue;
        check(other);
        if (rand_r(&seed) % 3 == 0) {
            size_t old = other->size, new = any_size(&seed); unsigned mine = other->seed;
            other = realloc(other, new);
            if (!other) { wrong++; continue; }
            unsigned char *p = (unsigned char *)other;
            for (size_t k = 4096; k + 1 < (old < new ? old : new); k += 4096) if (p[k] != mark(mine, k)) { wrong++; break; }
            other = atomic_exchange(&cells[rand_r(&seed) % CELLS], filled(other, new, mine, 4096));
            if (!other) continue;
            check(other);
        }
        free(other);
    }
    return NULL;
}
static void *forever(void *argument) {
    for (unsigned round = 0; !stop; round++) exchange((void *)((uintptr_t)argument + round * 100));
    return NULL;
}
static int child_works(void) {
    for (int i = 0; i < CELLS; i++) { head_t *h = atomic_load(&cells[i]); if (h && i % 3 == 0) { atomic_store(&cells[i], NULL); check(h); free(h); } }
    for (int i = 0; i < 20; i++) { head_t *h = filled(malloc(3000000 + i), 3000000 + i, i, 4096); check(h); free(realloc(h, 6000000)); }
    return wrong ? 1 : 0;
}
/* Prints the stack of a child that does not end. */
static void hangs(int number) {
    void *calls[40];
    (void)number;
    backtrace_symbols_fd(calls, backtrace(calls, 40), STDERR_FILENO);
    _exit(99);
}
static int fork_and_wait(int (*work)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) { signal(SIGALRM, hangs); alarm(20); _exit(work()); }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status) { printf("child: status %x\n", status); return 1; }
    return 0;
}
static void start(pthread_t *threads, int count, void *(*work)(void *)) {
    for (int i = 0; i < count; i++) if (pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1))) abort();
}
static void join(pthread_t *threads, int count) { for (int i = 0; i < count; i++) pthread_join(threads[i], NULL); }

static void *forker(void *argument) {
    (void)argument;
    for (int i = 0; i < 10; i++) if (fork_and_wait(child_works)) wrong++;
    return NULL;
}

/* One thread requests the first large block of the process while the other forks. */
static void *first(void *argument) { head_t *h = filled(malloc(3000000), 3000000, 1, 4096); check(h); free(h); return argument; }
static int one_forks(void) {
    pthread_t other;
    start(&other, 1, first);
    usleep((unsigned)getpid() % 100 * 5); /* the delay differs between processes */
    int result = fork_and_wait(child_works);
    join(&other, 1);
    return result;
}

/* Calls functions of the library while other threads allocate and fork. */
static size_t (*list)(void *, size_t);
static int (*stats)(void *);
static int child_lists(void) {
    static struct { size_t struct_size; char rest[48]; } blocks[512];
    blocks[0].struct_size = 48; list(blocks, 512);
    return child_works();
}
static void *watcher(void *argument) {
    (void)argument;
    struct { size_t struct_size; char rest[48]; } *blocks = malloc(56 * 512);
    struct { size_t struct_size; char rest[2000]; } all = { sizeof all, { 0 } };
    while (!stop) { blocks[0].struct_size = 48; list(blocks, 512); if (stats(&all)) wrong++; }
    free(blocks);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    void *here;
    backtrace(&here, 1); /* the first call loads a library */
    pthread_t threads[THREADS], others[2];
    if (!strcmp(argv[1], "hand")) {
        for (int round = 0; round < 3; round++) { start(threads, THREADS, exchange); join(threads, THREADS); }
    } else if (!strcmp(argv[1], "fork")) {
        start(threads, 4, forever);
        for (int i = 0; i < 25; i++) if (fork_and_wait(child_works)) wrong++;
        stop = 1; join(threads, 4);
    } else if (!strcmp(argv[1], "forks")) { /* two threads fork at once */
        start(threads, 2, forever); start(others, 2, forker); join(others, 2);
        stop = 1; join(threads, 2);
    } else if (!strcmp(argv[1], "first")) {
        for (int i = 0; i < 200 && !wrong; i++) if (fork_and_wait(one_forks)) wrong++;
        if (child_works()) wrong++; /* this process has no heap yet */
    } else if (!strcmp(argv[1], "watch")) {
        list = (size_t (*)(void *, size_t))dlsym(RTLD_DEFAULT, "largesse_blocks");
        stats = (int (*)(void *))dlsym(RTLD_DEFAULT, "largesse_stats");
        if (!list || !stats) { puts("no largesse_blocks"); return 1; }
        start(threads, 2, forever); start(others, 2, watcher);
        for (int i = 0; i < 60; i++) if (fork_and_wait(child_lists)) { wrong++; break; }
        stop = 1; join(threads, 2); join(others, 2);
    } else if (!strcmp(argv[1], "plugin") && argc > 2) {
        for (int i = 0; i < 30; i++) {
            void *object = dlopen(argv[2], RTLD_NOW);
            if (!object) { puts(dlerror()); return 1; }
            void *(*make)(size_t) = (void *(*)(size_t))dlsym(object, "make");
            char *block = make(3000000);
            memset(block, i, 3000000);
            dlclose(object); /* its block outlives it */
            block = realloc(block, 7000000);
            for (int k = 0; k < 3000000; k += 4096) if (block[k] != i) { wrong++; break; }
            free(block);
        }
    } else return 2;
    for (int i = 0; i < CELLS; i++) { head_t *h = atomic_load(&cells[i]); if (h) { check(h); free(h); } }
    printf(wrong ? "%d blocks were wrong\n" : "every block was right\n", wrong);
    return wrong != 0;
}
