/* Prints what the kernel does with populated large pages that are registered with userfaultfd, one "fact: answer" a
   line. docs/design/limit.md has the table that results, and tests/tests/kernel_facts.rs checks it.
   Usage: kernel_facts device|call|user-mode   (how the userfaultfd is opened) */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* Newer than the headers of some systems. */
#define MOVE _IOWR(0xAA, 5, struct move)
struct move { uint64_t to, from, len, mode; int64_t moved; };
#define FEATURE_MOVE (1ull << 16)
#define USER_MODE_ONLY 1
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { PAGE = 4096, PAGES = 512 };
static const size_t SPAN = 2 << 20;
static int fd;
static uint64_t features;

static const char *reason(long rc) { return rc == 0 ? "yes" : strerrorname_np(errno); }
static void fact(const char *name, const char *answer) { printf("%s: %s\n", name, answer); }

static int open_by(const char *how) {
    if (!strcmp(how, "device")) {
        int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        return device < 0 ? -1 : ioctl(device, _IO(0xAA, 0), O_CLOEXEC | O_NONBLOCK);
    }
    return syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | (strcmp(how, "call") ? USER_MODE_ONLY : 0));
}

/* Returns an aligned range of `spans` spans that is advised as `advice`. */
static char *range(size_t spans, int advice) {
    char *all = mmap(0, (spans + 1) * SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)(((uintptr_t)all + SPAN - 1) / SPAN * SPAN);
    madvise(at, spans * SPAN, advice);
    return at;
}

/* Returns the number of KiB that smaps has in a line of the mapping around an address, such as "Rss: %lu". */
static unsigned long kib_of(char *at, const char *form) {
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long start = 0, end = 0, kib, seen = 0;
    while (fgets(line, sizeof line, smaps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) start = from, end = to;
        if (sscanf(line, form, &kib) == 1 && start <= (uintptr_t)at && (uintptr_t)at < end) seen = kib;
    }
    fclose(smaps);
    return seen;
}
/* Returns whether the page at an address is mapped by a large page: the sum of AnonHugePages of its mapping. */
static int is_large(char *at) { return kib_of(at, "AnonHugePages: %lu") > 0; }
static unsigned long young_kib(char *at) { return kib_of(at, "Referenced: %lu"); }

static void fill(char *at) { for (int page = 0; page < PAGES; page++) at[(size_t)page * PAGE] = (char)(page % 100 + 1); }
static int intact(char *at) {
    for (int page = 0; page < PAGES; page++) if (at[(size_t)page * PAGE] != (char)(page % 100 + 1)) return 0;
    return 1;
}
static long enlist(char *at, size_t len) {
    struct uffdio_register all = { { (uintptr_t)at, len }, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP, 0 };
    return ioctl(fd, UFFDIO_REGISTER, &all);
}
static long dismiss(char *at, size_t len) {
    struct uffdio_range all = { (uintptr_t)at, len };
    return ioctl(fd, UFFDIO_UNREGISTER, &all);
}
static long protect(char *at, size_t len, int on) {
    struct uffdio_writeprotect part = { { (uintptr_t)at, len }, on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };
    return ioctl(fd, UFFDIO_WRITEPROTECT, &part);
}
/* Moves pages and repeats the call as the kernel asks. EBUSY says that a page is pinned. For a moment, that is also so
   while the kernel works on it itself, for example to compact memory: the call is repeated for a second, and the page is
   written first, as the pager does. */
static long move(char *to, char *from, size_t len) {
    int busy = 0;
    for (;;) {
        struct move all = { (uintptr_t)to, (uintptr_t)from, len, 0, 0 };
        if (ioctl(fd, MOVE, &all) == 0) return 0;
        if (errno != EAGAIN && (errno != EBUSY || ++busy > 1000)) return -1;
        if (all.moved > 0) to += all.moved, from += all.moved, len -= (size_t)all.moved;
        if (errno == EBUSY) {
            usleep(1000);
            *(volatile char *)from = *(volatile char *)from;
        }
    }
}
static long put(char *at, char *from) {
    struct uffdio_copy page = { (uintptr_t)at, (uintptr_t)from, PAGE, 0, 0 };
    return ioctl(fd, UFFDIO_COPY, &page);
}

