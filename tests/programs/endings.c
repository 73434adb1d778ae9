/* Ends the process in a way that does not call exit(): endings WAY MIB [LIBRARY]. Exit handlers read a block of MIB. A
 * second thread loads the library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };
static size_t bytes;
static char *block;
static pthread_t first;
static const char *way;

static int is(const char *name) { return strcmp(way, name) == 0; }

static void say(const char *text) {
    size_t len = strlen(text);
    if (write(1, text, len) != (ssize_t)len)
        _exit(99);
}

static void touch(void) {
    for (size_t at = 0; at < bytes; at += PAGE)
        block[at] = (char)(at / PAGE);
}

static void check(void) {
    for (size_t at = 0; at < bytes; at += PAGE)
        if (block[at] != (char)(at / PAGE)) {
            say("a wrong byte\n");
            _exit(98);
        }
}

static void at_exit(void) {
    char frames[200 << 10]; /* this is more than the stack of a service thread */
    memset(frames, 1, sizeof frames);
    check();
    say(frames[PAGE] ? "exit handler\n" : "");
}

static void on_term(int signal) {
    (void)signal;
    say("handler of SIGTERM\n");
    _exit(3);
}

static void key_ends(void *value) { say(value ? "destructor\n" : ""); }

/* Waits until the first thread has ended, which makes it a zombie. */
static void wait_for_first(void) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    for (char state = 0; state != 'Z';) {
        usleep(1000);
        FILE *file = fopen(path, "r");
        if (!file) { /* without /proc */
            state = pthread_tryjoin_np(first, NULL) == EBUSY ? 0 : 'Z';
            continue;
        }
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        fclose(file);
        char *name_end = strrchr(text, ')');
        state = name_end ? name_end[2] : 'Z';
    }
}

static void *worker(void *argument) {
    if (is("join"))
        pthread_join(first, NULL);
    wait_for_first();
    check();
    say("worker\n");
    if (is("term") || is("handled"))
        kill(getpid(), SIGTERM);
    if (is("term") || is("handled"))
        for (;;)
            pause();
    if (is("exit-in-worker"))
        exit(5);
    if (is("bare-worker"))
        syscall(SYS_exit, 0);
    return argument;
}

static void *forks(void *argument) {
    if (!pthread_equal(first, pthread_self()))
        wait_for_first();
    pid_t child = fork();
    if (child == 0) {
        check();
        say("child\n");
        pthread_exit(NULL);
    }
    int status;
    waitpid(child, &status, 0);
    say(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "child ended\n" : "child failed\n");
    return argument;
}

static void *load(void *path) { return dlopen(path, RTLD_NOW | RTLD_GLOBAL); }

int main(int count, char **arguments) {
    if (count < 3)
        return 96;
    way = arguments[1];
    bytes = (size_t)atoi(arguments[2]) << 20;
    first = pthread_self();
    if (count > 3) {
        pthread_t loader;
        void *library = NULL;
        pthread_create(&loader, NULL, load, arguments[3]);
        pthread_join(loader, &library);
        if (!library)
            return 97;
    }
    block = malloc(bytes);
    double (*sum)(size_t, const double *, ptrdiff_t) = dlsym(RTLD_DEFAULT, "largesse_dsum");
    touch();
    if (sum) /* the kernel starts the threads that work on long vectors */
        sum(bytes / sizeof(double), (const double *)(void *)block, 1);
    else if (getenv("LARGESSE_PID") || count > 3)
        return 95;
    atexit(at_exit);
    pthread_key_t key;
    pthread_key_create(&key, key_ends);
    pthread_setspecific(key, &key);
    signal(SIGTERM, is("handled") ? on_term : SIG_DFL);
    pthread_t thread;
    if (is("worker") || is("join") || is("term") || is("handled") || is("exit-in-worker") ||
        is("bare-worker") || is("bare-first"))
        pthread_create(&thread, NULL, worker, NULL);
    if (is("fork-in-worker"))
        pthread_create(&thread, NULL, forks, NULL);
    if (is("fork"))
        forks(NULL);
    if (is("cancel")) {
        pthread_cancel(first);
        pthread_testcancel();
    }
    if (is("bare") || is("bare-first"))
        syscall(SYS_exit, 7);
    if (is("return"))
        return 4;
    pthread_exit(NULL);
}
