/* Sends a datagram from an array that crosses two segments of far memory, initialised and zeroed data. It must arrive
 * complete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { FLOOD = 24 << 20, LENGTH = 60000 };
char data[(1 << 18) + 100] = {1}, zeros[1 << 18];

int main(void) {
    int ends[2], wrong = 0;
    char got[1 << 16];
    char *flood = malloc(FLOOD);
    for (size_t at = 0; at < sizeof zeros; at++) zeros[at] = (char)(at * 2654435761u >> 7);
    memset(flood, data[0], FLOOD);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) return 1;
    ssize_t sent = send(ends[0], zeros, LENGTH, 0), arrived = recv(ends[1], got, sizeof got, 0);
    for (size_t at = 0; at < LENGTH; at++) wrong += got[at] != zeros[at];
    printf("%zd bytes sent, %zd at once, %d wrong\n", sent, arrived, wrong);
    int lost = 0; // the kernel shortens the length of a buffer that is longer than memory
    for (char *at = flood + 100; at < flood + FLOOD; at += 1 << 20)
        lost += send(ends[0], "0123456789", 10, 0) != 10 || recv(ends[1], at, -1, 0) != 10 || memcmp(at, "0123456789", 10) != 0;
    printf("%d lost\n", lost);
    return 0;
}
