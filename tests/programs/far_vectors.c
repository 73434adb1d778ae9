// Makes system calls with many buffers, or with more data than local memory, and prints how much each transferred.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, LONG = 3 << 20, FLOOD = 5 << 18, GAP = 5000 };

static char *from, *to, *flood;

static void push_out(void) {
    for (size_t at = 0; at < FLOOD; at += PAGE) flood[at]++;
}

// Returns an array of buffers of `len` bytes, each on pages of its own.
static struct iovec *parts(char *memory, int count, size_t len) {
    struct iovec *array = malloc(count * sizeof *array);
    for (int at = 0; at < count; at++) array[at] = (struct iovec){memory + (size_t)at * GAP, len};
    return array;
}

static void begin(size_t len) {
    for (size_t at = 0; at < len; at++) from[at] = (char)(at * 2654435761u >> 9), to[at] = 0;
    push_out();
}

static void result(const char *what, long got) {
    int error = errno;
    push_out();
    if (got < 0) printf("%s: %s\n", what, strerrorname_np(error));
    else printf("%s: %ld\n", what, got);
}

// Returns the number of bytes that are the same in the buffers of `to` and `from`.
static size_t same(int count, size_t len) {
    size_t same = 0;
    for (int at = 0; at < count; at++)
        for (size_t byte = 0; byte < len; byte++) same += from[(size_t)at * GAP + byte] == to[(size_t)at * GAP + byte];
    return same;
}

static int ends[2];
static size_t took;

// Reads from the pipe into `to` until its end.
static void *take(void *unused) {
    (void)unused;
    took = 0;
    for (ssize_t got; (got = read(ends[0], to + took, 2 * LONG - took)) > 0;) took += (size_t)got;
    return NULL;
}

