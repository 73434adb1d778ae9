/* Forks a program whose data are larger than its local memory. far_fork WHAT MIB [TIMES], where MIB is 0 for a static
 * array; far_fork chroot MIB FOLDER. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t *words;
static size_t count;
static uint64_t array[(24 << 20) / 8] __attribute__((aligned(4096)));

static uint64_t value(uint64_t who, size_t w) { return (w * 2654435761u) ^ (who << 48); }

/* Writes every `step`-th page of 512 words from `first` on. The words depend on `who`, the number of the writer. */
static void write_pages(uint64_t who, size_t first, size_t step) {
    for (size_t p = first; p < count / 512; p += step)
        for (size_t w = p * 512; w < p * 512 + 512; w++) words[w] = value(who, w);
}

static size_t wrong(uint64_t who, size_t first, size_t step) {
    size_t bad = 0;
    for (size_t p = first; p < count / 512; p += step)
        for (size_t w = p * 512; w < p * 512 + 512; w++) bad += words[w] != value(who, w);
    return bad;
}

static void say(const char *who, size_t bad) {
    char line[100];
    int len = snprintf(line, sizeof line, "%s: %zu wrong\n", who, bad);
    if (write(1, line, (size_t)len) != len) _exit(9);
}

static int ended(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* A child changes every other page while its parent changes others, and makes a grandchild. */
static int sides(void) {
    size_t before = 0;
    write_pages(1, 0, 1);
    /* Pages that were only read since their fill are write-protected. The child must get them too. */
    for (int pass = 0; pass < 4; pass++) before += wrong(1, 0, 1);
    pid_t child = fork();
    if (child == 0) {
        /* The child begins with the pages that its parent read last. */
        for (size_t p = count / 512; p-- > 0;)
            if (p % 2 == 0)
                for (size_t w = p * 512; w < p * 512 + 512; w++) words[w] = value(2, w);
        say("child at first", wrong(2, 0, 2) + wrong(1, 1, 2));
        say("child", wrong(2, 0, 2) + wrong(1, 1, 2));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            say("grandchild at first", wrong(2, 0, 2) + wrong(1, 1, 2));
            write_pages(4, 0, 4);
            say("grandchild", wrong(4, 0, 4) + wrong(2, 2, 4) + wrong(1, 1, 2));
            _exit(0);
        }
        write_pages(5, 1, 2);
        if (ended(grandchild)) _exit(1);
        say("child at last", wrong(2, 0, 2) + wrong(5, 1, 2));
        /* Pages that were only read since their fill are write-protected again, so that these writes fault. */
        write_pages(6, 0, 1);
        say("child again", wrong(6, 0, 1));
        _exit(0);
    }
    write_pages(3, 0, 3);
    size_t bad = before + wrong(3, 0, 3) + wrong(1, 1, 3) + wrong(1, 2, 3);
    int status = ended(child);
    say("parent", bad + wrong(3, 0, 3) + wrong(1, 1, 3) + wrong(1, 2, 3));
    return status;
}

static volatile int stop;
static uint64_t *shared;

static void *touch(void *argument) {
    uint64_t state = 88172645463325252ull + (uintptr_t)argument, bad = 0;
    while (!stop) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        size_t w = state % count;
        uint64_t now = words[w];
        bad += now != value(1, w);
        words[w] = now; /* this is a write, although the value is the same */
    }
    __atomic_fetch_add(shared, bad, __ATOMIC_RELAXED);
    return NULL;
}

