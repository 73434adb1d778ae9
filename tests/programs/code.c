/* Writes code and data to memory from which code may run, runs it, and changes its protection: code WAY MIB
   WAY: `plain` maps with mmap anywhere; `number` maps with syscall at a wished address, as SBCL maps its heap. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, FROM_FILE = 2, MIB = 1 << 20, ALL = PROT_READ | PROT_WRITE | PROT_EXEC };
static char *memory;
static size_t pages;
static volatile sig_atomic_t barriers;

static uint32_t value(size_t page) { return (uint32_t)page * 2654435761u; }
static char *code(size_t page) { return memory + page * PAGE + page % 61 * 64; }

/* Writes a function that returns a number of its page. */
static void write_code(size_t page) {
    uint32_t word = value(page);
#ifdef __x86_64__
    unsigned char function[] = { 0xb8, 0, 0, 0, 0, 0xc3 };
    memcpy(function + 1, &word, 4);
#else
    uint32_t function[] = { 0x52800000 | (word & 0xffff) << 5, 0x72a00000 | (word >> 16) << 5, 0xd65f03c0 };
#endif
    memcpy(code(page), function, sizeof function);
    __builtin___clear_cache(code(page), code(page) + sizeof function);
}

static void fill(size_t page) {
    memset(memory + page * PAGE, (int)(page % 251), PAGE);
    write_code(page);
}

/* Runs the code of each `step`th page from `first` on. */
static size_t run(size_t first, size_t step) {
    size_t wrong = 0;
    for (size_t page = first; page < pages; page += step)
        wrong += ((uint32_t(*)(void))code(page))() != value(page);
    return wrong;
}

static void *run_odd(void *wrong) { *(size_t *)wrong = run(1, 2); return NULL; }

/* Makes a page that is protected against writing writable, as a collector does that notes which pages change. */
static void barrier(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    char *at = info->si_addr;
    if (at < memory || at >= memory + pages * PAGE) _exit(5);
    barriers++;
    if (mprotect((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, ALL)) _exit(6);
}

static void must(int failed, const char *what) { if (failed) { perror(what); exit(3); } }

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    size_t bytes = strtoul(argv[2], NULL, 10) * MIB, wrong = 0, wrong_odd = 0;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    memory = strcmp(argv[1], "number") ? mmap(NULL, bytes, ALL, flags, -1, 0)
        : (char *)syscall(SYS_mmap, (void *)0x2000000000, bytes, ALL, flags | MAP_NORESERVE, -1, 0l);
    must(memory == MAP_FAILED, "mmap");
    pages = bytes / PAGE;
    struct sigaction action = { .sa_sigaction = barrier, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);

    /* A file over the first pages, whose private copies the program changes. */
    int file = open("/proc/self/exe", O_RDONLY);
    must(mmap(memory, FROM_FILE * PAGE, ALL, MAP_PRIVATE | MAP_FIXED, file, 0) != memory, "mmap of a file");
    wrong += memcmp(memory, "\177ELF", 4) != 0;
    for (size_t page = 0; page < FROM_FILE; page++) write_code(page);
    for (size_t page = FROM_FILE; page < pages; page++) fill(page);

    /* Half of the pages in a second thread. */
    pthread_t thread;
    must(pthread_create(&thread, NULL, run_odd, &wrong_odd), "pthread_create");
    wrong += run(0, 2);
    pthread_join(thread, NULL);
    wrong += wrong_odd;

    /* Eight pages of each MiB without the right to write, and two without any. */
    for (size_t page = 64; page + 16 < pages; page += 256) {
        must(mprotect(memory + page * PAGE, 8 * PAGE, PROT_READ | PROT_EXEC), "mprotect");
        must(mprotect(memory + (page + 8) * PAGE, 2 * PAGE, PROT_NONE), "mprotect");
    }
    for (size_t page = FROM_FILE; page < pages; page++) {
        if (page % 256 / 2 == 36 && page / 256 * 256 + 80 < pages)
            must(mprotect(memory + page * PAGE, PAGE, ALL), "mprotect");
        wrong += ((uint32_t(*)(void))code(page))() != value(page);
        wrong += memory[page * PAGE + PAGE - 1] != (char)(page % 251);
        if (page % 3 == 0) memory[page * PAGE + PAGE - 1] = 0, memory[page * PAGE + PAGE - 2] = 1;
    }

    /* Pages that are dropped, mapped again, and unmapped. */
    size_t half = pages / 2;
    must(syscall(SYS_madvise, memory + half * PAGE, 256 * PAGE, MADV_DONTNEED), "madvise");
    for (size_t page = half; page < half + 256; page++) {
        wrong += memory[page * PAGE] || memory[page * PAGE + PAGE - 1];
        fill(page);
    }
    char *new = mmap(memory + (half + 512) * PAGE, 64 * PAGE, ALL, flags | MAP_FIXED, -1, 0);
    must(new != memory + (half + 512) * PAGE, "mmap with MAP_FIXED");
    for (size_t page = half + 512; page < half + 576; page++) {
        wrong += memory[page * PAGE] != 0;
        fill(page);
    }
    wrong += run(0, 1);
    uint64_t sum = 0;
    for (size_t page = FROM_FILE; page < pages; page++) sum = sum * 31 + (unsigned char)memory[page * PAGE + PAGE - 1];
    must(syscall(SYS_munmap, memory, bytes), "munmap");
    printf("%zu wrong, %d barriers, sum %llu\n", wrong, (int)barriers, (unsigned long long)sum);
    return wrong != 0;
}
