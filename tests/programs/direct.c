/* Reads a file into memory while other threads cause the pages of this memory to be evicted and filled again.
   direct WAY FILE MIB ROUNDS; WAY: pread, uring, fixed (O_DIRECT), plain (ordinary calls), own (process_vm_writev into
   this process), other, stranger (the same by another process, with the environment of this one or without) */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READERS = 3, CHUNK = 256 << 10, DEPTH = 8, TOUCHES = 1 << 15 };
static const char *program, *file;
static size_t bytes;
static uint64_t *target, *noise;
static atomic_int done;
static atomic_size_t next_chunk, touched;

static uint64_t word(size_t at) { return at * 0x9e3779b97f4a7c15ull + 1; }

static void die(const char *what) {
    static atomic_flag dying = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&dying)) pause();
    printf("%s: %s\n", what, strerror(errno));
    exit(3);
}

static uint64_t random_number(uint64_t *state) {
    *state ^= *state << 13; *state ^= *state >> 7; *state ^= *state << 17;
    return *state;
}

/* Writes to random words of another array, so that pages of the target are evicted. */
static void *crowd(void *argument) {
    uint64_t state = 88172645463325252ull + (uintptr_t)argument;
    while (!done) {
        noise[random_number(&state) % (bytes / 8)] += 1;
        touched++;
    }
    return NULL;
}

static int open_file(void) {
    int fd = open(file, O_RDONLY | O_DIRECT);
    if (fd < 0) die("open");
    return fd;
}

static void *read_chunks(void *argument) {
    (void)argument;
    int fd = open_file();
    for (size_t at; (at = next_chunk++ * CHUNK) < bytes;)
        if (pread(fd, (char *)target + at, CHUNK, (off_t)at) != CHUNK) die("pread");
    close(fd);
    return NULL;
}

struct ring {
    int fd;
    struct io_uring_params is;
    char *submit, *complete;
    struct io_uring_sqe *entries;
};

static struct ring make_ring(void) {
    struct ring ring = {0};
    ring.fd = (int)syscall(SYS_io_uring_setup, DEPTH, &ring.is);
    if (ring.fd < 0) die("io_uring_setup");
    size_t submit = ring.is.sq_off.array + ring.is.sq_entries * sizeof(unsigned);
    size_t complete = ring.is.cq_off.cqes + ring.is.cq_entries * sizeof(struct io_uring_cqe);
    ring.submit = mmap(NULL, submit, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    ring.complete = mmap(NULL, complete, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, ring.is.sq_entries * sizeof *ring.entries, PROT_READ | PROT_WRITE, MAP_SHARED,
                        ring.fd, IORING_OFF_SQES);
    return ring;
}

#define AT(base, offset) ((_Atomic unsigned *)((base) + (offset)))

/* Submits DEPTH reads at a time. With `fixed`, their part of the buffer is registered, and thus pinned, until they are
   complete; the first parts stay registered until the other threads have written TOUCHES words. */
static void *ring_chunks(void *fixed) {
    struct ring ring = make_ring();
    int fd = open_file();
    for (size_t first; (first = atomic_fetch_add(&next_chunk, DEPTH) * CHUNK) < bytes;) {
        unsigned count = 0;
        size_t end = first + (size_t)DEPTH * CHUNK < bytes ? first + (size_t)DEPTH * CHUNK : bytes;
        struct iovec part = {(char *)target + first, end - first};
        if (fixed && syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &part, 1)) die("register");
        for (size_t at = first; at < end; at += CHUNK, count++) {
            unsigned tail = *AT(ring.submit, ring.is.sq_off.tail), slot = tail & (ring.is.sq_entries - 1);
            ring.entries[slot] = (struct io_uring_sqe){
                .opcode = fixed ? IORING_OP_READ_FIXED : IORING_OP_READ, .fd = fd, .off = at,
                .addr = (uintptr_t)target + at, .len = CHUNK};
            AT(ring.submit, ring.is.sq_off.array)[slot] = slot;
            *AT(ring.submit, ring.is.sq_off.tail) = tail + 1;
        }
        if (syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0) < 0) die("enter");
        while (count) {
            unsigned head = *AT(ring.complete, ring.is.cq_off.head);
            if (head == *AT(ring.complete, ring.is.cq_off.tail)) continue;
            struct io_uring_cqe *all = (struct io_uring_cqe *)(ring.complete + ring.is.cq_off.cqes);
            int got = all[head & (ring.is.cq_entries - 1)].res;
            if (got != CHUNK) { errno = got < 0 ? -got : EIO; die("io_uring read"); }
            *AT(ring.complete, ring.is.cq_off.head) = head + 1;
            count--;
        }
        for (size_t since = touched; fixed && first < READERS * DEPTH * CHUNK && touched - since < TOUCHES;) usleep(1000);
        if (fixed) syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
    }
    close(fd);
    close(ring.fd);
    return NULL;
}

