/* Applies munmap, mremap, madvise, mprotect and mmap to ranges of memory and checks every word. Prints the same with and
   without far memory. ranges [mapped|heap [UNIT CROWD]]: with `heap`, also on a block from malloc and a static array.
   UNIT (1024 KiB) is the size of which all ranges are multiples, and CROWD (24576 KiB) the memory whose use evicts all
   else; slow machines use smaller ones. Mappings have two units or more, and are far from 1 MiB on. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t unit = 1 << 20, crowding = 24 << 20;
enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE, PLAIN = MAP_PRIVATE | MAP_ANONYMOUS };

static void die(const char *what) { printf("%s: %s\n", what, strerror(errno)); exit(3); }

static uint64_t word(size_t at, uint64_t salt) { return (at + salt) * 0x9e3779b97f4a7c15ull | 1; }

static void fill(char *at, size_t len, uint64_t salt) {
    for (size_t w = 0; w < len / 8; w++) ((uint64_t *)at)[w] = word(w, salt);
}

/* Returns the number of words that differ from those of `fill`. `at` is `skip` bytes after the start of the filled range. */
static size_t wrong(const char *at, size_t skip, size_t len, uint64_t salt) {
    size_t count = 0;
    for (size_t w = skip / 8; w < (skip + len) / 8; w++) count += ((const uint64_t *)(at - skip))[w] != word(w, salt);
    return count;
}

static size_t not_zero(const char *at, size_t len) {
    size_t count = 0;
    for (size_t w = 0; w < len / 8; w++) count += ((const uint64_t *)at)[w] != 0;
    return count;
}

static char *map(size_t len) {
    char *at = mmap(NULL, len, RW, PLAIN, -1, 0);
    if (at == MAP_FAILED) die("mmap");
    return at;
}

/* Fills other memory, so that all else is evicted. */
static void crowd(void) {
    char *other = map(crowding);
    fill(other, crowding, 99);
    size_t bad = wrong(other, 0, crowding, 99);
    if (bad) printf("crowd: %zu wrong\n", bad);
    munmap(other, crowding);
}

static sigjmp_buf escape;
static void leave(int signal) { (void)signal; siglongjmp(escape, 1); }

/* Returns whether an access causes SIGSEGV. */
static int faults(volatile char *at, int write) {
    struct sigaction now = {.sa_handler = leave}, before;
    sigaction(SIGSEGV, &now, &before);
    int fault = sigsetjmp(escape, 1);
    if (!fault) { if (write) *at = 1; else (void)*at; }
    sigaction(SIGSEGV, &before, NULL);
    return fault;
}

static void unmapping(void) {
    char *at = map(16 * unit);
    fill(at, 16 * unit, 1);
    if (munmap(at + 4 * unit, 3 * unit + 5 * PAGE) || munmap(at + 4 * unit, unit)) die("munmap");
    crowd();
    printf("unmapped: %zu wrong, %d %d\n",
           wrong(at, 0, 4 * unit, 1) + wrong(at + 7 * unit + 5 * PAGE, 7 * unit + 5 * PAGE, 9 * unit - 5 * PAGE, 1),
           faults(at + 4 * unit, 0), faults(at + 7 * unit + 4 * PAGE, 1));
    munmap(at, 16 * unit);
    printf("all: %d %d\n", faults(at, 0), faults(at + 16 * unit - 1, 0));
    size_t dirty = 0;
    for (int turn = 0; turn < 20; turn++) { /* memory that is mapped again must be zero */
        char *again = map(3 * unit + PAGE);
        dirty += not_zero(again, 3 * unit + PAGE);
        fill(again, 3 * unit + PAGE, turn);
        munmap(again, 3 * unit + PAGE);
    }
    printf("again: %zu\n", dirty);
}

/* Moves memory that may not be written, or not even read, which must keep its contents and protection. */
static void moving_as(int protection) {
    char *at = map(2 * unit), *target = map(2 * unit);
    fill(at, 2 * unit, 4);
    crowd();
    if (mprotect(at, 2 * unit, protection)) die("mprotect");
    if (mremap(at, 2 * unit, 2 * unit, MREMAP_MAYMOVE | MREMAP_FIXED, target) != target) die("protected");
    int read = faults(target, 0), written = faults(target + unit, 1);
    if (mprotect(target, 2 * unit, PROT_READ | PROT_WRITE)) die("mprotect");
    printf("as %d: %d %d, %zu wrong\n", protection, read, written, wrong(target, 0, 2 * unit, 4));
    munmap(target, 2 * unit);
}