/* Bytes that the memory control group of this process is charged; 0 if they cannot be read. */
static unsigned long charged(void) {
    const char *forms[] = { "/sys/fs/cgroup/memory%s/memory.usage_in_bytes", "/sys/fs/cgroup%s/memory.current" };
    char line[512], path[600];
    FILE *groups = fopen("/proc/self/cgroup", "r");
    unsigned long bytes = 0;
    while (groups && bytes == 0 && fgets(line, sizeof line, groups)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':') + 1, *folder = strchr(controllers, ':') + 1;
        int first = !strncmp(controllers, "memory:", 7), second = *controllers == ':';
        if (!first && !second) continue;
        snprintf(path, sizeof path, forms[second], folder);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%lu", &bytes) != 1) bytes = 0;
        if (file) fclose(file);
    }
    if (groups) fclose(groups);
    return bytes;
}

/* Drops half of the pages of many large pages, and says what share of the dropped bytes is no longer charged. */
static void partly_dropped(void) {
    enum { SPANS = 32 };
    char *at = range(SPANS, MADV_HUGEPAGE);
    for (int span = 0; span < SPANS; span++) fill(at + (size_t)span * SPAN);
    unsigned long before = charged();
    if (!before || !is_large(at)) { fact("half of each large page dropped", "unknown"); return; }
    for (int span = 0; span < SPANS; span++) madvise(at + (size_t)span * SPAN, SPAN / 2, MADV_DONTNEED);
    unsigned long half = charged();
    for (int span = 0; span < SPANS; span++) madvise(at + (size_t)span * SPAN + SPAN / 2, SPAN / 2, MADV_DONTNEED);
    unsigned long all = charged();
    unsigned long freed = before > half ? before - half : 0, rest = half > all ? half - all : 0;
    fact("half of each large page dropped", freed > SPANS * SPAN / 4 ? "uncharged" : "still charged");
    fact("the other half dropped, too", freed + rest > SPANS * SPAN * 3 / 4 ? "uncharged" : "still charged");
}

/* Moves half of the pages of many large pages to another range, as an eviction does, and drops them there. */
static void partly_moved(void) {
    enum { SPANS = 32 };
    char *at = range(SPANS, MADV_HUGEPAGE), *to = range(1, MADV_NOHUGEPAGE);
    for (int span = 0; span < SPANS; span++) fill(at + (size_t)span * SPAN);
    unsigned long before = charged();
    if (!before || !is_large(at)) { fact("half of each large page moved out", "unknown"); return; }
    enlist(at, SPANS * SPAN), enlist(to, SPAN);
    for (int span = 0; span < SPANS; span++) {
        if (move(to, at + (size_t)span * SPAN, SPAN / 2)) { fact("half of each large page moved out", reason(-1)); return; }
        madvise(to, SPAN / 2, MADV_DONTNEED);
    }
    unsigned long after = charged();
    fact("half of each large page moved out", before > after + SPANS * SPAN / 4 ? "uncharged" : "still charged");
}

/* Bytes that the kernel may take from this process although they have contents: offered, and not written since. */
static unsigned long offered_kib(void) {
    FILE *smaps = fopen("/proc/self/smaps_rollup", "r");
    char line[512];
    unsigned long kib = 0;
    while (smaps && fgets(line, sizeof line, smaps)) sscanf(line, "LazyFree: %lu", &kib);
    if (smaps) fclose(smaps);
    return kib;
}

/* Offers pages to the kernel, and takes them back by write faults that write nothing. */
static void taken_back(int advice, const char *name) {
    char *at = range(1, advice);
    fill(at);
    madvise(at, SPAN, MADV_FREE);
    unsigned long before = offered_kib();
    long rc = madvise(at, SPAN, 23 /* MADV_POPULATE_WRITE */);
    fact(name, rc ? reason(rc) : before == 0 ? "unknown" : offered_kib() > 0 || !intact(at) ? "still offered" : "kept");
}

