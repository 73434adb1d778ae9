/* Mappings that are used in rare ways. With `grow`: one grows where it is, and then has to move. With `hint`: one has an
 * address hint inside a page. With `key`: one is made usable by pkey_mprotect. With `lock`: one cannot be locked, and
 * must still be far memory. Prints what is wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB ((size_t)1 << 20)

static char *map(void *hint, size_t len, int protection)
{
    char *at = mmap(hint, len, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        printf("mmap: %s\n", strerror(errno));
        exit(1);
    }
    return at;
}

static size_t wrong(const char *at, size_t len)
{
    size_t bad = 0;
    for (size_t i = 0; i < len; i += 4096)
        bad += at[i] != (char)(1 + i / 4096 % 100);
    return bad;
}

static void fill(char *at, size_t from, size_t to)
{
    for (size_t i = from; i < to; i += 4096)
        at[i] = (char)(1 + i / 4096 % 100);
}

static void grow(void)
{
    char *at = map(0, 4 * MIB, PROT_READ | PROT_WRITE);
    fill(at, 0, 4 * MIB);
    for (size_t len = 4 * MIB; len < 12 * MIB; len += 2 * MIB) {
        char *longer = mremap(at, len, len + 2 * MIB, MREMAP_MAYMOVE);
        if (longer == MAP_FAILED) {
            printf("mremap to %zu MiB: %s\n", len / MIB + 2, strerror(errno));
            return;
        }
        at = longer;
        fill(at, len, len + 2 * MIB);
        if (len == 6 * MIB)
            map(at + len + 2 * MIB, 2 * MIB, PROT_READ | PROT_WRITE); /* in the way of the next growth */
    }
    printf("grown: %zu wrong\n", wrong(at, 12 * MIB));
}

static void hint(void)
{
    char *at = map(0, 2 * MIB, PROT_NONE);
    for (int protection = PROT_NONE; protection <= (PROT_READ | PROT_WRITE); protection += PROT_READ | PROT_WRITE) {
        char *next = map(at + 4 * MIB + 10, 2 * MIB, protection);
        if ((size_t)next % 4096)
            printf("unaligned: %p\n", (void *)next);
        if (protection) {
            fill(next, 0, 2 * MIB);
            printf("hint: %zu wrong\n", wrong(next, 2 * MIB));
        }
        munmap(next, 2 * MIB);
    }
}

/* Commits reserved memory twice. The second time, it must be zero. */
static void key(void)
{
    char *at = map(0, 8 * MIB, PROT_NONE);
    for (int turn = 0; turn < 2; turn++) {
        if (pkey_mprotect(at, 8 * MIB, PROT_READ | PROT_WRITE, -1)) {
            printf("pkey_mprotect: %s\n", strerror(errno));
            return;
        }
        size_t nonzero = 0;
        for (size_t i = 0; i < 8 * MIB; i += 4096)
            nonzero += at[i] != 0;
        fill(at, 0, 8 * MIB);
        char *more = map(0, 16 * MIB, PROT_READ | PROT_WRITE); /* more than the local memory of the test */
        fill(more, 0, 16 * MIB);
        printf("key: %zu not zero, %zu wrong\n", nonzero, wrong(at, 8 * MIB) + wrong(more, 16 * MIB));
        munmap(more, 16 * MIB);
        if (mmap(at, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
            printf("mmap: %s\n", strerror(errno));
    }
}

static void lock(void)
{
    char *at = map(0, 48 * MIB, PROT_READ | PROT_WRITE), *more = map(0, 48 * MIB, PROT_READ | PROT_WRITE);
    printf("mlock: %s\n", mlock(at, 48 * MIB) ? strerror(errno) : "locked");
    fill(at, 0, 48 * MIB);
    fill(more, 0, 48 * MIB);
    printf("lock: %zu wrong\n", wrong(at, 48 * MIB) + wrong(more, 48 * MIB));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "grow";
    if (!strcmp(what, "grow"))
        grow();
    else if (!strcmp(what, "hint"))
        hint();
    else if (!strcmp(what, "key"))
        key();
    else if (!strcmp(what, "lock"))
        lock();
    return 0;
}