static void moving(void) {
    char *at = map(6 * unit);
    fill(at, 6 * unit, 2);
    at = mremap(at, 6 * unit, 2 * unit, 0);
    if (at == MAP_FAILED) die("shrink");
    char *fence = map(2 * unit);
    char *grown = mremap(at, 2 * unit, 12 * unit, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) die("grow");
    crowd();
    printf("moved: %zu wrong, %zu not zero\n", wrong(grown, 0, 2 * unit, 2), not_zero(grown + 2 * unit, 10 * unit));
    char *target = map(3 * unit);
    fill(target, 3 * unit, 3);
    if (mremap(grown, 2 * unit, 2 * unit, MREMAP_MAYMOVE | MREMAP_FIXED, target) != target) die("fixed");
    crowd();
    printf("fixed: %zu wrong, %d\n", wrong(target, 0, 2 * unit, 2) + wrong(target + 2 * unit, 2 * unit, unit, 3),
           faults(grown, 0));
    munmap(target, 3 * unit); munmap(fence, 2 * unit); munmap(grown + 2 * unit, 10 * unit);
    for (int protection = PROT_NONE; protection <= PROT_READ; protection++) moving_as(protection);
}

static void advising(char *at, size_t len) {
    fill(at, len, 4);
    if (madvise(at + PAGE, 2 * unit, MADV_DONTNEED)) die("MADV_DONTNEED");
    printf("dropped: %zu\n", not_zero(at + PAGE, 2 * unit));
    for (int turn = 0; turn < 3; turn++) {
        fill(at, len, 5);
        crowd();
        if (madvise(at + 3 * unit, unit, MADV_DONTNEED)) die("MADV_DONTNEED");
        crowd();
        printf("dropped: %zu, kept: %zu wrong\n", not_zero(at + 3 * unit, unit),
               wrong(at, 0, 3 * unit, 5) + wrong(at + 4 * unit, 4 * unit, len - 4 * unit, 5));
    }
    fill(at, len, 6);
    int hints[] = {MADV_WILLNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_SEQUENTIAL, MADV_NORMAL, MADV_DONTDUMP, 20, 21};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) madvise(at, len, hints[i]);
    if (msync(at, len, MS_SYNC)) die("msync");
    crowd();
    printf("hints: %zu wrong\n", wrong(at, 0, len, 6));
}

/* Read-only and inaccessible pages are evicted and filled like others, and keep their protection. */
static void guarding(char *at, size_t len) {
    fill(at, len, 7);
    if (mprotect(at + unit, unit, PROT_READ) || mprotect(at + 2 * unit, unit, PROT_NONE) ||
        mprotect(at + 3 * unit + PAGE, PAGE, PROT_NONE)) die("mprotect");
    crowd();
    printf("guards: %d %d %d %d, %zu wrong\n", faults(at + unit + 8, 0), faults(at + unit + 8, 1),
           faults(at + 2 * unit + 8, 0), faults(at + 3 * unit + PAGE, 1), wrong(at, 0, 2 * unit, 7));
    fill(at + 4 * unit, len - 4 * unit, 8);
    crowd();
    if (mprotect(at, len, RW)) die("mprotect");
    printf("open again: %zu wrong\n", wrong(at, 0, 4 * unit, 7) + wrong(at + 4 * unit, 0, len - 4 * unit, 8));
}

static volatile size_t barriers;
static void barrier(int signal, siginfo_t *about, void *context) {
    (void)signal; (void)context;
    char *page = (char *)((uintptr_t)about->si_addr & ~(uintptr_t)(PAGE - 1));
    barriers++;
    if (mprotect(page, PAGE, RW)) _exit(4);
}

/* Imitates the write barrier of a garbage collector: the heap is read-only, and a handler records the first write to
   each page. */
