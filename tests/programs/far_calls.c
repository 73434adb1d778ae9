// Makes system calls on far memory, each after its pages have been evicted. far_calls [MIB [CALLS]]: MIB is the size of
// a block (12), of which more than a third must not be resident; CALLS is the number of calls of each of many threads
// (2000).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static size_t block, flooded;
static int calls = 2000;
static char *flood, *from, *to;
static int failed;

static void check(const char *what, int good) {
    if (!good) {
        printf("%s: failed, errno %d\n", what, errno);
        failed++;
    }
    errno = 0;
}

// Writes to other memory until all pages that are not in use have been evicted.
static void push_out(void) {
    for (int round = 0; round < 2; round++)
        for (size_t at = 0; at < flooded; at += 512) flood[at]++;
}

static void fill(char *into, unsigned seed) {
    for (size_t at = 0; at < block; at++) into[at] = (char)((at * 2654435761u >> 7) + seed);
}

// Returns the size of `twelfths` twelfths of a block, rounded down to whole pages.
static size_t part(size_t twelfths) { return block / 12 / 4096 * 4096 * twelfths; }

static int same(void) { return memcmp(from, to, block) == 0; }

static void files(void) {
    int fd = open("calls.dat", O_RDWR | O_CREAT | O_TRUNC, 0600);
    fill(from, 1), push_out();
    check("write", write(fd, from, block) == block);
    push_out(), lseek(fd, 0, SEEK_SET);
    check("read", read(fd, to, block) == block && same());
    fill(from, 2), push_out();
    check("pwrite", pwrite(fd, from, block, 4096) == block);
    push_out();
    check("pread", pread(fd, to, block, 4096) == block && same());
    fill(from, 3), push_out();
    struct iovec parts[3] = {{from, 5000}, {from + part(4) + 2304, 70000}, {from + part(9) + 1000, 1}};
    check("pwritev", pwritev(fd, parts, 3, 100) == 75001);
    struct iovec back[3] = {{to, 5000}, {to + part(4) + 2304, 70000}, {to + part(9) + 1000, 1}};
    push_out();
    check("preadv", preadv(fd, back, 3, 100) == 75001 && !memcmp(from, to, 5000) &&
                        !memcmp(from + part(4) + 2304, to + part(4) + 2304, 70000) && from[part(9) + 1000] == to[part(9) + 1000]);
    close(fd);

    FILE *file = fopen("calls.dat", "w+");
    fill(from, 4), from[block - 1] = 0, push_out();
    check("fwrite", fwrite(from, 1, block, file) == block);
    rewind(file), push_out();
    check("fread", fread(to, 1, block, file) == block && same());
    memset(from, 'x', block), from[block - 1] = 0, rewind(file), push_out();
    check("fprintf", fprintf(file, "%s", from) == block - 1 && fflush(file) == 0);
    rewind(file), push_out();
    check("fgets", fgets(to, block, file) == to && same());
    fclose(file);
}

static void *feed(void *fd) {
    check("write to a pipe", write(*(int *)fd, from, block) == block);
    close(*(int *)fd);
    return NULL;
}

static void pipes(void) {
    int ends[2];
    pthread_t writer;
    pipe(ends), fill(from, 5), push_out();
    pthread_create(&writer, NULL, feed, &ends[1]);
    size_t done = 0;
    for (ssize_t got; (got = read(ends[0], to + done, block - done)) > 0;) done += (size_t)got;
    pthread_join(writer, NULL), close(ends[0]);
    check("read from a pipe", done == block && same());
    // A read returns the available bytes at once, even if it asks for more.
    pipe(ends), write(ends[1], "some", 4), push_out();
    check("read what there is", read(ends[0], to, block) == 4 && !memcmp(to, "some", 4));
    close(ends[0]), close(ends[1]);
}

static void sockets(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), fill(from, 6), push_out();
    check("send", send(ends[0], from + 100, 60000, 0) == 60000);
    push_out();
    check("recv", recv(ends[1], to + 100, 60000, 0) == 60000 && !memcmp(from + 100, to + 100, 60000));
    // The structures that describe the message are far, too.
    struct msghdr *message = (void *)(from + part(8));
    struct iovec *parts = (void *)(from + part(9));
    *message = (struct msghdr){.msg_iov = parts, .msg_iovlen = 2};
    parts[0] = (struct iovec){from + 1000, 30000}, parts[1] = (struct iovec){from + part(3) + 1728, 30000};
    push_out();
    check("sendmsg", sendmsg(ends[0], message, 0) == 60000);
    parts[0].iov_base = to + 1000, parts[1].iov_base = to + part(3) + 1728, push_out();
    check("recvmsg", recvmsg(ends[1], message, 0) == 60000 && !memcmp(from + 1000, to + 1000, 30000) &&
                         !memcmp(from + part(3) + 1728, to + part(3) + 1728, 30000));
    close(ends[0]), close(ends[1]);
}