/* A call that is in the kernel when its page is taken away. */
static int ends[2];
static void *read_into(void *at) { return (void *)(read(ends[0], at, 1) < 0 ? (intptr_t)errno : 0); }
static void wait_for_call(pid_t thread, char *line, int size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    /* The thread is in its read once its call has number 0. */
    for (int turn = 0; turn < 1000; turn++) {
        FILE *call = fopen(path, "r");
        if (!call || !fgets(line, size, call)) strcpy(line, "-");
        if (call) fclose(call);
        if (!strncmp(line, "0 ", 2)) return;
        usleep(1000);
    }
}
static pid_t other_thread(void) {
    pid_t thread = 0;
    DIR *all = opendir("/proc/self/task");
    for (struct dirent *one; (one = readdir(all));) if (atoi(one->d_name) > 0 && atoi(one->d_name) != getpid()) thread = atoi(one->d_name);
    closedir(all);
    return thread;
}
static void waiting_read(void) {
    char *at = range(1, MADV_NOHUGEPAGE), line[256];
    fill(at);
    pthread_t thread;
    void *answer;
    if (pipe(ends) || pthread_create(&thread, 0, read_into, at)) return;
    wait_for_call(other_thread(), line, sizeof line);
    fact("call of a waiting thread is shown", strncmp(line, "0 ", 2) ? "no" : "yes");
    enlist(at, SPAN);
    madvise(at, PAGE, MADV_DONTNEED);
    if (write(ends[1], "x", 1) != 1) return;
    pthread_join(thread, &answer);
    errno = (int)(intptr_t)answer;
    fact("read(2) that waited when its page was evicted", reason(errno));
}

/* A filter that comes to a thread which waits in a call, and blocks the filter's signal. */
static void *read_and_ask(void *mark) {
    char byte;
    if (read(ends[0], &byte, 1) == 1) *(volatile int *)mark = 1;
    getppid();
    *(volatile int *)mark = 2;
    return 0;
}
static void waiting_thread(void) {
    int *mark = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status;
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getppid},
            {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
        struct sock_fprog program = {4, code};
        sigset_t all;
        pthread_t thread;
        char line[256];
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, 0);
        if (pipe(ends) || pthread_create(&thread, 0, read_and_ask, mark)) _exit(1);
        wait_for_call(other_thread(), line, sizeof line);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program)) _exit(2);
        if (write(ends[1], "x", 1) != 1) _exit(3);
        pthread_join(thread, 0);
        _exit(0);
    }
    waitpid(child, &status, 0);
    fact("call that waited when a filter came is filtered", *mark ? "no" : "yes");
    fact("trapped call with its signal blocked", WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? "kills" : "returns");
}

static int write_to(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CLOEXEC);
    int ok = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) close(file);
    return ok;
}

/* Which pages were used, without faults: the pages of a range are made old, and smaps counts those that became young
   again. `clear_refs` does so for all pages of the process. */
static void young_and_old(int advice, const char *what) {
    char *at = range(2, advice), name[99];
    fill(at), fill(at + SPAN);
    int large = is_large(at);
    int refused = madvise(at, 2 * SPAN, 20 /* MADV_COLD */);
    snprintf(name, sizeof name, "%s made old", what);
    fact(name, refused ? reason(-1) : young_kib(at) ? "young" : "old");
    for (size_t page = 0; page < PAGES; page++) *(volatile char *)(at + page * PAGE);
    snprintf(name, sizeof name, "%s, half of them read", what);
    fact(name, young_kib(at) == SPAN / 1024 ? "half are young" : "another share is young");
    snprintf(name, sizeof name, "%s made old, still as large", what);
    fact(name, is_large(at) == large && intact(at) ? "yes" : "no");
    int cleared = write_to("/proc/self/clear_refs", "1");
    snprintf(name, sizeof name, "%s made old by clear_refs", what);
    fact(name, !cleared ? reason(-1) : young_kib(at) ? "young" : "old");
    /* One of them becomes a mapping of its own, with young pages of its own, and no longer. */
    unsigned long all = kib_of(at, "Size: %lu");
    madvise(at + SPAN, SPAN, MADV_RANDOM);
    *(volatile char *)at, *(volatile char *)(at + SPAN) = 1;
    int apart = kib_of(at + SPAN, "Size: %lu") == SPAN / 1024 && young_kib(at + SPAN) > 0;
    madvise(at, 2 * SPAN, MADV_NORMAL);
    snprintf(name, sizeof name, "%s, one of two divided by advice, and joined", what);
    fact(name, apart && kib_of(at, "Size: %lu") == all && is_large(at) == large ? "yes" : "no");
}

