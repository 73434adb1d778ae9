/* Records the pages that a program touches, without Largesse: preloaded, it writes their numbers to $TRACE_FILE.
 *
 * It serves blocks of 64 KiB and more itself, and watches them and the program's static arrays. Of the watched pages,
 * $TRACE_PAGES are accessible at a time; touching another one raises SIGSEGV, which records it, opens it and closes
 * the page that has been open for longest. The trace is therefore the sequence of touches without those of pages that
 * were open: each schedule for a larger memory that serves the program serves the trace with no more transfers.
 *
 * For programs with one thread. The kernel cannot use pages that are closed: `read`, `write`, `fread` and `fwrite` of
 * such blocks pass through a buffer, and other system calls with them fail. A freed block's numbers are not used
 * again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, GRANULE = 65536, MOST_OPEN = 16384, BUFFER = 1 << 16 };
#define ARENA ((size_t)1 << 38)

static char *arena, *statics, *statics_end;
static size_t used;
static size_t *sizes; /* by granule */
static char *open_pages[MOST_OPEN];
static size_t most_open, next_open;
static uint32_t numbers[BUFFER];
static size_t recorded;
static int file = -1;
static void *(*next_malloc)(size_t), *(*next_realloc)(void *, size_t), *(*next_calloc)(size_t, size_t);
static void *(*next_aligned)(size_t, size_t);
static void (*next_free)(void *);
static size_t (*next_usable)(void *);
static int (*next_sigaction)(int, const struct sigaction *, struct sigaction *);
static ssize_t (*next_read)(int, void *, size_t), (*next_write)(int, const void *, size_t);
static size_t (*next_fread)(void *, size_t, size_t, FILE *), (*next_fwrite)(const void *, size_t, size_t, FILE *);
static char early[1 << 16]; /* dlsym allocates before the next allocator is known */
static size_t early_used;

static void flush(void) {
    for (size_t at = 0; at < recorded * sizeof *numbers;) {
        ssize_t done = next_write(file, (char *)numbers + at, recorded * sizeof *numbers - at);
        if (done <= 0) abort();
        at += (size_t)done;
    }
    recorded = 0;
}

static void touched(int signal, siginfo_t *info, void *context) {
    (void)context;
    int before = errno;
    char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
    size_t number;
    if (page >= arena && page < arena + used) number = (size_t)(page - arena) / PAGE;
    else if (page >= statics && page < statics_end) number = (ARENA + (size_t)(page - statics)) / PAGE;
    else { /* not ours: the program's own fault */
        struct sigaction usual = {.sa_handler = SIG_DFL};
        next_sigaction(signal, &usual, 0);
        return;
    }
    char **oldest = &open_pages[next_open++ % most_open];
    if (*oldest) mprotect(*oldest, PAGE, PROT_NONE);
    *oldest = page;
    if (mprotect(page, PAGE, PROT_READ | PROT_WRITE)) abort();
    numbers[recorded++] = (uint32_t)number;
    if (recorded == BUFFER) flush();
    errno = before;
}

static int is_ours(const void *block) { return arena && (char *)block >= arena && (char *)block < arena + ARENA; }

static void *take(size_t size, size_t align) {
    size_t start = (used + align - 1) / align * align;
    used = (start + size + GRANULE - 1) / GRANULE * GRANULE;
    if (used > ARENA) abort();
    sizes[start / GRANULE] = size;
    return arena + start;
}

static int large(size_t size) { return arena && size >= GRANULE; }

void *malloc(size_t size) {
    if (large(size)) return take(size, GRANULE);
    if (next_malloc) return next_malloc(size);
    void *block = early + early_used;
    early_used += (size + 15) / 16 * 16;
    return block;
}

void *calloc(size_t count, size_t size) {
    if (large(count * size)) return take(count * size, GRANULE);
    return next_calloc ? next_calloc(count, size) : malloc(count * size);
}

void free(void *block) {
    if (is_ours(block)) madvise(block, sizes[((char *)block - arena) / GRANULE], MADV_DONTNEED);
    else if (next_free && !((char *)block >= early && (char *)block < early + sizeof early)) next_free(block);
}

size_t malloc_usable_size(void *block) {
    return is_ours(block) ? sizes[((char *)block - arena) / GRANULE] : next_usable(block);
}

