/* Allocates large blocks and prints how many of them are from the library's heap. blocks.bin [exec|fork|wait|idle|signal N|thp-off COMMAND...] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char *blocks[3];
static long taken(void) {
    size_t (*list)(void *, size_t) = (size_t (*)(void *, size_t))dlsym(RTLD_DEFAULT, "largesse_blocks");
    return list ? (long)list(NULL, 0) : -1;
}
int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "thp-off") && argc > 2) {
        if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) return 1;
        execvp(argv[2], argv + 2);
        return 1;
    }
    blocks[0] = malloc(64 << 20); blocks[1] = calloc(3, 1 << 20); blocks[2] = malloc(1000);
    memset(blocks[0], 1, 64 << 20); blocks[1][5] = blocks[2][5] = 1;
    printf("%s%ld blocks\n", mode, taken());
    fflush(stdout);
    if (!strcmp(mode, "exec")) { pid_t pid = fork(); if (!pid) execl(argv[0], argv[0], (char *)NULL); waitpid(pid, NULL, 0); }
    if (!strcmp(mode, "fork")) { pid_t pid = fork(); if (!pid) { char *more = malloc(5 << 20); memset(more, 1, 5 << 20); printf("child %ld blocks\n", taken()); return 0; } waitpid(pid, NULL, 0); }
    if (!strcmp(mode, "idle")) { free(blocks[0]); return getchar() == EOF ? 0 : 1; }
    if (!strcmp(mode, "wait")) { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); return getchar() == EOF ? 0 : 1; }
    if (!strcmp(mode, "signal") && argc > 2) { raise(atoi(argv[2])); pause(); }
    return 42;
}