/* Written pages, which are less than used ones: by write protection that the kernel lifts itself (6.7), and by the
   soft-dirty bits of the page tables. */
static void written(const char *how) {
    int other = open_by(how);
    struct uffdio_api api = { UFFD_API, 1 << 15 /* UFFD_FEATURE_WP_ASYNC */, 0 };
    char *at = range(1, MADV_HUGEPAGE);
    fill(at);
    if (ioctl(other, UFFDIO_API, &api)) {
        fact("large page protected without faults", reason(-1));
    } else {
        struct uffdio_register all = { { (uintptr_t)at, SPAN }, UFFDIO_REGISTER_MODE_WP, 0 };
        struct uffdio_writeprotect part = { { (uintptr_t)at, SPAN }, UFFDIO_WRITEPROTECT_MODE_WP };
        int rc = ioctl(other, UFFDIO_REGISTER, &all) || ioctl(other, UFFDIO_WRITEPROTECT, &part);
        fact("large page protected without faults", reason(rc));
        *(volatile char *)at = 1;
        fact("written then, it is still large", is_large(at) ? "yes" : "no");
    }
    close(other);
    char *page = range(1, MADV_NOHUGEPAGE);
    fill(page);
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), cleared = write_to("/proc/self/clear_refs", "4");
    uint64_t entries[2] = { 0, 0 };
    *(volatile char *)page = 1;
    ssize_t read = pread(pagemap, entries, sizeof entries, (off_t)((uintptr_t)page / PAGE * sizeof entries[0]));
    int seen = cleared && read == sizeof entries && entries[0] >> 55 & 1 && !(entries[1] >> 55 & 1);
    fact("soft-dirty bits", seen ? "yes" : "no");
    close(pagemap);
}

