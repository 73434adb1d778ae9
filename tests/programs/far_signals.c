/* Signal handlers that use far memory while the interrupted thread changes it; every word is checked.
   far_signals WAY COUNT. WAY: `timer`, an interval timer's SIGALRM; `storm`, SIGUSR1 from another thread to each of
   three; `marked`, as `timer`, in marked regions; `fork`, as `timer`, with handlers that fork; `late`, as `timer`, with far
   memory that the program asks for itself; `quick`, handlers that map memory and fork, in a loop of `malloc` and `free` of
   untouched blocks. It ends when COUNT signals have been handled, or never if COUNT is 0. After some
   signals it prints `working`. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE = 32 << 10, SHARED = 16 << 20, RW = PROT_READ | PROT_WRITE, PLAIN = MAP_PRIVATE | MAP_ANONYMOUS };
enum { WORKING = 20, THREADS = 3 };

extern int largesse_tune_begin(const char *) __attribute__((weak));
extern int largesse_tune_end(const char *) __attribute__((weak));
extern const char *largesse_far_memory(const char *, const char *, const char *) __attribute__((weak));

static uint64_t *shared; /* far memory that is never changed */
static int nowhere, file;
static int forks, quick;
static unsigned most;
static atomic_uint handled, wrong;
static __thread uint64_t *back; /* far memory into which the handler of this thread reads back */
static __thread uint64_t state;

static int is_over(void) { return most != 0 && handled >= most; }

static uint64_t next(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}

static uint64_t word(size_t at, uint64_t salt) { return (at + salt) * 0x9e3779b97f4a7c15u | 1; }

/* Writes the first and the last word of every page. */
static void fill(void *at, size_t len, uint64_t salt) {
    uint64_t *words = at;
    for (size_t w = 0; w < len / 8; w += w % (PAGE / 8) ? 1 : PAGE / 8 - 1) words[w] = word(w, salt);
}

static void check(const void *at, size_t len, uint64_t salt) {
    const uint64_t *words = at;
    for (size_t w = 0; w < len / 8; w += w % (PAGE / 8) ? 1 : PAGE / 8 - 1) wrong += words[w] != word(w, salt);
}

static void check_zero(const void *at, size_t len) {
    const uint64_t *words = at;
    for (size_t w = 0; w < len / 8; w += w % (PAGE / 8) ? 1 : PAGE / 8 - 1) wrong += words[w] != 0;
}

/* Writes a piece of far memory to a file and reads it back into other far memory. */
static void handle(int signal) {
    (void)signal;
    int before = errno;
    unsigned count = handled++;
    if (!back) return;
    size_t at = (size_t)(count * 2654435761u % (SHARED / PIECE)) * PIECE;
    const char *from = (const char *)shared + at;
    off_t place = (off_t)at;
    wrong += write(nowhere, from, PIECE) != PIECE;
    wrong += pwrite(file, from, PIECE, place) != PIECE;
    wrong += pread(file, back, PIECE, place) != PIECE;
    for (size_t w = 0; w < PIECE / 8; w++) wrong += back[w] != word(at / 8 + w, 1);
    if (quick) {
        void *mapping = mmap(NULL, 4 << 20, RW, PLAIN, -1, 0);
        wrong += mapping == MAP_FAILED || munmap(mapping, 4 << 20) != 0;
    }
    if (quick || (forks && count % 4 == 0)) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) _exit(write(nowhere, from, PIECE) != PIECE || *(const uint64_t *)from != word(at / 8, 1));
        wrong += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    if (count == WORKING) wrong += write(1, "working\n", 8) != 8;
    errno = before;
}

static void use_heap(void) {
    size_t len = (size_t)(256 + next() % 1024) << 10, more = len * 2;
    uint64_t salt = next();
    char *block = next() % 2 ? malloc(len) : NULL;
    if (!block) {
        block = calloc(len, 1);
        check_zero(block, len);
    }
    fill(block, len, salt);
    block = realloc(block, more);
    check(block, len, salt);
    block = realloc(block, len / 2);
    check(block, len / 2, salt);
    free(block);
    void *aligned = NULL;
    wrong += posix_memalign(&aligned, 2 << 20, len) != 0;
    free(aligned);
}

static void use_mappings(void) {
    size_t len = (size_t)(256 + next() % 256) * PAGE, part = len / 2 / PAGE * PAGE;
    uint64_t salt = next();
    char *at = mmap(NULL, len, RW, PLAIN, -1, 0);
    fill(at, len, salt);
    wrong += mprotect(at, part, PROT_READ) != 0;
    check(at, len, salt);
    wrong += mprotect(at, part, RW) != 0;
    at = mremap(at, len, 3 * len, MREMAP_MAYMOVE);
    check(at, len, salt);
    wrong += madvise(at, part, MADV_DONTNEED) != 0;
    check_zero(at, part);
    wrong += munmap(at + part, len) != 0;
    wrong += munmap(at, part) != 0 || munmap(at + part + len, 3 * len - part - len) != 0;
}

static void use_heap_quickly(void) {
    for (size_t i = 0; i < 100; i++) {
        char *volatile block = malloc((300 + i) << 10);
        free(block);
    }
}

static void *work(void *argument) {
    state = 88172645463325252u + (uintptr_t)argument;
    back = malloc(1 << 20);
    memset(back, 1, 1 << 20);
    do {
        int marked = argument == NULL && largesse_tune_begin && largesse_tune_end;
        if (marked) largesse_tune_begin("the loop");
        if (quick) {
            use_heap_quickly();
        } else {
            use_heap();
            use_mappings();
        }
        if (marked) largesse_tune_end("the loop");
    } while (!is_over());
    uint64_t *last = back;
    back = NULL;
    free(last);
    return NULL;
}

static void tick(long microseconds) {
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void storm(void) {
    pthread_t all[THREADS];
    for (int t = 0; t < THREADS; t++) pthread_create(&all[t], NULL, work, (void *)(uintptr_t)(t + 1));
    do {
        for (int t = 0; t < THREADS; t++) pthread_kill(all[t], SIGUSR1);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    } while (!is_over());
    for (int t = 0; t < THREADS; t++) pthread_join(all[t], NULL);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *way = argv[1];
    most = (unsigned)atol(argv[2]);
    if (strcmp(way, "late") == 0 && largesse_far_memory) {
        const char *why = largesse_far_memory("8M", NULL, NULL);
        if (why) { printf("%s\n", why); return 4; }
    }
    char name[] = "signals-XXXXXX";
    file = mkstemp(name);
    unlink(name);
    nowhere = open("/dev/null", O_WRONLY);
    shared = malloc(SHARED);
    if (file < 0 || nowhere < 0 || !shared) return 3;
    for (size_t w = 0; w < SHARED / 8; w++) shared[w] = word(w, 1);
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    quick = strcmp(way, "quick") == 0;
    forks = strcmp(way, "fork") == 0;
    if (strcmp(way, "storm") == 0) {
        storm();
    } else {
        tick(quick ? 1000 : 3000);
        work((void *)(uintptr_t)(strcmp(way, "marked") != 0));
        tick(0);
    }
    for (size_t w = 0; w < SHARED / 8; w++) wrong += shared[w] != word(w, 1);
    printf("%u wrong\n", wrong);
    return wrong != 0;
}