/* Uses pread, preadv, fread, recv and process_vm_writev in turn. */
static void *plain_chunks(void *argument) {
    (void)argument;
    int fd = open(file, O_RDONLY), ends[2];
    FILE *stream = fopen(file, "r");
    if (fd < 0 || !stream || socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("open");
    for (size_t chunk; (chunk = next_chunk++) * CHUNK < bytes;) {
        size_t at = chunk * CHUNK, got = 0;
        char *to = (char *)target + at;
        struct iovec halves[2] = {{to, CHUNK / 2}, {to + CHUNK / 2, CHUNK / 2}}, all = {to, CHUNK};
        switch (chunk % 5) {
        case 0: got = (size_t)pread(fd, to, CHUNK, (off_t)at); break;
        case 1: got = (size_t)preadv(fd, halves, 2, (off_t)at); break;
        case 2: fseek(stream, (long)at, SEEK_SET); got = fread(to, 1, CHUNK, stream); break;
        case 3: /* sends far memory through a socket into far memory */
            for (size_t part = 0; part < CHUNK; part += 64 << 10) {
                char *from = malloc(64 << 10);
                for (size_t w = 0; w < (64 << 10) / 8; w++) ((uint64_t *)from)[w] = word((at + part) / 8 + w);
                if (send(ends[0], from, 64 << 10, 0) != 64 << 10) die("send");
                for (size_t in = 0; in < 64 << 10;) {
                    ssize_t more = recv(ends[1], to + part + in, (64 << 10) - in, 0);
                    if (more <= 0) die("recv");
                    in += (size_t)more;
                }
                got += 64 << 10;
                free(from);
            }
            break;
        case 4: {
            char *near = malloc(16 << 10);
            for (size_t part = 0; part < CHUNK; part += 16 << 10) {
                struct iovec from = {near, 16 << 10}, into = {to + part, 16 << 10};
                if (pread(fd, near, 16 << 10, (off_t)(at + part)) != 16 << 10) die("pread");
                if (process_vm_writev(getpid(), &from, 1, &into, 1, 0) != 16 << 10) die("process_vm_writev");
                if (process_vm_readv(getpid(), &from, 1, &into, 1, 0) != 16 << 10) die("process_vm_readv");
            }
            free(near);
            got = all.iov_len;
        }
        }
        if (got != CHUNK) die("a short read");
    }
    fclose(stream);
    close(fd); close(ends[0]); close(ends[1]);
    return NULL;
}

/* Writes the file with process_vm_writev to memory of a process. The source is the file's pages, which are not in memory,
   so that the kernel has up to 4 MiB of the target pinned while it reads one page after the other from the disk. */
static void write_slowly(pid_t process, char *to) {
    enum { LONG = 4 << 20 };
    int fd = open(file, O_RDONLY);
    char *from = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || from == MAP_FAILED || madvise(from, bytes, MADV_RANDOM)) die("mmap");
    for (size_t at; (at = next_chunk++ * LONG) < bytes;) {
        struct iovec source = {from + at, LONG}, into = {to + at, LONG};
        posix_fadvise(fd, (off_t)at, LONG, POSIX_FADV_DONTNEED);
        if (process_vm_writev(process, &source, 1, &into, 1, 0) != LONG) die("process_vm_writev");
    }
    munmap(from, bytes);
    close(fd);
}

static void *own_chunks(void *argument) {
    (void)argument;
    write_slowly(getpid(), (char *)target);
    return NULL;
}

/* Has another process do so. */
static void *foreign_chunks(void *argument) {
    if (next_chunk++) return NULL;
    char at[20], mib[20];
    snprintf(at, sizeof at, "%p", (void *)target);
    snprintf(mib, sizeof mib, "%zu", bytes >> 20);
    char *words[] = {(char *)program, "into", (char *)file, mib, at, NULL};
    fflush(stdout);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t child;
    int status = 0;
    if (posix_spawn(&child, program, NULL, NULL, words, argument ? environ : (char *[]){NULL})) die("spawn");
    if (waitpid(child, &status, 0) != child) die("waitpid");
    if (status) exit(WEXITSTATUS(status));
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    void *(*way)(void *) = !strcmp(argv[1], "plain") ? plain_chunks
                         : !strcmp(argv[1], "own") ? own_chunks
                         : !strcmp(argv[1], "other") || !strcmp(argv[1], "stranger") ? foreign_chunks
                         : !strcmp(argv[1], "pread") ? read_chunks : ring_chunks;
    void *fixed = strcmp(argv[1], "fixed") && strcmp(argv[1], "other") ? NULL : argv;
    program = argv[0];
    file = argv[2];
    bytes = (size_t)atol(argv[3]) << 20;
    if (!strcmp(argv[1], "into")) {
        write_slowly(getppid(), (char *)strtoull(argv[4], NULL, 0));
        return 0;
    }
    target = aligned_alloc(4096, bytes);
    noise = calloc(1, bytes);
    if (!target || !noise) die("memory");
    for (size_t w = 0; w < bytes / 8; w++) target[w] = word(w);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (size_t at = 0; at < bytes;) {
        ssize_t more = write(fd, (char *)target + at, bytes - at);
        if (more <= 0) die("write");
        at += (size_t)more;
    }
    if (fsync(fd) || close(fd)) die("fsync");
    size_t wrong = 0;
    for (long round = 0; round < atol(argv[4]); round++) {
        pthread_t crowds[2], readers[READERS];
        memset(target, 0x5a, bytes);
        next_chunk = 0;
        done = 0;
        for (uintptr_t t = 0; t < 2; t++) pthread_create(&crowds[t], NULL, crowd, (void *)t);
        for (int t = 0; t < READERS; t++) pthread_create(&readers[t], NULL, way, fixed);
        for (int t = 0; t < READERS; t++) pthread_join(readers[t], NULL);
        done = 1;
        for (int t = 0; t < 2; t++) pthread_join(crowds[t], NULL);
        for (size_t w = 0; w < bytes / 8; w++) wrong += target[w] != word(w);
    }
    printf("%zu wrong\n", wrong);
    unlink(file);
    return wrong != 0;
}
