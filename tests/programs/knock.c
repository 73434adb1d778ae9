/* Connects to the agent whose socket is in a folder. knock once FOLDER connects once; knock flood FOLDER as often as it
 * can, also to the fallback socket; knock queue FOLDER only to the fallback socket, whose queue it waits in. knock busy
 * only uses a processor. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns the error number of one attempt, or 0. */
static int knock(const struct sockaddr_un *address, socklen_t len, int flags) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);
    int error = connect(fd, (const struct sockaddr *)address, len) ? errno : 0;
    close(fd);
    return error;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *folder = argc > 2 ? argv[2] : "";
    struct sockaddr_un path = {.sun_family = AF_UNIX}, fallback = {.sun_family = AF_UNIX};
    size_t header = offsetof(struct sockaddr_un, sun_path);
    const char *last = strrchr(folder, '/');
    if (!strcmp(what, "busy"))
        for (volatile unsigned long turns = 0;; turns++) {}
    if (!last) return 2;
    snprintf(path.sun_path, sizeof path.sun_path, "%s/agent", folder);
    /* The fallback is the abstract socket that has the name of the folder. */
    size_t used = (size_t)snprintf(fallback.sun_path + 1, sizeof fallback.sun_path - 1, "%s", last + 1);
    socklen_t len = (socklen_t)(header + 1 + used);
    if (!strcmp(what, "once")) return printf("%d\n", knock(&path, sizeof path, 0)) < 0;
    if (!strcmp(what, "queue"))
        for (;;) knock(&fallback, len, 0);
    if (!strcmp(what, "flood"))
        for (;;) {
            knock(&path, sizeof path, 0);
            knock(&fallback, len, SOCK_NONBLOCK);
        }
    return 2;
}