static void *forks(void *argument) {
    long times = (long)(intptr_t)argument;
    for (long i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) _exit(wrong(1, (size_t)i, 7) != 0);
        if (ended(child)) __atomic_fetch_add(shared, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* One thread forks while others fault. */
static int threads(long times) {
    uint64_t bad = 0;
    shared = &bad;
    write_pages(1, 0, 1);
    pthread_t others[3], forker;
    for (uintptr_t t = 0; t < 3; t++) pthread_create(&others[t], NULL, touch, (void *)t);
    pthread_create(&forker, NULL, forks, (void *)(intptr_t)times);
    pthread_join(forker, NULL);
    stop = 1;
    for (int t = 0; t < 3; t++) pthread_join(others[t], NULL);
    say("threads", bad + wrong(1, 0, 1));
    return bad != 0;
}

/* Makes children that execute another program, and prints the mean time of one in microseconds. */
static int execs(long times) {
    struct timespec from, to;
    write_pages(1, 0, 1);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(9); }
        if (ended(child) || system("true")) return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    long us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    say("parent", wrong(1, 0, 1));
    fprintf(stderr, "%ld us\n", us / times);
    return 0;
}

/* Makes children that end at once, and prints the time of all in microseconds. */
static int timed(long times) {
    struct timespec from, to;
    write_pages(1, 0, 1);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < times; i++) {
        pid_t child = fork();
        if (child == 0) { words[i] = 0; _exit(0); }
        if (ended(child)) return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
    return wrong(1, 0, 1) != 0;
}

/* Makes a child and a grandchild after a change of the root folder. */
static int rooted(const char *folder) {
    write_pages(1, 0, 1);
    if (chroot(folder) || chdir("/")) return 1;
    pid_t child = fork();
    if (child == 0) {
        write_pages(2, 0, 2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            say("grandchild", wrong(2, 0, 2) + wrong(1, 1, 2));
            _exit(0);
        }
        if (ended(grandchild)) _exit(1);
        say("child", wrong(2, 0, 2) + wrong(1, 1, 2));
        _exit(0);
    }
    int status = ended(child);
    say("parent", wrong(1, 0, 1));
    return status;
}

/* Makes many children that all stay alive, each with pages of its own. The parent writes between the forks. */
static int row(long times) {
    pid_t children[400];
    int go[2], status = 0;
    char none;
    if (pipe(go)) return 1;
    write_pages(0, 0, 1);
    for (long i = 0; i < times; i++) {
        write_pages((uint64_t)i + 1, (size_t)i, (size_t)times);
        children[i] = fork();
        if (children[i] == 0) {
            close(go[1]);
            if (read(go[0], &none, 1) != 0) _exit(9);
            size_t bad = 0;
            for (long k = 0; k < times; k++)
                bad += wrong(k <= i ? (uint64_t)k + 1 : 0, (size_t)k, (size_t)times);
            write_pages(1000, (size_t)i, (size_t)times);
            bad += wrong(1000, (size_t)i, (size_t)times);
            _exit(bad != 0);
        }
    }
    close(go[1]);
    for (long i = 0; i < times; i++) {
        int one = ended(children[i]);
        if (one > status) status = one;
    }
    size_t bad = 0;
    for (long k = 0; k < times; k++) bad += wrong((uint64_t)k + 1, (size_t)k, (size_t)times);
    say("parent", bad);
    return status;
}

/* A thread whose stack is far memory forks. The child must not see zeros. */
static int stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, aligned_alloc(4096, 8 << 20), 8 << 20);
    shared = calloc(1, 8);
    write_pages(1, 0, 1);
    if (pthread_create(&thread, &attributes, forks, (void *)(intptr_t)1)) return 1;
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long times = argc > 3 ? atol(argv[3]) : 20;
    count = ((size_t)(argc > 2 ? atol(argv[2]) : 64) << 20) / 8;
    words = count ? aligned_alloc(4096, count * 8) : array;
    if (!count) count = sizeof array / 8;
    if (!words) return 3;
    if (!strcmp(what, "sides")) return sides();
    if (!strcmp(what, "threads")) return threads(times);
    if (!strcmp(what, "execs")) return execs(times);
    if (!strcmp(what, "timed")) return timed(times);
    if (!strcmp(what, "chroot")) return rooted(argc > 3 ? argv[3] : "");
    if (!strcmp(what, "row")) return row(times);
    if (!strcmp(what, "stack")) return stack();
    return 2;
}
