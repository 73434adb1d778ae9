/* Passes pages to a pipe without a copy (vmsplice). They must still have their contents when the pipe is read, although
 * pages were filled and evicted since, and other data were written to their addresses. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 64, PAGES = MIB * 256, HANDED = 8 };

static void fill(uint64_t *all, uint64_t turn) {
    for (size_t at = 0; at < (size_t)PAGES * PAGE / 8; at++) all[at] = at * 3 + turn;
}

int main(void) {
    uint64_t *all = aligned_alloc(PAGE, (size_t)PAGES * PAGE), got[PAGE / 8];
    int ends[2], wrong = 0;
    if (!all || pipe(ends)) return 1;
    for (uint64_t turn = 0; turn < 3; turn++) {
        fill(all, turn);
        size_t first = (PAGES / 2 + 100 * turn) * (PAGE / 8);
        uint64_t sum = 0;
        struct iovec part = {all + first, HANDED * PAGE};
        ssize_t handed = vmsplice(ends[1], &part, 1, 0);
        if (handed < 0) {
            printf("vmsplice: %s\n", strerror(errno));
            return 1;
        }
        /* The program writes only to other pages, because pages in a pipe belong to the kernel. */
        for (int lap = 0; lap < 3; lap++)
            for (size_t at = 0; at < (size_t)PAGES * PAGE / 8; at += 64) sum += all[at];
        if (sum == 1) puts("");
        for (ssize_t at = 0; at < handed; at += PAGE) {
            if (read(ends[0], got, PAGE) != PAGE) return 1;
            for (size_t word = 0; word < PAGE / 8; word++)
                wrong += got[word] != (first + (size_t)at / 8 + word) * 3 + turn;
        }
    }
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
