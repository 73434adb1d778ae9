/* Uses the kernel in ways that a system-call filter could disturb, while blocks become far memory near a limit.
   limit_calls MIB [mapped]: fills that many mebibytes in blocks of 8 MiB, which it maps itself if asked. Before that, it blocks all signals, puts a signal stack
   into a large block, and starts a thread that waits in read(2) for bytes into a block that nobody has touched. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 256, BLOCK = 8 << 20, WORDS = BLOCK / 8, STACK = 512 << 10, MESSAGE = 1 << 20 };
static uint64_t *blocks[MOST];
static size_t count;
static int ends[2];
static volatile size_t in_handler = SIZE_MAX;

static int is_mapped;
static void *get(size_t bytes) {
    if (!is_mapped) return malloc(bytes);
    /* At least a mebibyte: smaller mappings are not far. */
    void *at = mmap(NULL, bytes < MESSAGE ? MESSAGE : bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static uint64_t value(size_t block, size_t word) { return block * 1000003 + word * 7919; }
static size_t wrong(size_t block) {
    size_t found = 0;
    for (size_t word = 0; word < WORDS; word++) found += blocks[block][word] != value(block, word);
    return found;
}
static size_t wrong_in_all(void) {
    size_t found = 0;
    for (size_t block = 0; block < count; block++) found += wrong(block);
    return found;
}

static void fail(const char *what) { printf("%s: %s\n", what, strerror(errno)); fflush(stdout); _exit(3); }
static long no_new_privileges(void) {
    char line[256];
    long answer = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status)) sscanf(line, "NoNewPrivs: %ld", &answer);
    if (status) fclose(status);
    return answer;
}

/* Waits in the first read while the block becomes far memory. */
static void *receive(void *into) {
    size_t got = 0;
    while (got < MESSAGE) {
        ssize_t now = read(ends[0], (char *)into + got, MESSAGE - got);
        if (now <= 0) fail("read from the pipe");
        got += (size_t)now;
    }
    return 0;
}

/* Runs on the signal stack, with all signals blocked. */
static void handle(int signal) {
    uint64_t word;
    (void)signal;
    int file = open("words", O_RDONLY);
    if (pread(file, &word, 8, 80) == 8) in_handler = word != value(0, 10);
    close(file);
    in_handler += wrong(0);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    size_t found = 0;
    is_mapped = argc > 2 && !strcmp(argv[2], "mapped");
    count = (size_t)atol(argv[1]) / (BLOCK >> 20);
    sigset_t all, none;
    sigfillset(&all), sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &all, 0);
    stack_t stack = {.ss_sp = get(STACK), .ss_size = STACK};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    action.sa_mask = all;
    if (!stack.ss_sp || sigaltstack(&stack, 0) || sigaction(SIGUSR1, &action, 0)) fail("signals");
    long before = no_new_privileges();

    /* In large pages of its own, none of which is touched. */
    char *around = get(BLOCK), *message = around + BLOCK / 2;
    pthread_t thread;
    if (!around || pipe(ends) || pthread_create(&thread, 0, receive, message)) fail("thread");
    for (size_t block = 0; block < count; block++) {
        blocks[block] = get(BLOCK);
        if (!blocks[block]) fail("malloc");
        for (size_t word = 0; word < WORDS; word++) blocks[block][word] = value(block, word);
    }
    found += wrong_in_all();

    /* The first block was evicted, and is what the thread gets. */
    for (size_t sent = 0; sent < MESSAGE;) {
        ssize_t now = write(ends[1], (char *)blocks[0] + sent, MESSAGE - sent);
        if (now <= 0) fail("write to the pipe");
        sent += (size_t)now;
    }
    pthread_join(thread, 0);
    for (size_t word = 0; word < MESSAGE / 8; word++) found += ((uint64_t *)message)[word] != value(0, word);

    int file = open("words", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, blocks[0], BLOCK) != BLOCK) fail("write to a file");
    memset(blocks[1], 0, BLOCK);
    found += wrong_in_all() - wrong(1);
    if (pread(file, blocks[1], BLOCK, 0) != BLOCK) fail("read of a file");
    found += memcmp(blocks[0], blocks[1], BLOCK) != 0;

    sigprocmask(SIG_SETMASK, &none, 0);
    raise(SIGUSR1);
    found += in_handler;

    pid_t child = fork();
    if (child == 0) _exit(wrong(0) || system("exit 5") != 5 << 8);
    int status = -1;
    waitpid(child, &status, 0);
    printf("%zu wrong, child %#x\n", found, status);
    printf("new privileges excluded: %ld before, %ld after\n", before, no_new_privileges());
    unlink("words");
    return found != 0;
}