static void files(int flags, const char *name) {
    int fd = open("vectors.dat", O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
    const int counts[] = {64, 65, 200, IOV_MAX, IOV_MAX + 1};
    for (int at = 0; at < 5; at++) {
        begin((size_t)counts[at] * GAP);
        struct iovec *out = parts(from, counts[at], 100), *in = parts(to, counts[at], 100);
        printf("%s, %d parts\n", name, counts[at]);
        result("writev", writev(fd, out, counts[at]));
        lseek(fd, 0, SEEK_SET);
        result("readv", readv(fd, in, counts[at]));
        result("pwritev", pwritev(fd, out, counts[at], flags ? 0 : 777));
        result("preadv", preadv(fd, in, counts[at], flags ? 0 : 777));
        result("pwritev2", pwritev2(fd, out, counts[at], -1, 0));
        lseek(fd, 10, SEEK_SET);
        result("preadv2", preadv2(fd, in, counts[at], -1, 0));
        result("place", lseek(fd, 0, SEEK_CUR));
        result("length", lseek(fd, 0, SEEK_END));
        ftruncate(fd, 0), lseek(fd, 0, SEEK_SET), free(out), free(in);
    }
    begin(2 * LONG);
    struct iovec out[3] = {{from, LONG}, {from + LONG, 1}, {from + LONG + 1, LONG - 1}}, in[3] = {{to, LONG - 5}, {to + LONG - 5, 0}, {to + LONG - 5, LONG + 9}};
    result("long writev", writev(fd, out, 3));
    lseek(fd, 0, SEEK_SET);
    result("long readv", readv(fd, in, 3));
    printf("%d\n", memcmp(from, to, 2 * LONG));
    result("long pwrite", pwrite(fd, from + 1, LONG, 5));
    result("long pread", pread(fd, to + 1, LONG, 5));
    result("length", lseek(fd, 0, SEEK_END));
    close(fd), unlink("vectors.dat");
}

static void pipes(void) {
    pthread_t reader;
    const int counts[] = {200, IOV_MAX, IOV_MAX + 1};
    for (int at = 0; at < 3; at++) {
        begin((size_t)counts[at] * GAP);
        pipe(ends), pthread_create(&reader, NULL, take, NULL);
        struct iovec *out = parts(from, counts[at], 100);
        printf("pipe, %d parts\n", counts[at]);
        result("writev", writev(ends[1], out, counts[at]));
        close(ends[1]), pthread_join(reader, NULL), close(ends[0]), free(out);
        size_t wrong = 0;
        for (size_t byte = 0; byte < took; byte++) wrong += to[byte] != from[byte / 100 * GAP + byte % 100];
        printf("%zu bytes, %zu wrong\n", took, wrong);
    }
    begin(2 * LONG);
    struct iovec out[2] = {{from, LONG}, {from + LONG, LONG}};
    pipe(ends), pthread_create(&reader, NULL, take, NULL);
    result("long writev to a pipe", writev(ends[1], out, 2));
    close(ends[1]), pthread_join(reader, NULL), close(ends[0]);
    printf("%zu bytes, %d\n", took, memcmp(from, to, 2 * LONG));
    pipe2(ends, O_NONBLOCK), fcntl(ends[1], F_SETPIPE_SZ, 1 << 16);
    result("long writev to a pipe that does not wait", writev(ends[1], out, 2));
    result("and again", writev(ends[1], out, 2));
    close(ends[0]), close(ends[1]);
}

// Sends and receives messages, whose boundaries must be kept.
static void messages(int type, const char *name) {
    const int counts[] = {1, 64, 65, 200, IOV_MAX, IOV_MAX + 1};
    socketpair(AF_UNIX, type, 0, ends);
    for (int at = 0; at < 6; at++) {
        int many = counts[at];
        begin((size_t)many * GAP);
        struct iovec *out = parts(from, many, 100), *in = parts(to, many, 100);
        char address[128], control[64];
        struct msghdr sent = {.msg_iov = out, .msg_iovlen = many};
        struct msghdr got = {address, sizeof address, in, many, control, sizeof control, 0};
        printf("%s, %d parts\n", name, many);
        result("writev", writev(ends[1], out, many));
        result("readv", recvmsg(ends[0], &(struct msghdr){.msg_iov = in, .msg_iovlen = many}, MSG_DONTWAIT));
        printf("%zu the same\n", same(many <= IOV_MAX ? many : 0, 100));
        result("sendmsg", sendmsg(ends[1], &sent, MSG_DONTWAIT));
        result("peek", recvmsg(ends[0], &got, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC));
        result("recvmsg", recvmsg(ends[0], &got, MSG_DONTWAIT));
        printf("%u %zu %d, %zu the same\n", got.msg_namelen, got.msg_controllen, got.msg_flags, same(many <= IOV_MAX ? many : 0, 100));
        struct mmsghdr all[3] = {{sent, 0}, {sent, 0}, {sent, 0}};
        result("sendmmsg", sendmmsg(ends[1], all, 3, MSG_DONTWAIT));
        printf("%u %u %u\n", all[0].msg_len, all[1].msg_len, all[2].msg_len);
        for (int one = 0; one < 3; one++) all[one] = (struct mmsghdr){.msg_hdr = {.msg_iov = in, .msg_iovlen = many}, .msg_len = 9};
        result("recvmmsg", recvmmsg(ends[0], all, 3, MSG_DONTWAIT, NULL));
        printf("%u %u %u\n", all[0].msg_len, all[1].msg_len, all[2].msg_len);
        free(out), free(in);
    }
    begin(2 * LONG);
    const size_t lens[] = {1, 65536, 65537, 100000, 150000, LONG};
    for (int at = 0; at < 6; at++) {
        printf("%s, %zu bytes\n", name, lens[at]);
        result("send", send(ends[1], from, lens[at], MSG_DONTWAIT));
        result("recv", recv(ends[0], to, 2 * LONG, MSG_DONTWAIT));
        result("write", send(ends[1], from, lens[at], MSG_DONTWAIT));
        result("short recv", recv(ends[0], to, lens[at] / 2, MSG_DONTWAIT | MSG_TRUNC));
        printf("%d\n", memcmp(from, to, lens[at] < LONG ? lens[at] : 0));
    }
    close(ends[0]), close(ends[1]);
}

static void *send_all(void *unused) {
    (void)unused;
    struct iovec out[2] = {{from, LONG}, {from + LONG, LONG}};
    struct msghdr sent = {.msg_iov = out, .msg_iovlen = 2};
    result("long sendmsg to a stream", sendmsg(ends[1], &sent, 0));
    return NULL;
}

static void streams(void) {
    pthread_t other;
    begin(2 * LONG);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends), pthread_create(&other, NULL, send_all, NULL);
    struct iovec in[2] = {{to, 5}, {to + 5, 2 * LONG - 5}};
    struct msghdr got = {.msg_iov = in, .msg_iovlen = 2};
    long all = recvmsg(ends[0], &got, MSG_WAITALL);
    pthread_join(other, NULL);
    result("long recvmsg that waits for all", all);
    printf("%d\n", memcmp(from, to, 2 * LONG));
    close(ends[0]), close(ends[1]);
}

int main(void) {
    from = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    to = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    flood = malloc(FLOOD);
    files(0, "file"), files(O_APPEND, "appended file"), pipes(), streams();
    messages(SOCK_DGRAM, "datagrams"), messages(SOCK_SEQPACKET, "packets");
    return 0;
}
