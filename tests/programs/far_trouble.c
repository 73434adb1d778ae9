/* A program whose data are larger than its local memory, under failures or with actions that could cause some.
 * far_trouble WHAT MIB [ARGUMENT] */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static uint64_t *words;
static size_t count;

static uint64_t value(uint64_t who, size_t w) { return (w * 2654435761u) ^ (who << 48) ^ 1; }

static void write_all(uint64_t who) {
    for (size_t w = 0; w < count; w++) words[w] = value(who, w);
}

static size_t wrong(uint64_t who) {
    size_t bad = 0;
    for (size_t w = 0; w < count; w++) bad += words[w] != value(who, w);
    return bad;
}

static void outcome(const char *who, pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) printf("%s: none\n", who);
    else if (WIFSIGNALED(status)) printf("%s: signal %d\n", who, WTERMSIG(status));
    else printf("%s: status %d\n", who, WEXITSTATUS(status));
    fflush(stdout);
}

/* Closes descriptors that the program did not open, opens others with the same numbers and writes to them. */
static int descriptors(int (*close_all)(void)) {
    int null = open("/dev/null", O_WRONLY);
    printf("number %d\n", null);
    write_all(1);
    close_all();
    int mine[20];
    for (int i = 0; i < 20; i++) mine[i] = open("/dev/null", O_WRONLY);
    printf("numbers %d to %d\n", mine[0], mine[19]);
    for (int i = 0; i < 20; i++)
        if (write(mine[i], words, 4096) != 4096) return 4;
    size_t bad = wrong(1);
    write_all(2);
    void *more = malloc(20 << 20);
    memset(more, 1, 20 << 20);
    free(more);
    printf("%zu wrong\n", bad + wrong(2));
    return 0;
}

static int close_from(void) { closefrom(3); return 0; }
static int close_each(void) {
    for (int fd = 3; fd < 1024; fd++) close(fd);
    return 0;
}

/* Makes children without the C library's fork handlers, or with the memory of their parent. */
static int children(void) {
    write_all(1);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        size_t bad = wrong(1);
        _exit(bad ? 1 : 0);
    }
    outcome("clone reads", child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(9); }
    outcome("clone execs", child);
    child = _Fork();
    if (child == 0) _exit(words[count / 2] == value(1, count / 2) ? 0 : 1);
    outcome("_Fork reads", child);
    child = _Fork();
    if (child == 0) { execl("/bin/true", "true", (char *)NULL); _exit(9); }
    outcome("_Fork execs", child);
    char *const line[] = {"true", NULL};
    if (posix_spawn(&child, "/bin/true", NULL, NULL, line, environ)) return 4;
    outcome("posix_spawn", child);
    child = vfork();
    if (child == 0) _exit(words[count / 2] == value(1, count / 2) ? 0 : 1);
    outcome("vfork reads", child);
    child = fork();
    if (child == 0) _exit(wrong(1) ? 1 : 0);
    outcome("fork reads", child);
    printf("%zu wrong\n", wrong(1));
    return 0;
}

static volatile sig_atomic_t caught;
static sigjmp_buf back;

/* Handles a fault, and reads far memory itself. */
static void on_fault(int number) {
    caught += words[((size_t)caught * 7919 * 512) % count] != 0;
    (void)number;
    siglongjmp(back, 1);
}

/* The program's handlers must see its own faults, and none of far memory's. */
static int handlers(void) {
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    write_all(1);
    size_t bad = wrong(1);
    printf("caught %d\n", (int)caught);
    for (int i = 0; i < 100; i++)
        if (!sigsetjmp(back, 1)) bad += *(volatile char *)(uintptr_t)(8 * i);
    printf("caught %d\n", (int)caught);
    printf("%zu wrong\n", bad + wrong(1));
    return 0;
}