int main(int argc, char **argv) {
    struct utsname name;
    uname(&name);
    fact("kernel", name.release);
    fd = open_by(argc > 1 ? argv[1] : "call");
    fact("opened", reason(fd < 0));
    if (fd < 0) return 0;
    struct uffdio_api api = { UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP, 0 };
    if (ioctl(fd, UFFDIO_API, &api)) { fact("write protection", reason(-1)); return 0; }
    features = api.features;
    int moves = !!(features & FEATURE_MOVE);
    fact("moves pages", moves ? "yes" : "no");

    char *at = range(1, MADV_HUGEPAGE), *page = aligned_alloc(PAGE, PAGE);
    fill(at);
    if (!is_large(at)) { fact("large pages", "no"); return 0; }
    fact("populated large page registered", reason(enlist(at, SPAN)));
    fact("it is still large", is_large(at) ? "yes" : "no");
    fact("its contents are intact", intact(at) ? "yes" : "no");

    fact("protected whole", reason(protect(at, SPAN, 1)));
    fact("protected whole, it is still large", is_large(at) ? "yes" : "no");
    protect(at, SPAN, 0);
    fact("protected in part", reason(protect(at, PAGE, 1)));
    fact("protected in part, it is still large", is_large(at) ? "yes" : "no");
    protect(at, SPAN, 0);

    /* All pages are present: the page becomes large again while it is registered. */
    fact("collapsed while registered", reason(madvise(at, SPAN, MADV_COLLAPSE)));
    fact("unregistered", reason(dismiss(at, SPAN)));
    fact("unregistered, its contents are intact", intact(at) ? "yes" : "no");
    if (!is_large(at)) fact("collapsed after it was unregistered", reason(madvise(at, SPAN, MADV_COLLAPSE)));

    /* A page that is missing when its range is unregistered. */
    enlist(at, SPAN);
    madvise(at + PAGE, PAGE, MADV_DONTNEED);
    fact("collapsed with a page missing", reason(madvise(at, SPAN, MADV_COLLAPSE)));
    dismiss(at, SPAN);
    fact("missing page after it was unregistered", at[PAGE] == 0 ? "zero" : "not zero");

    if (moves) {
        char *from = range(1, MADV_HUGEPAGE), *to = range(1, MADV_NOHUGEPAGE);
        fill(from);
        enlist(from, SPAN), enlist(to, SPAN);
        fact("moved whole", reason(move(to, from, SPAN)));
        fact("moved whole, it is still large", is_large(to) ? "yes" : "no");
        fact("moved whole, its contents are intact", intact(to) ? "yes" : "no");
        char *target = range(2, MADV_NOHUGEPAGE);
        from = range(1, MADV_HUGEPAGE);
        fill(from);
        enlist(from, SPAN), enlist(target, 2 * SPAN);
        put(target, page); /* gives the first span of the target a page table */
        madvise(target, PAGE, MADV_DONTNEED);
        fact("moved whole to a page table", reason(move(target, from, SPAN)));
        fact("moved to a page table, it is still large", is_large(target) ? "yes" : "no");
        fact("moved to a page table, its contents are intact", intact(target) ? "yes" : "no");
        from = range(1, MADV_HUGEPAGE), target = range(1, MADV_NOHUGEPAGE);
        fill(from);
        enlist(from, SPAN), enlist(target, SPAN);
        fact("moved in part", reason(move(target, from, PAGE)));
        fact("moved in part, the rest is large", is_large(from) ? "yes" : "no");
        char *mixed = range(1, MADV_HUGEPAGE), *zeros = range(1, MADV_NOHUGEPAGE);
        enlist(zeros, SPAN);
        volatile char seen = mixed[0]; /* maps the large page of zeros */
        (void)seen;
        enlist(mixed, SPAN);
        fact("moved page of zeros", reason(move(zeros, mixed, PAGE)));
    }

    /* A mapping over a registered range. */
    char *over = range(1, MADV_NOHUGEPAGE);
    enlist(over, SPAN);
    mmap(over, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    fact("mapped over, still registered", put(over, page) == 0 ? "yes" : "no");
    /* A reserved range, which is made accessible after its registration. */
    char *guarded = range(1, MADV_NOHUGEPAGE);
    mprotect(guarded, SPAN, PROT_NONE);
    fact("reserved range registered", reason(enlist(guarded, SPAN)));
    mprotect(guarded, SPAN, PROT_READ | PROT_WRITE);
    fact("made accessible, still registered", put(guarded, page) == 0 ? "yes" : "no");
    /* A call of the kernel on a missing page: only who may handle such faults waits for the page, so that the write
       here is not tried where it would wait for good. */
    if (argc > 1 && !strcmp(argv[1], "user-mode")) {
        int pipes[2];
        if (pipe(pipes)) return 1;
        errno = 0;
        fact("write(2) of a missing page", reason(write(pipes[1], guarded + PAGE, 1) < 0));
        waiting_read();
        waiting_thread();
    }
    taken_back(MADV_HUGEPAGE, "offered large page populated");
    taken_back(MADV_NOHUGEPAGE, "offered small pages populated");
    partly_dropped();
    if (moves) partly_moved();
    young_and_old(MADV_HUGEPAGE, "large pages");
    young_and_old(MADV_NOHUGEPAGE, "small pages");
    written(argc > 1 ? argv[1] : "call");
    return 0;
}
