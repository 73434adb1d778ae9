/* Reserves memory that is inaccessible, makes parts of it usable, and checks every word. Prints the same with and without
   far memory.
   reserved none|lazy|hint|placed MIB   reserves four times MIB in this way, and uses MIB of them, in parts of 1 MiB
   reserved stack MIB                   reserves a stack in the way of thread libraries, and uses all of it
   reserved random MIB SEED             changes random parts of MIB as allocators do, and compares them with a model.
                                        With the variable EVERY_MOVE, no move may be refused */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { PAGE = 4096, MIB = 1 << 20, RW = PROT_READ | PROT_WRITE, PLAIN = MAP_PRIVATE | MAP_ANONYMOUS };

static void die(const char *what) { printf("%s: %s\n", what, strerror(errno)); exit(3); }

static uint64_t word(const void *at, uint64_t salt) { return ((uintptr_t)at % ((uintptr_t)1 << 30) + salt) * 0x9e3779b97f4a7c15ull | 1; }

static void fill(char *at, size_t len, uint64_t salt) {
    for (size_t skip = 0; skip < len; skip += 8) *(uint64_t *)(at + skip) = word(at + skip, salt);
}
static size_t wrong(const char *at, size_t len, uint64_t salt) {
    size_t count = 0;
    for (size_t skip = 0; skip < len; skip += 8) count += *(const uint64_t *)(at + skip) != word(at + skip, salt);
    return count;
}
static size_t not_zero(const char *at, size_t len) {
    size_t count = 0;
    for (size_t skip = 0; skip < len; skip += 8) count += *(const uint64_t *)(at + skip) != 0;
    return count;
}

static sigjmp_buf escape;
static void leave(int signal) { (void)signal; siglongjmp(escape, 1); }

/* Returns whether an access raises SIGSEGV. */
static int faults(volatile char *at, int write) {
    int fault = sigsetjmp(escape, 1);
    if (!fault) { if (write) *at = *at; else (void)*at; }
    return fault;
}