/* Allocates blocks until malloc fails, frees some, and allocates again. */
static int full(void) {
    enum { BLOCK = 4 << 20 };
    unsigned char *blocks[200];
    int got = 0, again = 0;
    write_all(1);
    while (got < 200 && (blocks[got] = malloc(BLOCK))) memset(blocks[got], got + 1, BLOCK), got++;
    printf("%s\n", got == 200 ? "never full" : errno == ENOMEM ? "full" : "odd");
    for (int i = 0; i < got; i += 2) free(blocks[i]);
    for (int i = 0; i < got; i += 2)
        if ((blocks[i] = malloc(BLOCK))) memset(blocks[i], i + 1, BLOCK), again++;
    size_t bad = wrong(1);
    for (int i = 0; i < got; i++)
        for (int b = 0; blocks[i] && b < BLOCK; b += 512) bad += blocks[i][b] != i + 1;
    printf("%s\n%zu wrong\n", again > got / 4 ? "room again" : "no room", bad);
    return 0;
}

/* Both sides of a fork write all pages again, for which the store has no room. */
static int sides(void) {
    write_all(1);
    pid_t child = fork();
    write_all(child ? 2 : 3);
    size_t bad = wrong(child ? 2 : 3);
    write_all(child ? 4 : 5);
    bad += wrong(child ? 4 : 5);
    if (child == 0) _exit(bad ? 1 : 0);
    outcome("child", child);
    write_all(6);
    printf("%zu wrong\n", bad + wrong(6));
    return 0;
}

static uint64_t array[(16 << 20) / 8] __attribute__((aligned(4096)));

static void *walk_array(void *none) {
    uintptr_t bad = 0;
    (void)none;
    for (size_t w = 0; w < sizeof array / 8; w++) array[w] = value(7, w);
    for (size_t w = 0; w < sizeof array / 8; w++) bad += array[w] != value(7, w);
    return (void *)bad;
}

/* Uses a static array and a large block at the same time, and then many blocks. */
static int regions(void) {
    enum { MANY = 2000, SIZE = 72 << 10 };
    static unsigned char *many[MANY];
    pthread_t other;
    void *bad = NULL;
    pthread_create(&other, NULL, walk_array, NULL);
    write_all(1);
    size_t all = wrong(1);
    pthread_join(other, &bad);
    for (int i = 0; i < MANY; i++) memset(many[i] = malloc(SIZE), i % 251 + 1, SIZE);
    for (int i = 0; i < MANY; i++)
        for (int b = 0; b < SIZE; b += 512) all += many[i][b] != i % 251 + 1;
    for (size_t w = 0; w < sizeof array / 8; w++) all += array[w] != value(7, w);
    printf("%zu wrong\n", all + (uintptr_t)bad + wrong(1));
    return 0;
}

static void *touch(void *argument) {
    uint64_t state = 88172645463325252ull + (uintptr_t)argument;
    for (;;) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        words[state % count] |= 0x10;
    }
    return NULL;
}

static volatile int sent;
static int line, room;

/* Binds all threads of the process to one processor, and the next thread to another. */
static void part_company(pthread_attr_t *next) {
    cpu_set_t all, one, other;
    int first = 0, last = CPU_SETSIZE - 1;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(first, &all)) first++;
    while (!CPU_ISSET(last, &all)) last--;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CPU_ZERO(&other);
    CPU_SET(last, &other);
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *it; (it = readdir(threads));) sched_setaffinity(atoi(it->d_name), sizeof one, &one);
    closedir(threads);
    pthread_attr_setaffinity_np(next, sizeof other, &other);
}

/* Sends memory that is not far, which takes milliseconds, and then far memory that is not resident. */
static void *send_all(void *block) {
    enum { FAR = 64 << 10 };
    char *near = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct iovec parts[2] = {{memset(near, '7', room), room - FAR}, {block, FAR}};
    writev(line, parts, 2);
    sent = 1;
    return NULL;
}

/* Ends the process while threads wait for pages, in their own code and in a system call. The kernel does not interrupt a
   thread that sends to a socket with room for all of the data. */
