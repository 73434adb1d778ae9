/* Leaves system calls on far memory in the middle, and checks that their pages can be evicted afterwards.
   far_jumps WAY [onstack]. WAY: `jump`, a SIGALRM handler leaves a blocking read by siglongjmp; `inner`, the handler leaves
   a read of its own, and the read that it interrupted goes on; `cancel`, threads are cancelled in a read; `fork`, the
   handler forks, and the read goes on in the child, too. With `onstack`, handlers run on a signal stack. Prints how many
   bytes a read of a full pipe returns: fewer if too many pages are still pinned. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, BUFFERS = 40, FLOOD = 16 << 20, FULL = 512 << 10, PAGE = 4096 };

static char *buffers, *flood;
static int empty[2], full[2], bytes[2];
static atomic_int reader;
static volatile pid_t child;
static sigjmp_buf before, inside;
static volatile sig_atomic_t depth, turn;

/* Uses far memory in a call that returns at once. */
static void read_byte(int at) { read(bytes[0], buffers + (size_t)at % BUFFERS * BUFFER, write(bytes[1], "", 1)); }

static void tick(void) {
    struct itimerval once = {.it_value = {0, 1000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static char *buffer(int at) { return buffers + (size_t)at % BUFFERS * BUFFER; }

static void leave(int signal) {
    (void)signal;
    siglongjmp(before, 1);
}

/* Interrupts the read of `inner` twice: once in that read, and once in its own. */
static void read_inside(int signal) {
    (void)signal;
    if (depth++) siglongjmp(inside, 1);
    if (sigsetjmp(inside, 1) == 0) {
        tick();
        read(empty[0], buffer(turn + 1), BUFFER);
    }
    depth = 0;
    for (size_t at = 0; turn % 10 == 0 && at < FLOOD; at += PAGE) flood[at]++;
    read_byte(turn + 2);
    write(empty[1], "0123456789", 10);
}

/* The read that is interrupted goes on in the child, and then in the parent. */
static void fork_inside(int signal) {
    (void)signal;
    int status = 0;
    child = fork();
    if (child > 0) waitpid(child, &status, 0);
    if (child < 0 || status != 0) printf("a read that went on in the child failed: %d\n", status);
    for (size_t at = 0; at < FLOOD; at += PAGE) flood[at]++;
    write(empty[1], "0123456789", 10);
}

static void handle_by(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL), sigaction(SIGALRM, &action, NULL);
}

static void jump(int flags) {
    handle_by(leave, flags);
    for (turn = 0; turn < BUFFERS; turn++)
        if (sigsetjmp(before, 1) == 0) {
            tick();
            read(empty[0], buffer(turn), BUFFER);
        }
}

static void inner(int flags) {
    handle_by(read_inside, SA_RESTART | SA_NODEFER | flags);
    for (turn = 0; turn < BUFFERS; turn++) {
        tick();
        ssize_t got = read(empty[0], buffer(turn), BUFFER);
        if (got != 10 || memcmp(buffer(turn), "0123456789", 10)) printf("an interrupted read returned %zd\n", got);
    }
}

static void forks(void) {
    handle_by(fork_inside, SA_RESTART);
    for (turn = 0; turn < 4; turn++) {
        tick();
        int bad = read(empty[0], buffer(turn), BUFFER) != 10 || memcmp(buffer(turn), "0123456789", 10);
        if (child == 0) _exit(bad);
        if (bad) printf("an interrupted read failed\n");
    }
}

static void *wait_in_read(void *at) {
    reader = gettid();
    read(empty[0], at, BUFFER);
    return NULL;
}

/* Returns whether the thread `reader` is in the kernel, in a read of the empty pipe. */
static int is_reading(void) {
    char name[64];
    long call = -1;
    unsigned long fd = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/syscall", reader);
    FILE *file = reader ? fopen(name, "r") : NULL;
    if (!file) return 0;
    int good = fscanf(file, "%ld %lx", &call, &fd) == 2 && call == SYS_read && fd == (unsigned long)empty[0];
    fclose(file);
    return good;
}

static void cancel(void) {
    for (int at = 0; at < BUFFERS; at++) {
        pthread_t thread;
        reader = 0;
        pthread_create(&thread, NULL, wait_in_read, buffer(at));
        while (!is_reading()) sched_yield();
        pthread_cancel(thread), pthread_join(thread, NULL);
    }
    /* Each call finds one thread that has ended. */
    for (int at = 0; at < 2 * BUFFERS; at++) read_byte(at);
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    buffers = malloc((size_t)BUFFER * BUFFERS), flood = malloc(FLOOD);
    memset(buffers, 1, (size_t)BUFFER * BUFFERS), memset(flood, 1, FLOOD);
    pipe(empty), pipe(full), pipe(bytes);
    if (fcntl(full[1], F_SETPIPE_SZ, FULL) < FULL) return 3;
    for (int at = 0; at < FULL; at += PAGE) write(full[1], flood, PAGE);
    int flags = argc > 2 ? SA_ONSTACK : 0;
    if (strcmp(way, "jump") == 0) jump(flags);
    else if (strcmp(way, "inner") == 0) inner(flags);
    else if (strcmp(way, "fork") == 0) forks();
    else cancel();
    printf("%zd\n", read(full[0], flood, FULL));
    return 0;
}