// Sends datagrams to an address: the data and the address each have a length.
static void datagrams(void) {
    struct sockaddr_in near = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in *far = (void *)(from + part(11));
    socklen_t len = sizeof near;
    int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
    check("bind", bind(in, (void *)&near, len) == 0 && getsockname(in, (void *)&near, &len) == 0);
    for (int round = 0; round < 2; round++) {
        fill(from, 7 + round), *far = near, push_out();
        check(round ? "sendto a far address" : "sendto",
              sendto(out, from + 100, 60000, 0, round ? (void *)far : (void *)&near, len) == 60000);
        push_out();
        check("recvfrom", recvfrom(in, to + 100, 60000, MSG_DONTWAIT, (void *)far, &(socklen_t){len}) == 60000 &&
                              !memcmp(from + 100, to + 100, 60000) && far->sin_family == AF_INET);
    }
    close(in), close(out);
}

static void structures(void) {
    struct stat *about = (void *)(to + 4096 - 8); // this crosses the boundary of two pages
    char *path = from + part(5) + 4090;
    strcpy(path, "calls.dat"), push_out();
    check("stat", stat(path, about) == 0 && S_ISREG(about->st_mode));
    push_out();
    int fd = open(path, O_RDONLY);
    check("open", fd >= 0), push_out();
    check("fstat", fstat(fd, about) == 0), close(fd);
    push_out();
    check("getcwd", getcwd(to + 70000, 4096) == to + 70000 && to[70000] == '/'), push_out();
    check("getrandom", getrandom(to, 200000, 0) == 200000), push_out();
    struct timespec *times = (void *)(to + 500000);
    check("clock_gettime", clock_gettime(CLOCK_PROCESS_CPUTIME_ID, times) == 0), push_out();
    times->tv_sec = 0, times->tv_nsec = 1000, push_out();
    check("nanosleep", nanosleep(times, NULL) == 0), push_out();
    check("getrusage", getrusage(RUSAGE_SELF, (void *)(to + 600000)) == 0);
    int ends[2];
    pipe(ends), write(ends[1], "x", 1);
    struct pollfd *polled = (void *)(to + 700000);
    *polled = (struct pollfd){.fd = ends[0], .events = POLLIN}, push_out();
    check("poll", poll(polled, 1, 1000) == 1 && polled->revents == POLLIN);
    fd_set *set = (void *)(to + 800000);
    FD_ZERO(set);
    FD_SET(ends[0], set);
    push_out();
    check("select", select(ends[0] + 1, set, NULL, NULL, NULL) == 1), close(ends[0]), close(ends[1]);
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
} *shared;

static void *player(void *number) {
    for (int round = 0; round < 200; round++) {
        pthread_mutex_lock(&shared->lock);
        while (shared->turn % 2 != *(int *)number) pthread_cond_wait(&shared->changed, &shared->lock);
        shared->turn++;
        pthread_cond_broadcast(&shared->changed);
        pthread_mutex_unlock(&shared->lock);
        if (round % 50 == 0 && *(int *)number) push_out();
    }
    return NULL;
}

static void locks(void) {
    static int numbers[2] = {0, 1};
    pthread_t threads[2];
    shared = (void *)(from + 123 * 4096);
    pthread_mutex_init(&shared->lock, NULL), pthread_cond_init(&shared->changed, NULL), shared->turn = 0;
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], NULL, player, &numbers[at]);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
    check("a lock", shared->turn == 400);
}

// A call that succeeds does not change `errno`, even while many threads fault at the same time.
static void *caller(void *changed) {
    unsigned at = (unsigned)gettid() * 7919;
    for (int round = 0; round < calls; round++, at = at * 1103515245 + 12345) {
        errno = 0;
        if (getrandom(to + (at >> 8) % (block - 4096), 4096, 0) == 4096 && errno != 0) *(int *)changed = errno;
    }
    return NULL;
}

static void kept_errno(void) {
    pthread_t threads[8];
    int changed[8] = {0}, kept = 1;
    push_out();
    for (int at = 0; at < 8; at++) pthread_create(&threads[at], NULL, caller, &changed[at]);
    for (int at = 0; at < 8; at++) {
        pthread_join(threads[at], NULL);
        if (changed[at] != 0) kept = 0, errno = changed[at];
    }
    check("errno after a success", kept);
}

static volatile sig_atomic_t handled;

static void handle(int signal) {
    (void)signal;
    to[part(7)]++; // this page may have been evicted
    handled++;
}

static void write_what_was_read(int signal) {
    (void)signal;
    to[part(6)] = 'w';
}