static int ends(long others) {
    enum { SIZE = 16 << 20 };
    char *const words[] = {"cat", NULL}, *const nothing[] = {NULL};
    socklen_t size = sizeof room;
    int lines[2], wish = 16 << 20;
    posix_spawn_file_actions_t files;
    pthread_attr_t attributes;
    pthread_t thread;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lines)) return 4;
    if (setsockopt(lines[0], SOL_SOCKET, SO_SNDBUFFORCE, &wish, size))
        setsockopt(lines[0], SOL_SOCKET, SO_SNDBUF, &wish, size);
    getsockopt(lines[0], SOL_SOCKET, SO_SNDBUF, &room, &size);
    line = lines[0], room /= 2; /* the kernel counts its own overhead, too */
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, lines[1], 0);
    if (posix_spawn(&(pid_t){0}, "/bin/cat", &files, NULL, words, nothing)) return 4;
    for (intptr_t t = 0; t < others; t++) pthread_create(&thread, NULL, touch, (void *)t);
    void *block = memset(malloc(SIZE), '7', SIZE);
    pthread_attr_init(&attributes);
    part_company(&attributes);
    pthread_create(&thread, &attributes, send_all, block);
    for (int queued = 0; !sent && queued == 0; usleep(0)) ioctl(line, SIOCOUTQ, &queued);
    _exit(0);
}

/* Reads commands, one per line, executes each and prints an answer. */
static void *steps(void *none) {
    char line[200], word[20], text[160];
    (void)none;
    while (fgets(line, sizeof line, stdin)) {
        uint64_t who = 0;
        text[0] = 0;
        sscanf(line, "%19s %159s", word, text);
        who = (uint64_t)atol(text);
        if (!strcmp(word, "write")) write_all(who), puts("written");
        else if (!strcmp(word, "read")) printf("%zu wrong\n", wrong(who));
        else if (!strcmp(word, "free")) free(words), puts("free");
        else if (!strcmp(word, "user")) puts(setresuid(65534, 65534, 65534) ? "not" : "user");
        else if (!strcmp(word, "root")) puts(chroot(text) ? "not" : "root");
        else if (!strcmp(word, "stderr")) puts(dup2(open(text, O_WRONLY | O_CREAT, 0600), 2) == 2 ? "stderr" : "not");
        else if (!strcmp(word, "more")) {
            char *more = malloc(20 << 20);
            puts(more ? "more" : "no more");
            if (more) memset(more, 1, 20 << 20);
            free(more);
        } else if (!strcmp(word, "map")) {
            puts(mmap(NULL, 20 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? "no map" : "map");
        } else if (!strcmp(word, "forget")) {
            puts(madvise(words, count * 8, MADV_DONTNEED) ? "not" : "forget");
        } else if (!strcmp(word, "fork")) {
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) _exit(wrong(who) ? 1 : 0);
            outcome("fork", child);
        } else if (!strcmp(word, "limit")) {
            struct rlimit limit = {who << 20, who << 20};
            puts(setrlimit(RLIMIT_FSIZE, &limit) ? "not" : "limit");
        } else if (!strcmp(word, "leave")) {
            pthread_t other;
            pthread_create(&other, NULL, steps, NULL);
            puts("left");
            fflush(stdout);
            pthread_exit(NULL);
        }
        fflush(stdout);
    }
    exit(0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    count = ((size_t)(argc > 2 ? atol(argv[2]) : 32) << 20) / 8;
    words = aligned_alloc(4096, count * 8);
    if (!words) { puts("no memory"); return 3; }
    if (!strcmp(what, "closefrom")) return descriptors(close_from);
    if (!strcmp(what, "close")) return descriptors(close_each);
    if (!strcmp(what, "children")) return children();
    if (!strcmp(what, "handlers")) return handlers();
    if (!strcmp(what, "full")) return full();
    if (!strcmp(what, "sides")) return sides();
    if (!strcmp(what, "regions")) return regions();
    if (!strcmp(what, "ends")) return ends(atol(argv[3]));
    if (!strcmp(what, "steps")) steps(NULL);
    return 2;
}
