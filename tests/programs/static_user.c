/* Uses static arrays of its own (32 MiB) and of a library (105 MiB), which it is linked with, or opens if its path is given,
   and a block of 24 MiB, after the arrays have been filled.
   static_user linked|fork|LIBRARY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN (4u << 20)   /* words: 32 MiB */
#define BLOCK (3u << 20) /* words: 24 MiB */
static uint64_t own[OWN];

static long kib(const char *name) {
    char line[256];
    long found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name))) found = atol(line + strlen(name));
    if (status) fclose(status);
    return found;
}

static void *library = RTLD_DEFAULT;
static void *function(const char *name) {
    void *found = dlsym(library, name);
    if (!found) puts("no function"), exit(3);
    return found;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    if (strchr(argv[1], '/')) library = dlopen(argv[1], RTLD_NOW);
    if (!library && strchr(argv[1], '/')) return puts(dlerror()), 3;
    uint64_t (*wrong_at_start)(void) = (uint64_t (*)(void))function("wrong_at_start");
    uint64_t (*wrong_after)(uint64_t) = (uint64_t (*)(uint64_t))function("wrong_after");
    uint64_t (*wrong_in_pipe)(void) = (uint64_t (*)(void))function("wrong_in_pipe");
    uint64_t (*wrong_in_threads)(void) = (uint64_t (*)(void))function("wrong_in_threads");
    void (*add)(uint64_t) = (void (*)(uint64_t))function("add");

    uint64_t wrong = wrong_at_start();
    for (unsigned i = 0; i < OWN; i++) wrong += own[i], own[i] = i;
    add(1);
    wrong += wrong_after(1);
    uint64_t *block = malloc(BLOCK * 8);
    if (!block) return puts("no memory"), 3;
    for (unsigned i = 0; i < BLOCK; i++) block[i] = i;
    add(2);
    wrong += wrong_in_pipe() + wrong_in_threads() + wrong_after(3);
    if (!strcmp(argv[1], "fork")) {
        pid_t child = fork();
        if (!child) {
            add(4);
            for (unsigned i = 0; i < OWN; i++) wrong += own[i] != i;
            _exit((wrong += wrong_after(7)) != 0);
        }
        int status = -1;
        add(1);
        wrong += wrong_after(4);
        waitpid(child, &status, 0);
        printf("child %d, ", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        wrong += wrong_after(4);
    }
    for (unsigned i = 0; i < OWN; i++) wrong += own[i] != i;
    for (unsigned i = 0; i < BLOCK; i++) wrong += block[i] != i;
    printf("%llu wrong\nanonymous %ld KiB, peak %ld KiB\n", (unsigned long long)wrong, kib("RssAnon:"), kib("VmHWM:"));
    return wrong != 0;
}