static void signals(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK}, old;
    stack_t stack = {.ss_sp = from + part(7), .ss_size = 1 << 16};
    sigset_t all, before;
    sigfillset(&action.sa_mask), sigfillset(&all);
    check("sigaltstack", sigaltstack(&stack, NULL) == 0);
    sigaction(SIGUSR1, &action, &old);
    for (int round = 0; round < 3; round++) push_out(), raise(SIGUSR1);
    check("a handler", handled == 3);
    // A page that is only read is filled write-protected, so that its first write is another fault.
    action.sa_handler = write_what_was_read, sigaction(SIGUSR2, &action, NULL);
    for (int round = 0; round < 3; round++) push_out(), (void)*(volatile char *)&to[part(6)];
    raise(SIGUSR2);
    check("a handler that writes", to[part(6)] == 'w');
    action.sa_handler = handle;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    raise(SIGUSR1), push_out();
    check("a read with all signals blocked", getrandom(to, 100000, 0) == 100000 && handled == 3);
    push_out();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    check("a blocked signal", handled == 4);
    for (int number = 1; number < 32; number++)
        if (number == SIGBUS || number == SIGSYS) {
            action.sa_handler = handle;
            sigaction(number, &action, NULL), sigaction(number, NULL, &old);
            check("an action", old.sa_handler == handle);
            raise(number);
        }
    check("own handlers", handled == 6), push_out();
    check("a read with own handlers", getrandom(to, 100000, 0) == 100000);
    handled = 0, sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_ONSTACK}, NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int round = 0; round < 3; round++) push_out(), raise(SIGUSR1);
        _exit(handled != 3);
    }
    int status = -1;
    waitpid(child, &status, 0);
    check("a handler in a forked child", status == 0);
    stack.ss_flags = SS_DISABLE, sigaltstack(&stack, NULL);
}

static void interrupted(void) {
    struct sigaction action = {.sa_handler = handle};
    struct itimerspec soon = {.it_value = {0, 50000000}};
    int ends[2];
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigaction(SIGALRM, &action, NULL), pipe(ends);
    timer_create(CLOCK_MONOTONIC, &event, &timer), push_out(), timer_settime(timer, 0, &soon, NULL);
    errno = 0;
    check("an interrupted read", read(ends[0], to, 100) == -1 && errno == EINTR);
    timer_delete(timer), close(ends[0]), close(ends[1]);
}

static void children(void) {
    pid_t child;
    int status = -1;
    char *words[] = {"sh", "-c", "exit 7", NULL};
    push_out();
    check("posix_spawn", posix_spawnp(&child, "sh", NULL, NULL, words, environ) == 0);
    waitpid(child, &status, 0);
    check("its child", WIFEXITED(status) && WEXITSTATUS(status) == 7);
    check("system", system("exit 3") == 3 << 8), fflush(stdout), push_out();
    if ((child = fork()) == 0) {
        int fd = open("calls.dat", O_RDWR | O_TRUNC | O_CREAT, 0600);
        fill(from, 9), push_out();
        int good = write(fd, from, block) == block && (push_out(), pread(fd, to, block, 0) == block) && same();
        _exit(good ? 0 : 1);
    }
    waitpid(child, &status, 0);
    check("a forked child", status == 0);
}

static void *write_often(void *fd) {
    for (int round = 0; round < 4; round++) {
        push_out();
        if (write(*(int *)fd, from + round * 4096, 100) != 100) return NULL;
    }
    return fd;
}

// A thread whose stack is in far memory makes system calls and takes signals.
static void stacks(void) {
    enum { STACK = 1 << 20 };
    int ends[2];
    void *stack = malloc(STACK), *answer = NULL;
    pthread_attr_t attributes;
    pthread_t thread;
    pipe(ends), push_out();
    pthread_attr_init(&attributes);
    check("pthread_attr_setstack", pthread_attr_setstack(&attributes, stack, STACK) == 0);
    check("a short stack", pthread_attr_setstack(&(pthread_attr_t){0}, stack, 100) == EINVAL);
    pthread_create(&thread, &attributes, write_often, &ends[1]);
    pthread_join(thread, &answer);
    check("a thread on a far stack", answer != NULL);
    close(ends[0]), close(ends[1]), free(stack);
}

int main(int argc, char **argv) {
    block = (size_t)(argc > 1 ? atol(argv[1]) : 12) << 20, flooded = 2 * block;
    if (argc > 2) calls = atoi(argv[2]);
    flood = malloc(flooded), from = malloc(block), to = malloc(block);
    memset(flood, 1, flooded), memset(from, 1, block), memset(to, 1, block);
    files(), pipes(), sockets(), datagrams(), structures(), locks(), kept_errno(), signals(), interrupted(), children(), stacks();
    unlink("calls.dat");
    printf("%d failed\n", failed);
    return failed != 0;
}
