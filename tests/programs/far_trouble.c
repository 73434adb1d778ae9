/* A program in trouble, or that makes some, whose data are larger than what may be here.
 * far_trouble WHAT MIB [ARGUMENT] */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static uint64_t *words;
static size_t count;

static uint64_t value(uint64_t who, size_t w) { return (w * 2654435761u) ^ (who << 48) ^ 1; }

static void write_all(uint64_t who) {
    for (size_t w = 0; w < count; w++) words[w] = value(who, w);
}

static size_t wrong(uint64_t who) {
    size_t bad = 0;
    for (size_t w = 0; w < count; w++) bad += words[w] != value(who, w);
    return bad;
}

static void outcome(const char *who, pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) printf("%s: none\n", who);
    else if (WIFSIGNALED(status)) printf("%s: signal %d\n", who, WTERMSIG(status));
    else printf("%s: status %d\n", who, WEXITSTATUS(status));
    fflush(stdout);
}

/* Closes what it does not know, and writes to what is there instead. */
static int descriptors(int (*close_all)(void)) {
    int null = open("/dev/null", O_WRONLY);
    printf("number %d\n", null);
    write_all(1);
    close_all();
    int mine[20];
    for (int i = 0; i < 20; i++) mine[i] = open("/dev/null", O_WRONLY);
    printf("numbers %d to %d\n", mine[0], mine[19]);
    for (int i = 0; i < 20; i++)
        if (write(mine[i], words, 4096) != 4096) return 4;
    size_t bad = wrong(1);
    write_all(2);
    void *more = malloc(20 << 20);
    memset(more, 1, 20 << 20);
    free(more);
    printf("%zu wrong\n", bad + wrong(2));
    return 0;
}

static int close_from(void) { closefrom(3); return 0; }
static int close_each(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    return 0;
}

/* Children that are made without the C library's knowledge, or with the memory of their parent. */
static int children(void) {
    write_all(1);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        size_t bad = wrong(1);
        _exit(bad ? 1 : 0);
    }
    outcome("clone reads", child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(9); }
    outcome("clone execs", child);
    child = _Fork();
    if (child == 0) _exit(words[count / 2] == value(1, count / 2) ? 0 : 1);
    outcome("_Fork reads", child);
    child = _Fork();
    if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(9); }
    outcome("_Fork execs", child);
    char *const line[] = {"true", NULL};
    if (posix_spawn(&child, "/bin/true", NULL, NULL, line, environ)) return 4;
    outcome("posix_spawn", child);
    child = vfork();
    if (child == 0) _exit(words[count / 2] == value(1, count / 2) ? 0 : 1);
    outcome("vfork reads", child);
    child = fork();
    if (child == 0) _exit(wrong(1) ? 1 : 0);
    outcome("fork reads", child);
    printf("%zu wrong\n", wrong(1));
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    count = ((size_t)(argc > 2 ? atol(argv[2]) : 32) << 20) / 8;
    words = aligned_alloc(4096, count * 8);
    if (!words) { puts("no memory"); return 3; }
    if (!strcmp(what, "closefrom")) return descriptors(close_from);
    if (!strcmp(what, "close")) return descriptors(close_each);
    if (!strcmp(what, "children")) return children();
    return 2;
}