static char *reserve(const char *way, size_t len) {
    int flags = PLAIN | (strcmp(way, "none") ? MAP_NORESERVE : 0);
    uintptr_t wish = (uintptr_t)2 << 40;
    if (!strcmp(way, "placed")) { /* as Java does: at one of these addresses, or anywhere */
        for (int turn = 0; turn < 3; turn++, wish += (uintptr_t)1 << 36) {
            char *at = mmap((void *)wish, len, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
            if (at != MAP_FAILED) return at;
        }
    }
    char *at = mmap(strcmp(way, "hint") ? NULL : (void *)wish, len, PROT_NONE, flags, -1, 0);
    if (at == MAP_FAILED) die("reserve");
    return at;
}

static void by_parts(const char *way, size_t parts) {
    size_t bad = 0;
    char *all = reserve(way, 4 * parts * MIB);
    if (!strcmp(way, "hint")) printf("aligned: %d\n", (uintptr_t)all % (32 * MIB) == 0);
    printf("reserved: %d %d\n", faults(all, 0), faults(all + 4 * parts * MIB - 1, 1));
    madvise(all, 4 * parts * MIB, MADV_MERGEABLE); /* refused or not, it changes nothing that a program sees */
    /* Every other MiB is made usable, so that the rest stays reserved in between. */
    for (size_t part = 0; part < parts; part++) {
        char *at = all + 2 * part * MIB;
        if (mprotect(at, MIB, RW)) die("commit");
        bad += not_zero(at, MIB);
        fill(at, MIB, 1);
        bad += wrong(all + 2 * (part / 2) * MIB, MIB, 1);
    }
    for (size_t part = 0; part < parts; part++) bad += wrong(all + 2 * part * MIB, MIB, 1);
    printf("used: %zu wrong, %d\n", bad, faults(all + MIB, 0));
    for (size_t part = 0; part < parts; part++) {
        char *at = all + 2 * part * MIB;
        switch (part % 5) {
        case 0: /* hidden for a while: the contents are kept */
            if (mprotect(at, MIB, PROT_NONE)) die("hide");
            bad += !faults(at + PAGE, 0);
            break;
        case 1: /* contents given up, in part */
            if (madvise(at, MIB / 2, MADV_DONTNEED)) die("drop");
            break;
        case 2: /* reserved again */
            if (mmap(at, MIB, PROT_NONE, PLAIN | MAP_FIXED | MAP_NORESERVE, -1, 0) != at) die("decommit");
            bad += !faults(at, 0);
            break;
        case 3: /* given back */
            if (munmap(at, MIB)) die("munmap");
            break;
        default: /* new memory in the same place */
            if (mmap(at, MIB, RW, PLAIN | MAP_FIXED, -1, 0) != at) die("map over");
        }
    }
    for (size_t part = 0; part < parts; part++) {
        char *at = all + 2 * part * MIB;
        switch (part % 5) {
        case 0:
            if (mprotect(at, MIB, RW)) die("show");
            bad += wrong(at, MIB, 1);
            break;
        case 1: bad += not_zero(at, MIB / 2) + wrong(at + MIB / 2, MIB / 2, 1); break;
        case 2:
            if (mprotect(at, MIB, RW)) die("commit again");
            bad += not_zero(at, MIB);
            fill(at, MIB, 2);
            break;
        case 3: bad += !faults(at, 0); break;
        default: bad += not_zero(at, MIB); fill(at, MIB, 2);
        }
    }
    for (size_t part = 0; part < parts; part++)
        if (part % 5 == 2 || part % 5 == 4) bad += wrong(all + 2 * part * MIB, MIB, 2);
    printf("changed: %zu wrong\n", bad);
    /* The longer half of what was never usable moves. */
    char *grown = mremap(all + 2 * parts * MIB, parts * MIB, 3 * parts * MIB, MREMAP_MAYMOVE);
    if (grown == MAP_FAILED) die("mremap");
    int hidden = faults(grown, 0);
    if (mprotect(grown + 3 * parts * MIB - MIB, MIB, RW)) die("commit moved");
    printf("moved: %d, %zu not zero\n", hidden, not_zero(grown + 3 * parts * MIB - MIB, MIB));
    pid_t child = fork();
    if (child == 0) {
        size_t found = wrong(all, MIB, 1);
        if (mprotect(all + MIB, MIB, RW)) found++;
        else { found += not_zero(all + MIB, MIB); fill(all + MIB, MIB, 5); found += wrong(all + MIB, MIB, 5); }
        _exit(found != 0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    printf("child: %d, %d\n", status, faults(all + MIB, 0));
    munmap(grown, 3 * parts * MIB);
    munmap(all, 2 * parts * MIB);
    munmap(all + 3 * parts * MIB, parts * MIB);
    printf("gone: %d\n", faults(all, 0));
}

static void of_a_stack(size_t mib) {
    char *stack = mmap(NULL, mib * MIB, PROT_NONE, PLAIN | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack + PAGE, mib * MIB - PAGE, RW)) die("stack");
    fill(stack + PAGE, mib * MIB - PAGE, 3);
    printf("stack: %zu wrong, %d\n", wrong(stack + PAGE, mib * MIB - PAGE, 3), faults(stack, 0));
    munmap(stack, mib * MIB);
}

enum { GONE, NONE, READ, WRITE };
static struct { unsigned char access; uint32_t salt; } *pages; /* salt 0: the page is zero */
static char *arena;
static size_t count;

static uint64_t state;
static size_t random_below(size_t most) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (size_t)((state >> 33) % most);
}
static void set(size_t first, size_t len, int access, int salt) {
    for (size_t page = first; page < first + len; page++) {
        pages[page].access = (unsigned char)access;
        if (salt >= 0) pages[page].salt = (uint32_t)salt;
    }
}
static int is_all(size_t first, size_t len, int least) {
    for (size_t page = first; page < first + len; page++) if (pages[page].access < least) return 0;
    return 1;
}
/* A page has the same contents wherever it is moved. */
static void put(size_t page, uint32_t salt) {
    for (size_t w = 0; w < PAGE / 8; w++) ((uint64_t *)(arena + page * PAGE))[w] = salt * 0x9e3779b97f4a7c15ull + w;
}
static size_t differs(size_t page) {
    size_t bad = 0;
    uint32_t salt = pages[page].salt;
    const uint64_t *words = (const uint64_t *)(arena + page * PAGE);
    for (size_t w = 0; w < PAGE / 8; w++) bad += words[w] != (salt ? salt * 0x9e3779b97f4a7c15ull + w : 0);
    return bad;
}

/* Returns whether one mapping of the kernel has all of a range. It allocates no memory, which could lie in the arena. */
static int is_one_mapping(const char *at, size_t len) {
    static char text[4 << 20];
    size_t size = 0;
    unsigned long start, end;
    int file = open("/proc/self/maps", O_RDONLY);
    if (file < 0) die("maps");
    for (ssize_t more; (more = read(file, text + size, sizeof text - 1 - size)) > 0;) size += (size_t)more;
    close(file);
    text[size] = 0;
    for (const char *line = text; line && sscanf(line, "%lx-%lx", &start, &end) == 2;) {
        if (start <= (uintptr_t)at && (uintptr_t)at + len <= end) return 1;
        if ((line = strchr(line, '\n'))) line++;
    }
    return 0;
}

static void by_chance(size_t mib, uint64_t seed) {
    size_t bad = 0, moves = 0, len, first;
    uint32_t salt = 0;
    state = seed;
    count = mib * MIB / PAGE;
    pages = calloc(count, sizeof *pages);
    arena = reserve(seed % 2 ? "lazy" : "none", mib * MIB);
    set(0, count, NONE, 0);
    for (int turn = 0; turn < 600; turn++) {
        if (turn == 200) { /* all of it is used, which exceeds a limit */
            if (mmap(arena, count * PAGE, RW, PLAIN | MAP_FIXED, -1, 0) != arena) die("all");
            set(0, count, WRITE, 0);
            for (size_t page = 0; page < count; page++) put(page, pages[page].salt = ++salt);
        }
        len = 1 + random_below(random_below(8) ? 64 : count / 4);
        first = random_below(count - len);
        char *at = arena + first * PAGE;
        int prot = (int)random_below(3), as[] = {PROT_NONE, PROT_READ, RW}, is_mapped = is_all(first, len, NONE);
        switch (random_below(10)) {
        case 0: case 1: case 2:
            if (!is_mapped) break;
            if (mprotect(at, len * PAGE, as[prot])) die("mprotect");
            set(first, len, NONE + prot, -1);
            break;
        case 3: case 4:
            for (size_t page = first; page < first + len; page++)
                if (pages[page].access == WRITE) put(page, pages[page].salt = ++salt);
            break;
        case 5:
            if (!is_mapped) break;
            if (madvise(at, len * PAGE, MADV_DONTNEED)) die("MADV_DONTNEED");
            for (size_t page = first; page < first + len; page++) pages[page].salt = 0;
            break;
        case 6:
            if (random_below(3)) break;
            if (munmap(at, len * PAGE)) die("munmap");
            set(first, len, GONE, 0);
            break;
        case 7: /* new memory, also where there was none: the program has no other that could lie there */
            if (!is_mapped && random_below(2)) break;
            if (mmap(at, len * PAGE, as[prot], PLAIN | MAP_FIXED | (turn % 2 ? MAP_NORESERVE : 0), -1, 0) != at) die("mmap");
            set(first, len, NONE + prot, 0);
            break;
        case 8: { /* moves pages within the arena */
            size_t to = random_below(count - len), end = first;
            while (end < first + len && pages[end].access == pages[first].access) end++;
            len = end - first;
            if (pages[first].access == GONE || (to < first + len && first < to + len)) break;
            char *target = arena + to * PAGE;
            if (mremap(at, len * PAGE, len * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target) {
                moves++;
                memcpy(pages + to, pages + first, len * sizeof *pages);
                set(first, len, GONE, 0);
            } else { /* several mappings, which kernels before Linux 6.17 do not move: the target may be gone */
                int refused = errno;
                if (refused != EFAULT || getenv("EVERY_MOVE") || is_one_mapping(at, len * PAGE)) errno = refused, die("mremap");
                if (mmap(target, len * PAGE, RW, PLAIN | MAP_FIXED, -1, 0) != target) die("target");
                set(to, len, WRITE, 0);
            }
            break;
        }
        default:
            if (!is_mapped) break;
            if (mremap(at, len * PAGE, (len + 1) / 2 * PAGE, 0) != at) break; /* several mappings for the kernel */
            set(first + (len + 1) / 2, len / 2, GONE, 0);
        }
        for (int look = 0; look < 20; look++) {
            size_t page = random_below(count);
            int access = pages[page].access;
            if (access >= READ) bad += differs(page);
            if (look == 0 && access != GONE) bad += faults(arena + page * PAGE, access == READ) != (access != WRITE);
        }
    }
    for (size_t page = 0; page < count; page++) if (pages[page].access >= READ) bad += differs(page);
    printf("random: %zu wrong, moved: %d\n", bad, moves > 0);
    munmap(arena, mib * MIB);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    struct sigaction action = {.sa_handler = leave};
    sigaction(SIGSEGV, &action, NULL);
    size_t mib = (size_t)atol(argv[2]);
    if (!strcmp(argv[1], "stack")) of_a_stack(mib);
    else if (!strcmp(argv[1], "random")) by_chance(mib, argc > 3 ? strtoull(argv[3], NULL, 10) : 1);
    else by_parts(argv[1], mib);
    return 0;
}