static void collecting(char *at, size_t len) {
    struct sigaction now = {.sa_sigaction = barrier, .sa_flags = SA_SIGINFO}, before;
    fill(at, len, 9);
    sigaction(SIGSEGV, &now, &before);
    size_t bad = 0;
    uint64_t state = 88172645463325252ull;
    for (int cycle = 0; cycle < 4; cycle++) {
        if (mprotect(at, len, PROT_READ)) die("mprotect");
        barriers = 0;
        for (size_t page = 0; page < len / PAGE; page += 3) *(uint64_t *)(at + page * PAGE + 8 * cycle) += 1;
        for (int i = 0; i < 2000; i++) {
            state ^= state << 13; state ^= state >> 7; state ^= state << 17;
            size_t page = state % (len / PAGE);
            bad += *(uint64_t *)(at + page * PAGE + 8 * cycle) != word(page * PAGE / 8 + cycle, 9) + (page % 3 == 0);
        }
        printf("cycle %d: %zu pages written, %zu wrong\n", cycle, (size_t)barriers, bad);
    }
    if (mprotect(at, len, RW)) die("mprotect");
    sigaction(SIGSEGV, &before, NULL);
}

static void replacing(void) {
    char *at = map(8 * unit);
    fill(at, 8 * unit, 10);
    if (mmap(at + unit, unit, RW, PLAIN | MAP_FIXED, -1, 0) != at + unit) die("MAP_FIXED");
    printf("new: %zu\n", not_zero(at + unit, unit));
    int fd = memfd_create("other", 0);
    if (fd < 0 || ftruncate(fd, 2 * unit)) die("memfd");
    if (mmap(at + 2 * unit, unit, RW, MAP_SHARED | MAP_FIXED, -5, 0) != MAP_FAILED) die("a wrong descriptor");
    printf("still there: %zu wrong\n", wrong(at + 2 * unit, 2 * unit, unit, 10));
    if (mmap(at + 2 * unit, 2 * unit, RW, MAP_SHARED | MAP_FIXED, fd, 0) != at + 2 * unit) die("a file");
    fill(at + 2 * unit, 2 * unit, 11);
    crowd();
    pid_t child = fork(); /* the file is shared with the child, the rest is private */
    if (child == 0) {
        at[2 * unit + 77] = 5;
        at[77] = 5;
        _exit(wrong(at + 4 * unit, 4 * unit, 4 * unit, 10) != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child: %d, shared %d, own %d\n", status, at[2 * unit + 77] == 5, at[77] == 5);
    char *alias = mmap(NULL, 2 * unit, RW, MAP_SHARED, fd, 0);
    alias[77] = (char)(word(9, 11) >> 40);
    printf("file: %zu wrong\n", wrong(alias, 0, 2 * unit, 11));
    printf("rest: %zu wrong\n", wrong(at, 0, unit, 10) + wrong(at + 4 * unit, 4 * unit, 4 * unit, 10));
    munmap(at, 8 * unit);
    printf("gone: %d %d\n", faults(at, 0), faults(at + 2 * unit, 0));
}

static void reserving(void) {
    size_t huge = (size_t)1 << 40;
    char *at = mmap(NULL, huge, PROT_NONE, PLAIN | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) die("reserve");
    if (mprotect(at + huge / 2, 4 * unit, RW)) die("commit");
    fill(at + huge / 2, 4 * unit, 12);
    char *lazy = mmap(NULL, huge, RW, PLAIN | MAP_NORESERVE, -1, 0);
    if (lazy != MAP_FAILED) lazy[huge - 1] = 1;
    crowd();
    printf("reserved: %zu wrong\n", wrong(at + huge / 2, 0, 4 * unit, 12));
    munmap(at, huge);
    munmap(lazy, huge);
}

int main(int argc, char **argv) {
    if (argc > 3) unit = (size_t)atol(argv[2]) << 10, crowding = (size_t)atol(argv[3]) << 10;
    unmapping();
    moving();
    char *mapped = map(16 * unit);
    advising(mapped, 16 * unit);
    guarding(mapped, 16 * unit);
    collecting(mapped, 16 * unit);
    munmap(mapped, 16 * unit);
    replacing();
    reserving();
    if (argc > 1 && !strcmp(argv[1], "heap")) {
        char *block = aligned_alloc(PAGE, 16 * unit);
        advising(block, 16 * unit);
        guarding(block, 16 * unit);
        collecting(block, 16 * unit);
        free(block);
        static char array[16 << 20] __attribute__((aligned(4096)));
        advising(array, 16 * unit);
        guarding(array, 16 * unit);
        collecting(array, 16 * unit);
    }
    return 0;
}
