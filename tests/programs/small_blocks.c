/* Small blocks beyond a bound on memory; every byte is checked.
   small_blocks WAY MIB. WAY: `list`, MIB mebibytes of nodes in one thread, resized, freed and cleared; `threads`, threads
   that free each other's nodes, end, and are started again; `fork`, children of a process with such threads check and
   change its nodes; `calls`, system calls on nodes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, SLOTS = 512, KEYS = 40, HANDLERS = 60, CHILDREN = 3 };

struct node { uint32_t size, seed; unsigned char text[]; };

static atomic_uint wrong;
static struct node **nodes;
static size_t count;
static _Atomic(struct node *) slots[SLOTS];

static uint32_t hash(uint32_t x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ x >> 16; }

/* Most nodes are short; one of 64 has some kilobytes. */
static uint32_t size_of(uint32_t seed) {
    uint32_t h = hash(seed);
    return 1 + (h % 64 ? h / 64 % 100 : h / 64 % 30000);
}

static unsigned char byte(uint32_t seed, uint32_t at) { return (unsigned char)(seed * 31 + at * 7 + (at >> 8) + 1); }

static void fill(struct node *node, uint32_t from) {
    for (uint32_t at = from; at < node->size; at++) node->text[at] = byte(node->seed, at);
}

static void check(const struct node *node) {
    for (uint32_t at = 0; at < node->size; at++) if (node->text[at] != byte(node->seed, at)) { wrong++; return; }
}

static struct node *make(uint32_t seed) {
    uint32_t size = size_of(seed);
    struct node *node = seed % 2 ? malloc(sizeof *node + size) : calloc(1, sizeof *node + size);
    if (!node) { puts("no memory"); exit(3); }
    if (seed % 2 == 0) for (uint32_t at = 0; at < size; at++) wrong += node->text[at] != 0;
    wrong += (uintptr_t)node % 16 != 0 || malloc_usable_size(node) < sizeof *node + size;
    node->size = size; node->seed = seed;
    fill(node, 0);
    return node;
}

static void drop(struct node *node) {
    if (!node) return;
    check(node);
    memset(node, 0xee, sizeof *node + node->size);
    free(node);
}

static struct node *resize(struct node *node, uint32_t size) {
    uint32_t before = node->size;
    node = realloc(node, sizeof *node + size);
    if (!node) { puts("no memory"); exit(3); }
    node->size = size < before ? size : before;
    check(node);
    node->size = size;
    fill(node, size < before ? size : before);
    return node;
}

static void build(size_t mib) {
    size_t bytes = 0, room = 0;
    while (bytes < mib << 20) {
        if (count == room) nodes = realloc(nodes, (room = room * 2 + 1024) * sizeof *nodes);
        nodes[count] = make((uint32_t)count);
        bytes += nodes[count++]->size + sizeof(struct node);
    }
}

static void change(size_t calls, uint32_t salt) {
    for (uint32_t call = 0; call < calls; call++) {
        uint32_t h = hash(call + salt); size_t at = h % count;
        if (h % 5 == 0) { drop(nodes[at]); nodes[at] = make(h); }
        else if (h % 5 == 1) nodes[at] = resize(nodes[at], size_of(h + 1));
        else check(nodes[at]);
    }
}

static void check_all(void) { for (size_t at = 0; at < count; at++) check(nodes[at]); }

static size_t resident_kib(void) {
    static char text[4096];
    int file = open("/proc/self/status", O_RDONLY); ssize_t len = read(file, text, sizeof text - 1); close(file);
    text[len > 0 ? len : 0] = 0;
    const char *line = strstr(text, "RssAnon:");
    return line ? strtoul(line + 8, NULL, 10) : 0;
}

static void list(size_t mib) {
    build(mib);
    printf("resident %zu\n", resident_kib());
    change(count / 32, 1);
    check_all();
    for (size_t at = 0; at < count; at++) if (at % 16) { drop(nodes[at]); nodes[at] = NULL; }
    for (size_t at = 0; at < count; at++) if (at % 16) nodes[at] = make((uint32_t)at + 7);
    for (size_t at = 0; at < count; at++) drop(nodes[at]);
}

static void *trade(void *argument) {
    uint32_t state = (uint32_t)(uintptr_t)argument;
    for (int call = 0; call < 5000; call++) {
        state = hash(state + 1);
        drop(atomic_exchange(&slots[state % SLOTS], make(state)));
    }
    return NULL;
}

static void start(pthread_t *threads, uint32_t salt) {
    for (int one = 0; one < THREADS; one++) {
        if (pthread_create(&threads[one], NULL, trade, (void *)(uintptr_t)(salt * THREADS + one + 1)) != 0) exit(4);
    }
}

static void join(pthread_t *threads) { for (int one = 0; one < THREADS; one++) pthread_join(threads[one], NULL); }

