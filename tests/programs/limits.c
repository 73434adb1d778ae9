/* limits CASE MIB WRITTEN_MIB: memory of one kind, written densely or one byte in each 2 MiB. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void touch(volatile char *block, size_t bytes, size_t step) {
    for (size_t at = 0; at < bytes; at += step) block[at] = 1;
}

static void *must(void *block) {
    if (block == NULL || block == MAP_FAILED) exit(3);
    return block;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    const char *kind = words[1];
    size_t bytes = atoi(words[2]) * MIB, written = atoi(words[3]) * MIB;
    if (!strcmp(kind, "dense")) { /* one block, of which the first part is written */
        touch(must(malloc(bytes)), written, 4096);
    } else if (!strcmp(kind, "sparse")) { /* one block, then the same amount in small requests */
        touch(must(malloc(bytes)), bytes, 2 * MIB);
        for (size_t at = 0; at < written; at += 4000) memset(must(malloc(3984)), 1, 3984);
    } else if (!strcmp(kind, "blocks")) { /* several sparse blocks */
        for (size_t at = 0; at < bytes; at += 16 * MIB) touch(must(calloc(16 * MIB, 1)), 16 * MIB, 2 * MIB);
    } else if (!strcmp(kind, "mappings")) { /* several sparse mappings */
        for (size_t at = 0; at < bytes; at += 32 * MIB) {
            int flags = MAP_PRIVATE | MAP_ANONYMOUS;
            touch(must(mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0)), 32 * MIB, 2 * MIB);
        }
    } else if (!strcmp(kind, "small")) { /* small requests, one byte of each */
        for (size_t at = 0; at < bytes; at += 100000) touch(must(malloc(100000)), 1, 1);
    } else if (!strcmp(kind, "growing")) { /* a sparse block that doubles */
        char *block = NULL;
        for (size_t size = MIB; size <= bytes; size *= 2) touch(block = must(realloc(block, size)), size, 2 * MIB);
    } else if (!strcmp(kind, "moving")) { /* a sparse mapping that doubles */
        size_t size = 4 * MIB;
        char *block = must(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        for (; size < bytes; size *= 2) block = must(mremap(block, size, 2 * size, MREMAP_MAYMOVE));
        touch(block, size, 2 * MIB);
    } else if (!strcmp(kind, "forked")) { /* a sparse block in each of four children at the same time */
        int touched[2], end[2], failed = 0;
        char byte;
        if (pipe(touched) || pipe(end)) return 3;
        touch(must(malloc(2 * MIB)), 1, 1);
        for (int child = 0; child < 4; child++) {
            if (fork() == 0) {
                close(touched[0]);
                close(end[1]);
                touch(must(malloc(bytes)), bytes, 2 * MIB);
                if (write(touched[1], "", 1) != 1 || close(touched[1])) _exit(3);
                _exit(read(end[0], &byte, 1) != 0);
            }
        }
        close(touched[1]);
        for (int child = 0; child < 4; child++) failed |= read(touched[0], &byte, 1) != 1;
        close(end[1]);
        for (int child = 0; child < 4; child++) {
            int status;
            failed |= wait(&status) < 0 || status != 0;
        }
        if (failed) return 3;
    } else if (!strcmp(kind, "freed")) { /* a block that is freed, then the same amount in small requests */
        char *block = must(malloc(bytes));
        touch(block, bytes, 4096);
        free(block);
        for (size_t at = 0; at < written; at += 4000) memset(must(malloc(3984)), 1, 3984);
    } else if (!strcmp(kind, "reserved")) { /* an inaccessible range that is made accessible in parts */
        char *block = must(mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (mprotect(block, written, PROT_READ | PROT_WRITE)) return 3;
        touch(block, written, 4096);
    } else if (!strcmp(kind, "executable")) { /* memory for code that the program makes */
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        touch(must(mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0)), written, 4096);
    } else if (!strcmp(kind, "shared")) { /* an anonymous shared mapping */
        touch(must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), written, 4096);
    } else if (!strcmp(kind, "workers")) { /* an anonymous shared mapping in each of three forked children */
        for (int child = 0; child < 3; child++) {
            if (fork() == 0) {
                int flags = MAP_SHARED | MAP_ANONYMOUS;
                touch(must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0)), written, 4096);
                exit(0);
            }
            wait(NULL);
        }
    } else if (!strcmp(kind, "held")) { /* an anonymous shared mapping, until standard input ends */
        touch(must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), written, 4096);
        while (getchar() != EOF) {}
    } else if (!strcmp(kind, "waiting")) { /* blocks of a size, until standard input ends */
        for (size_t at = 0; at < bytes; at += written) touch(must(malloc(written)), written, 4096);
        puts("ready");
        fflush(stdout);
        while (getchar() != EOF) {}
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