void *realloc(void *block, size_t size) {
    if (!is_ours(block) && !(block && large(size))) return next_realloc(block, size);
    void *moved = malloc(size);
    if (!moved) return 0;
    size_t before = malloc_usable_size(block);
    memcpy(moved, block, before < size ? before : size);
    free(block);
    return moved;
}

void *aligned_alloc(size_t align, size_t size) {
    return large(size) ? take(size, align < GRANULE ? GRANULE : align) : next_aligned(align, size);
}

void *memalign(size_t align, size_t size) { return aligned_alloc(align, size); }

int posix_memalign(void **block, size_t align, size_t size) {
    *block = aligned_alloc(align, size);
    return *block ? 0 : ENOMEM;
}

/* R would replace the handler. */
int sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
    if (signal == SIGSEGV && file >= 0) return 0;
    if (!next_sigaction) next_sigaction = dlsym(RTLD_NEXT, "sigaction");
    return next_sigaction(signal, action, old);
}

/* The kernel uses this buffer in place of a watched block. `read` and `write` may move less than they were asked to. */
static char between[GRANULE];

static size_t part(size_t count) { return count < sizeof between ? count : sizeof between; }

ssize_t read(int from, void *to, size_t count) {
    if (!is_ours(to)) return next_read(from, to, count);
    ssize_t moved = next_read(from, between, part(count));
    if (moved > 0) memcpy(to, between, (size_t)moved);
    return moved;
}

ssize_t write(int to, const void *from, size_t count) {
    if (!is_ours(from)) return next_write(to, from, count);
    memcpy(between, from, part(count));
    return next_write(to, between, part(count));
}

size_t fread(void *to, size_t size, size_t count, FILE *from) {
    if (!is_ours(to)) return next_fread(to, size, count, from);
    size_t done = 0, moved = 1;
    for (; done < size * count && moved > 0; done += moved) {
        moved = next_fread(between, 1, part(size * count - done), from);
        memcpy((char *)to + done, between, moved);
    }
    return size ? done / size : 0;
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *to) {
    if (!is_ours(from)) return next_fwrite(from, size, count, to);
    size_t done = 0, moved = 1;
    for (; done < size * count && moved > 0; done += moved) {
        memcpy(between, (const char *)from + done, part(size * count - done));
        moved = next_fwrite(between, 1, part(size * count - done), to);
    }
    return size ? done / size : 0;
}

/* Finds the zeroed data of the program itself, which is first in the list. */
static int find_statics(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    for (int at = 0; at < info->dlpi_phnum; at++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[at];
        if (part->p_type != PT_LOAD || part->p_memsz < part->p_filesz + 2 * GRANULE) continue;
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        statics = (char *)((start + part->p_filesz + 2 * PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        statics_end = (char *)((start + part->p_memsz) & ~(uintptr_t)(PAGE - 1));
    }
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    next_malloc = dlsym(RTLD_NEXT, "malloc"), next_calloc = dlsym(RTLD_NEXT, "calloc");
    next_realloc = dlsym(RTLD_NEXT, "realloc"), next_free = dlsym(RTLD_NEXT, "free");
    next_aligned = dlsym(RTLD_NEXT, "aligned_alloc"), next_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    next_sigaction = dlsym(RTLD_NEXT, "sigaction");
    next_read = dlsym(RTLD_NEXT, "read"), next_write = dlsym(RTLD_NEXT, "write");
    next_fread = dlsym(RTLD_NEXT, "fread"), next_fwrite = dlsym(RTLD_NEXT, "fwrite");
    const char *name = getenv("TRACE_FILE"), *pages = getenv("TRACE_PAGES");
    most_open = pages ? (size_t)atoll(pages) : 0;
    if (!name || most_open < 16 || most_open > MOST_OPEN) return;
    file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t table = ARENA / GRANULE * sizeof *sizes;
    sizes = mmap(0, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arena = mmap(0, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (file < 0 || sizes == MAP_FAILED || arena == MAP_FAILED || next_sigaction(SIGSEGV, &action, 0)) abort();
    dl_iterate_phdr(find_statics, 0);
    if (statics) mprotect(statics, (size_t)(statics_end - statics), PROT_NONE);
}

__attribute__((destructor)) static void end(void) {
    if (file >= 0) flush();
}
