/* Writes to a large block and ends: ends.bin HOW, where HOW is `exit`, `_exit`, `abort`, `kill` or `child`. It waits
 * for a line on standard input, or for its end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "exit";
    char *block = malloc(32 * MIB);
    memset(block, 1, 32 * MIB);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    getchar();
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "_exit"))
        _exit(7);
    if (!strcmp(how, "child")) {
        pid_t child = fork();
        if (child == 0) {
            memset(malloc(8 * MIB), 1, 8 * MIB);
            raise(SIGSEGV);
        }
        waitpid(child, NULL, 0);
        if (wait(NULL) != -1) /* this program did not start that child */
            return 99;
    }
    free(block);
    return 3;
}
