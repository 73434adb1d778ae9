/* placement-of-blocks NODE checks that the pages of a large block are on a node, or with -1 evenly on all nodes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **word)
{
    int node = count > 1 ? atoi(word[1]) : 0, on[64] = {0};
    size_t page = sysconf(_SC_PAGESIZE), bytes = 32 << 20;
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    size_t pages = bytes / page - 1;
    for (size_t i = 0; i < pages; i++) {
        void *at = (void *)(((size_t)block + page - 1) / page * page + i * page);
        int is = -1;
        if (syscall(SYS_move_pages, 0, 1, &at, NULL, &is, 0) || is < 0) { printf("FAIL: page %zu: %d\n", i, is); return 1; }
        on[is]++;
    }
    /* Memory is interleaved in units of large pages where these are available, so that the counts are not exact. */
    int right = node >= 0 ? on[node] == (int)pages : on[0] && on[1] && on[2] && on[3] && on[0] < (int)pages / 2;
    printf("%s: %d %d %d %d\n", right ? "blocks as asked" : "FAIL", on[0], on[1], on[2], on[3]);
    return !right;
}