static void threads(size_t mib) {
    build(mib);
    for (uint32_t round = 0; round < 3; round++) {
        pthread_t some[THREADS];
        start(some, round);
        change(2000, round);
        join(some);
    }
    check_all();
    for (int slot = 0; slot < SLOTS; slot++) drop(slots[slot]);
}

static atomic_int handled;
static void handle(void) { handled++; }

static int child(uint32_t number, FILE *file, const char *kept) {
    wrong = handled != HANDLERS * (int)(number + 1) || strcmp(kept, "kept") != 0;
    check_all();
    change(500, number * 1000);
    pthread_t some[THREADS];
    for (int slot = 0; slot < SLOTS; slot++) drop(slots[slot]), slots[slot] = NULL;
    start(some, number + 100);
    join(some);
    check_all();
    return fprintf(file, "child") != 5 || fclose(file) != 0 || wrong != 0;
}

/* The C library has blocks for its files, for keys of threads, and for more handlers than fit its table. */
static void forks(size_t mib) {
    pthread_key_t keys[KEYS]; pthread_t some[THREADS];
    for (int key = 0; key < KEYS; key++) if (pthread_key_create(&keys[key], NULL) != 0) exit(4);
    pthread_setspecific(keys[KEYS - 1], strdup("kept"));
    for (int one = 0; one < HANDLERS; one++) pthread_atfork(NULL, NULL, handle);
    FILE *file = fopen("/dev/null", "w");
    if (!file) exit(4);
    build(mib);
    for (uint32_t number = 0; number < CHILDREN; number++) {
        start(some, number);
        for (int slot = 0; slot < 100; slot++) sched_yield();
        handled = HANDLERS * (int)number;
        pid_t pid = fork();
        if (pid == 0) _exit(child(number, file, pthread_getspecific(keys[KEYS - 1])));
        int status = 1;
        wrong += waitpid(pid, &status, 0) != pid || status != 0;
        change(500, number);
        join(some);
    }
    fclose(file);
    check_all();
}

/* Returns a block whose page is probably not resident, with the words of another one. */
static void *old(size_t call) {
    struct node *node = nodes[hash((uint32_t)call) % count];
    return node->size >= 64 ? node->text : NULL;
}

static void calls(size_t mib) {
    build(mib);
    int file = open("/dev/zero", O_RDWR), pipes[2];
    char name[] = "/tmp/small_blocks.XXXXXX"; int kept = mkstemp(name);
    if (file < 0 || kept < 0 || pipe(pipes) != 0) exit(4);
    for (size_t call = 0; call < 3000; call++) {
        unsigned char *at = old(call);
        if (!at) continue;
        unsigned char copy[64]; memcpy(copy, at, 1); /* one byte is touched now and then only */
        if (call % 3) at = old(call + 7777777) ? old(call + 7777777) : at;
        switch (call % 8) {
        case 0: wrong += read(file, at, 40) != 40 || at[39] != 0; break;
        case 1: wrong += write(pipes[1], at, 33) != 33 || read(pipes[0], copy, 33) != 33 || memcmp(copy, at, 33) != 0; break;
        case 2: wrong += getcwd((char *)at, 64) == NULL && errno != ERANGE; break;
        case 3: { struct iovec *part = (void *)at; *part = (struct iovec){ copy, 20 }; wrong += readv(file, part, 1) != 20; break; }
        case 4: { struct pollfd *poll1 = (void *)at; *poll1 = (struct pollfd){ file, POLLIN, 0 }; wrong += poll(poll1, 1, 0) != 1; break; }
        case 5: strcpy((char *)at, name); wrong += access((char *)at, R_OK) != 0; break;
        case 6: wrong += clock_getres(CLOCK_MONOTONIC, (struct timespec *)at) != 0 || nanosleep(memset(at, 0, 16), NULL) != 0; break;
        case 7: wrong += pwrite(kept, at, 64, 0) != 64 || pread(kept, copy, 64, 0) != 64 || memcmp(copy, at, 64) != 0; break;
        }
        struct stat *seen = malloc(sizeof *seen);
        wrong += fstat(kept, seen) != 0 || stat(name, seen) != 0 || !S_ISREG(seen->st_mode);
        free(seen);
        struct node *node = nodes[hash((uint32_t)(call % 3 && old(call + 7777777) ? call + 7777777 : call)) % count];
        fill(node, 0);
    }
    unlink(name);
    check_all();
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t mib = strtoul(argv[2], NULL, 10);
    if (strcmp(argv[1], "list") == 0) list(mib);
    else if (strcmp(argv[1], "threads") == 0) threads(mib);
    else if (strcmp(argv[1], "fork") == 0) forks(mib);
    else if (strcmp(argv[1], "calls") == 0) calls(mib);
    else return 2;
    printf("%s: %u wrong\n", argv[1], wrong);
    return wrong != 0;
}
