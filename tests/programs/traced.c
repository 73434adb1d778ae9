/* Makes children that ask to be traced, and prints the events that their parent sees: traced WAY. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *way;

static int is(const char *name) { return strcmp(way, name) == 0; }

/* Does what debuggers do between vfork and exec. */
static void prepare(void) {
    sigset_t none;
    sigemptyset(&none);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    signal(SIGUSR1, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
    struct iovec part = {"child\n", 6};
    if (writev(1, &part, 1) != 6)
        _exit(99);
}

static void child(void) {
    prepare();
    if (is("exec"))
        execl("/bin/echo", "echo", "executed", NULL);
    if (is("path"))
        execlp("echo", "echo", "executed", NULL);
    if (is("missing"))
        execl("/nowhere/echo", "echo", NULL);
    _exit(errno == ENOENT ? 127 : 98);
}

/* Traces a child without exec, so that tracing begins at once. */
static void stops(void) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    _exit(6);
}

int main(int count, char **arguments) {
    way = count > 1 ? arguments[1] : "";
    setenv("PATH", "/nowhere:/bin", 1);
    pid_t process;
    if (is("fork")) {
        process = fork();
        if (process == 0)
            stops();
    } else {
        process = vfork();
        if (process == 0)
            child();
    }
    int status;
    while (waitpid(process, &status, 0) == process && WIFSTOPPED(status)) {
        printf("stopped by %s\n", strsignal(WSTOPSIG(status)));
        fflush(stdout);
        ptrace(PTRACE_CONT, process, NULL, NULL);
    }
    printf("ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
