/* Measures the least cost of a fault on this machine, with handlers that only page in and out.
 *
 * The cost of `pages` under far memory needs this comparison: waking a thread costs more than twice as much on some
 * virtual machines as on others. One thread reads and changes a word of each transfer unit, in order; units are copied.
 * `events`: by another thread that never sleeps; `in the thread`: by a signal handler. `evict`: half of the area may
 * be resident, and the oldest unit is copied out and dropped; without it, all of the area fits. Microseconds a fault.
 *
 *   --scale F   share of 256 MiB           --times N   rounds           --set K   transfer size in KiB */
#define _GNU_SOURCE
#include "far.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int uffd;
static char *area, *store;
static size_t size, set, room_here, first, end;
static int evicts;
static volatile int over;

/* Units are filled in order, so that the oldest is the next one. */
static void bring(size_t at) {
    at -= at % set;
    if (evicts && end - first >= room_here) {
        struct uffdio_writeprotect wp = {.range = {(uintptr_t)area + first % size, set}, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
        if (ioctl(uffd, UFFDIO_WRITEPROTECT, &wp)) abort();
        memcpy(store + first % size, area + first % size, set);
        if (madvise(area + first % size, set, MADV_DONTNEED)) abort();
        first += set;
    }
    struct uffdio_copy copy = {.dst = (uintptr_t)area + at, .src = (uintptr_t)store + at, .len = set};
    if (ioctl(uffd, UFFDIO_COPY, &copy)) abort();
    end += set;
}

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    bring((char *)info->si_addr - area);
}

static void *serve(void *unused) {
    struct uffd_msg event;
    while (!over)
        if (read(uffd, &event, sizeof event) == sizeof event && event.event == UFFD_EVENT_PAGEFAULT)
            bring(event.arg.pagefault.address - (uintptr_t)area);
    return unused;
}

/* Times one pass after a first one that fills the resident part. */
static double pass(int in_thread) {
    uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP};
    if (in_thread) api.features |= UFFD_FEATURE_SIGBUS;
    require(uffd >= 0 && !ioctl(uffd, UFFDIO_API, &api), "userfaultfd is not granted (largesse doctor says why)");
    area = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(area != MAP_FAILED && !madvise(area, size, MADV_NOHUGEPAGE), "no memory");
    struct uffdio_register all = {.range = {(uintptr_t)area, size}, .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
    require(!ioctl(uffd, UFFDIO_REGISTER, &all), "userfaultfd does not take this memory");
    memset(store, 1, size);
    first = end = over = 0;
    pthread_t server;
    if (!in_thread) require(!pthread_create(&server, 0, serve, 0), "no thread");
    uint64_t wrong = 0;
    double begin = 0;
    for (int turn = 0; turn <= evicts; turn++) {
        begin = now();
        for (size_t at = 0; at < size; at += set) {
            uint64_t *word = (uint64_t *)(area + at);
            wrong += *word != 0x0101010101010101u + turn;
            *word += 1;
        }
    }
    double seconds = now() - begin;
    over = 1;
    if (!in_thread) pthread_join(server, 0);
    require(!munmap(area, size) && !close(uffd), "the area does not go");
    require(wrong == 0, "a set came back with other words");
    return seconds / (size / set) * 1e6;
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, 0);
    set = (size_t)option(argc, argv, "--set", 4) << 10;
    size = (size_t)(option(argc, argv, "--scale", 1) * (256 << 20)) / set * set;
    room_here = size / 2;
    store = room(size, 1);
    for (int times = (int)option(argc, argv, "--times", 1); times > 0; times--)
        for (int way = 0; way < 4; way++) {
            evicts = way & 1;
            double us = pass(way >> 1);
            printf("%-14s%-6s %5zu KiB %9.3f us a fault\n", way >> 1 ? "in the thread" : "events", evicts ? "evict" : "", set >> 10, us);
            fflush(stdout);
        }
    return 0;
}
