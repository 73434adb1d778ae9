// Makes system calls with bad pointers, lengths and counts, and prints the kernel's answer to each. A signal arrives
// every few milliseconds. Each call gets pages of its own, which have been evicted and not used since.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <net/if.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MARK = 1000, REGION = 256 << 20, FLOOD = 4 << 20, ROOM = 16 };
enum { P = 0x50505050 }; // stands for an argument that points to memory
// NEW: the call returns a descriptor. OWN: it returns a number that differs between runs. STILL: signals are blocked
// during the call. AGAIN: the call is repeated if a signal interrupts it.
enum { NEW = 1, OWN = 2, STILL = 4, AGAIN = 8 };

static char *region, *next, *flood, *near_none, *near_read, *past_file;
static int in, out, file, zero, terminal, drain[2], listener, events, watch, timer, sem;

// Returns `pages` pages of far memory, which are zero except for a mark, followed by an inaccessible page.
static char *fresh(int pages) {
    char *at = next;
    next += (pages + 1) * PAGE;
    if (next > region + REGION) abort();
    mprotect(at + pages * PAGE, PAGE, PROT_NONE);
    return at;
}

static const char *kinds[] = {"NULL", "8", "-1", "kernel", "hole", "gone", "none", "read-only", "past a file", "far",
                              "far across", "far to none", "far none", "far read-only", "far gone", "far past a file"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uintptr_t pointer(int kind) {
    char *at;
    switch (kind) {
    case 0: return 0;
    case 1: return 8;
    case 2: return (uintptr_t)-1;
    case 3: return 0xffff800000000000;
    case 4: return 0x0000900000000000;
    case 5: return 0x20000; // no mapping has such a low address
    case 6: return (uintptr_t)near_none;
    case 7: return (uintptr_t)near_read;
    case 8: return (uintptr_t)past_file;
    case 9: return (uintptr_t)fresh(1);
    case 10: return (uintptr_t)fresh(2) + PAGE - 4;
    case 11: return (uintptr_t)fresh(1) + PAGE - 4;
    case 12: at = fresh(1), mprotect(at, PAGE, PROT_NONE); return (uintptr_t)at;
    case 13: at = fresh(1), mprotect(at, PAGE, PROT_READ); return (uintptr_t)at;
    case 14: at = fresh(1), munmap(at, PAGE); return (uintptr_t)at;
    default: at = fresh(1); return (uintptr_t)mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 1 << 20);
    }
}

static void nothing(int signal) { (void)signal; }

static void prepare(void) {
    char some[64];
    lseek(file, 0, SEEK_SET);
    while (read(drain[0], some, sizeof some) > 0) {}
    while (recv(in, some, sizeof some, MSG_DONTWAIT) >= 0) {}
    send(out, "0123456789", 10, MSG_DONTWAIT);
}

static void answer(const char *name, const char *what, const char *how, int flags, long number, const long *a) {
    sigset_t alarm;
    sigemptyset(&alarm), sigaddset(&alarm, SIGALRM);
    prepare();
    if (flags & STILL) sigprocmask(SIG_BLOCK, &alarm, NULL);
    long got;
    int error, tries = flags & AGAIN ? 4 : 1;
    do got = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]), error = errno;
    while (got < 0 && error == EINTR && --tries > 0);
    if (flags & STILL) sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    if (got < 0) printf("%s, %s %s: %s\n", name, what, how, strerrorname_np(error));
    else if (flags & NEW) printf("%s, %s %s: a descriptor\n", name, what, how), close(got);
    else if (flags & OWN) printf("%s, %s %s: good\n", name, what, how);
    else printf("%s, %s %s: %ld\n", name, what, how, got);
}

static const struct {
    const char *name;
    unsigned long count;
} counts[] = {{"0", 0}, {"1", 1}, {"100", 100}, {"1024", 1024}, {"1025", 1025}, {"5000", 5000}, {"64 KiB", 65536}, {"70000", 70000},
              {"2 MiB", 2 << 20}, {"INT_MAX", INT_MAX}, {"1 << 31", 1ul << 31}, {"(1 << 32) + 1", (1ul << 32) + 1},
              {"SSIZE_MAX", SSIZE_MAX}, {"SIZE_MAX", SIZE_MAX}};

// Makes a call with each of its pointers bad in every way while the others are good, and then with each count.
static void calls(const char *name, long number, int flags, const long *model, int count) {
    for (int bad = 0; bad < 6; bad++)
        for (int kind = 0; model[bad] == P && kind < KINDS; kind++) {
            long a[6];
            for (int at = 0; at < 6; at++) a[at] = model[at] != P ? model[at] : at == bad ? (long)pointer(kind) : (long)fresh(1);
            char what[16];
            sprintf(what, "argument %d", bad);
            answer(name, what, kinds[kind], flags, number, a);
        }
    for (size_t which = 0; count > 0 && which < sizeof counts / sizeof *counts; which++) {
        long a[6];
        for (int at = 0; at < 6; at++) a[at] = model[at] != P ? model[at] : (long)fresh(ROOM);
        a[count] = (long)counts[which].count;
        answer(name, "a count of", counts[which].name, flags | STILL, number, a);
    }
}

#define CALL(name, flags, count, ...) calls(#name, SYS_##name, flags, (long[6]){__VA_ARGS__}, count)

static void buffers(void) {
    CALL(read, 0, 2, zero, P, 100);
    CALL(write, 0, 2, file, P, 100);
    CALL(pread64, 0, 2, zero, P, 100, 0);
    CALL(pwrite64, 0, 2, file, P, 100, 0);
    CALL(recvfrom, 0, 2, in, P, 100, MSG_DONTWAIT, P, P);
    CALL(sendto, 0, 2, out, P, 100, MSG_DONTWAIT, 0, 0);
    CALL(sendto, 0, 5, out, P, 100, MSG_DONTWAIT, P, 16);
    CALL(getrandom, STILL, 1, P, 100, 0);
    CALL(getdents64, 0, 0, AT_FDCWD, P, 100);
}

static void times(void) {
    CALL(futex, 0, 0, P, FUTEX_WAIT, 1, P);
    CALL(futex, 0, 0, P, FUTEX_WAKE, 1, 0);
    CALL(futex, 0, 0, P, FUTEX_REQUEUE, 1, 1, P);
    CALL(futex, 0, 0, P, FUTEX_CMP_REQUEUE, 1, 1, P, 0);
    CALL(futex, 0, 0, P, FUTEX_WAIT_REQUEUE_PI, 1, P, P);
    CALL(futex, 0, 0, P, FUTEX_CMP_REQUEUE_PI, 1, 1, P, 0);
    // The engine of root is userfaultfd events, for which this call does not wait.
    if (geteuid() != 0) {
        CALL(futex, 0, 0, P, FUTEX_WAKE_OP, 1, 1, P, FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
        CALL(futex, 0, 0, P, FUTEX_WAKE_OP_PRIVATE, 1, 1, P, FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0));
    }
    CALL(clock_gettime, 0, 0, CLOCK_THREAD_CPUTIME_ID, P);
    CALL(clock_getres, 0, 0, CLOCK_REALTIME, P);
    CALL(gettimeofday, 0, 0, P, P);
    CALL(nanosleep, STILL, 0, P, P);
    CALL(clock_nanosleep, STILL, 0, CLOCK_MONOTONIC, 0, P, P);
    CALL(getrusage, 0, 0, RUSAGE_SELF, P);
    CALL(getitimer, 0, 0, ITIMER_VIRTUAL, P);
    CALL(setitimer, 0, 0, ITIMER_VIRTUAL, P, P);
    CALL(timerfd_settime, 0, 0, timer, 0, P, P);
    CALL(timerfd_gettime, 0, 0, timer, P);
}

static void waits(void) {
    CALL(poll, STILL, 1, P, 1, 0);
    CALL(ppoll, AGAIN, 0, P, 1, P, P, 8);
    CALL(select, AGAIN, 0, 1, P, P, P, P);
    CALL(select, AGAIN, 0, 1025, P, P, P, (long)near_read);
    CALL(pselect6, AGAIN, 0, 1, P, P, P, P, 0);
    CALL(epoll_ctl, 0, 0, events, EPOLL_CTL_ADD, -1, P);
    CALL(epoll_wait, STILL, 2, events, P, 4, 0);
    CALL(epoll_pwait, STILL, 2, events, P, 4, 0, P, 8);
    CALL(wait4, 0, 0, -1, P, WNOHANG, P);
    CALL(waitid, 0, 0, P_ALL, 0, P, WEXITED | WNOHANG, P);
    CALL(semop, 0, 2, sem, P, 1);
    CALL(semtimedop, 0, 2, sem, P, 1, P);
    CALL(rt_sigsuspend, 0, 0, P, 8);
    CALL(rt_sigsuspend, 0, 1, P, 8);
    CALL(rt_sigpending, 0, 1, P, 8);
    CALL(rt_sigtimedwait, 0, 3, P, P, P, 8);
}

static void files(void) {
    CALL(newfstatat, 0, 0, AT_FDCWD, P, P, AT_EMPTY_PATH);
    CALL(openat, NEW, 0, AT_FDCWD, P, O_RDONLY);
    CALL(open, NEW, 0, P, O_RDONLY);
    CALL(stat, 0, 0, P, P);
    CALL(lstat, 0, 0, P, P);
    CALL(fstat, 0, 0, file, P);
    CALL(statx, 0, 0, AT_FDCWD, P, AT_EMPTY_PATH, 0, P);
    CALL(statfs, 0, 0, P, P);
    CALL(fstatfs, 0, 0, file, P);
    CALL(access, 0, 0, P, 0);
    CALL(faccessat, 0, 0, AT_FDCWD, P, 0);
    CALL(faccessat2, 0, 0, AT_FDCWD, P, 0, 0);
    CALL(readlink, 0, 0, P, P, 100);
    CALL(readlinkat, 0, 0, AT_FDCWD, P, P, 100);
    CALL(readlink, 0, 2, (long)"/proc/self/exe", P, 4);
    CALL(getcwd, 0, 1, P, 4096);
    CALL(chdir, 0, 0, P);
    CALL(mkdir, 0, 0, P, 0700);
    CALL(mkdirat, 0, 0, AT_FDCWD, P, 0700);
    CALL(rmdir, 0, 0, P);
    CALL(unlink, 0, 0, P);
    CALL(unlinkat, 0, 0, AT_FDCWD, P, 0);
    CALL(rename, 0, 0, P, P);
    CALL(renameat, 0, 0, AT_FDCWD, P, AT_FDCWD, P);
    CALL(renameat2, 0, 0, AT_FDCWD, P, AT_FDCWD, P, 0);
    CALL(link, 0, 0, P, P);
    CALL(linkat, 0, 0, AT_FDCWD, P, AT_FDCWD, P, 0);
    CALL(symlink, 0, 0, P, P);
    CALL(symlinkat, 0, 0, P, AT_FDCWD, P);
    CALL(chmod, 0, 0, P, 0600);
    CALL(fchmodat, 0, 0, AT_FDCWD, P, 0600);
    CALL(chown, 0, 0, P, -1, -1);
    CALL(lchown, 0, 0, P, -1, -1);
    CALL(fchownat, 0, 0, AT_FDCWD, P, -1, -1, 0);
    CALL(truncate, 0, 0, P, 0);
    CALL(utimensat, 0, 0, AT_FDCWD, P, P, 0);
    CALL(memfd_create, NEW, 0, P, 0);
    CALL(inotify_add_watch, 0, 0, watch, P, IN_MODIFY);
    CALL(sendfile, 0, 0, drain[1], file, P, 10);
    CALL(copy_file_range, 0, 0, file, P, file, P, 0, 0);
    CALL(splice, 0, 0, file, P, drain[1], 0, 10, SPLICE_F_NONBLOCK);
    CALL(fcntl, 0, 0, file, F_GETLK, P);
    CALL(fcntl, 0, 0, file, F_SETLK, P);
    CALL(ioctl, 0, 0, drain[0], FIONREAD, P);
    CALL(ioctl, 0, 0, drain[0], TCGETS, P);
    CALL(ioctl, 0, 0, terminal, TCGETS, P);
    CALL(ioctl, 0, 0, terminal, TIOCGWINSZ, P);
    CALL(ioctl, 0, 0, file, FIGETBSZ, P);
    CALL(ioctl, 0, 0, file, FS_IOC_FIEMAP, P);
    for (unsigned long request = 0x8900; geteuid() != 0 && request < 0x8980; request++) CALL(ioctl, 0, 0, in, request, P);
}

// Makes calls whose structures lead to evicted memory: an array that follows, or a pointer. The structure itself is near,
// or far. Between them lies more memory than a transfer reads.
static void nested(void) {
    enum { APART = 256 << 10 };
    struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, 100);
    for (int kind = 0; kind < 2 * KINDS; kind++) {
        const char *how = kinds[kind / 2];
        char *to = (char *)pointer(kind / 2);
        next += APART;
        struct ifconf near_list, *list = kind % 2 ? &near_list : (void *)fresh(1);
        *list = (struct ifconf){.ifc_len = 3 * sizeof(struct ifreq), .ifc_buf = to};
        answer("SIOCGIFCONF", "a list at", how, 0, SYS_ioctl, (long[6]){in, SIOCGIFCONF, (long)list});
        printf("%d bytes\n", list->ifc_len);
        struct sock_fprog near_code, *code = kind % 2 ? &near_code : (void *)fresh(1);
        *code = (struct sock_fprog){.len = 1, .filter = (void *)to};
        answer("SO_ATTACH_FILTER", "code at", how, 0, SYS_setsockopt, (long[6]){out, SOL_SOCKET, SO_ATTACH_FILTER, (long)code, sizeof *code});
        next += APART;
    }
    enum { MANY = 1000 };
    struct sock_filter *long_code = (void *)fresh(2);
    for (int at = 0; at < MANY; at++) long_code[at] = pass;
    struct sock_fprog all = {MANY, long_code};
    socklen_t count = MANY;
    answer("SO_ATTACH_FILTER", "code of", "1000", 0, SYS_setsockopt, (long[6]){out, SOL_SOCKET, SO_ATTACH_FILTER, (long)&all, sizeof all});
    answer("SO_GET_FILTER", "code of", "1000", 0, SYS_getsockopt, (long[6]){out, SOL_SOCKET, SO_GET_FILTER, (long)fresh(2), (long)&count});
    setsockopt(out, SOL_SOCKET, SO_DETACH_FILTER, &count, sizeof count);
    int extents = open("bad.extents", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (off_t at = 0; at < 150; at++) pwrite(extents, "x", 1, at << 17);
    struct fiemap *map = (void *)(fresh(3) + PAGE - sizeof *map);
    *map = (struct fiemap){.fm_length = ~0ull, .fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 140};
    answer("FS_IOC_FIEMAP", "extents", "140", 0, SYS_ioctl, (long[6]){extents, FS_IOC_FIEMAP, (long)map});
    printf("%u extents\n", map->fm_mapped_extents), close(extents), unlink("bad.extents");
}

static void sockets(void) {
    CALL(bind, 0, 2, in, P, 16);
    CALL(connect, 0, 2, in, P, 2);
    CALL(accept, 0, 0, listener, P, P);
    CALL(accept4, 0, 0, listener, P, P, 0);
    CALL(getsockname, 0, 0, in, P, P);
    CALL(getpeername, 0, 0, in, P, P);
    CALL(setsockopt, 0, 4, in, SOL_SOCKET, SO_BROADCAST, P, 4);
    CALL(getsockopt, 0, 0, in, SOL_SOCKET, SO_TYPE, P, P);
}

static void system_itself(void) {
    CALL(times, OWN, 0, P);
    CALL(uname, 0, 0, P);
    CALL(sysinfo, 0, 0, P);
    CALL(getrlimit, 0, 0, RLIMIT_CORE, P);
    CALL(setrlimit, 0, 0, RLIMIT_CORE, P);
    CALL(prlimit64, 0, 0, 0, RLIMIT_CORE, P, P);
    CALL(sched_getaffinity, 0, 1, 0, 128, P);
    CALL(sched_setaffinity, 0, 1, 0, 128, P);
    CALL(rt_sigprocmask, 0, 3, SIG_BLOCK, P, P, 8);
    CALL(rt_sigprocmask, 0, 0, 7, P, P, 8);
    for (int signal = SIGUSR1; signal; signal = signal == SIGUSR1 ? SIGBUS : signal == SIGBUS ? SIGSYS : signal == SIGSYS ? SIGKILL : 0)
        CALL(rt_sigaction, 0, 0, signal, P, P, 8);
    CALL(rt_sigaction, 0, 3, SIGUSR1, P, P, 8);
    CALL(rt_sigaction, 0, 0, 65, P, P, 8);
    CALL(sigaltstack, 0, 0, P, P);
}

static void names(void) {
    CALL(getxattr, 0, 3, P, P, P, 100);
    CALL(setxattr, 0, 3, P, P, P, 100, 0);
    CALL(fsetxattr, 0, 3, file, P, P, 4, 0);
    CALL(fgetxattr, 0, 3, file, P, P, 100);
    CALL(listxattr, 0, 2, P, P, 100);
    CALL(flistxattr, 0, 2, file, P, 100);
    CALL(removexattr, 0, 0, P, P);
    CALL(fremovexattr, 0, 0, file, P);
    CALL(openat2, 0, 3, AT_FDCWD, P, P, 24);
    CALL(creat, 0, 0, P, 0600);
    CALL(mknodat, 0, 0, AT_FDCWD, P, S_IFIFO | 0600, 0);
    CALL(utime, 0, 0, P, P);
    CALL(utimes, 0, 0, P, P);
    CALL(futimesat, 0, 0, AT_FDCWD, P, P);
    CALL(umount2, 0, 0, P, 0);
    CALL(mq_open, 0, 0, P, O_RDONLY, 0, P);
    CALL(mq_unlink, 0, 0, P);
}

static void queues(void) {
    int messages = msgget(IPC_PRIVATE, 0600), notices = (int)syscall(SYS_mq_open, "bad", O_RDWR | O_CREAT | O_NONBLOCK, 0600, NULL);
    syscall(SYS_mq_unlink, "bad");
    CALL(msgsnd, 0, 2, messages, P, 100, IPC_NOWAIT);
    CALL(msgrcv, 0, 2, messages, P, 100, 1, IPC_NOWAIT);
    CALL(msgctl, OWN, 0, messages, IPC_STAT, P);
    CALL(semctl, 0, 0, sem, 0, GETALL, P);
    CALL(semctl, 0, 0, sem, 0, SETALL, P);
    CALL(mq_timedsend, 0, 2, notices, P, 100, 1, P);
    CALL(mq_timedreceive, 0, 2, notices, P, 8192, P, P);
    CALL(mq_getsetattr, 0, 0, notices, P, P);
    CALL(mq_notify, 0, 0, notices, P);
    msgctl(messages, IPC_RMID, NULL), close(notices);
}

static void threads(void) {
    static timer_t id;
    CALL(timer_create, 0, 0, CLOCK_MONOTONIC, P, P);
    syscall(SYS_timer_create, CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &id);
    CALL(timer_settime, 0, 0, (long)id, 0, P, P);
    CALL(timer_gettime, 0, 0, (long)id, P);
    CALL(signalfd4, NEW, 0, -1, P, 8, 0);
    CALL(rt_sigqueueinfo, 0, 0, getpid(), 0, P);
    CALL(epoll_pwait2, STILL, 2, events, P, 4, P, P, 8);
    CALL(prctl, 0, 0, PR_GET_NAME, P);
    CALL(prctl, 0, 0, PR_SET_NAME, P);
    CALL(prctl, 0, 0, PR_GET_PDEATHSIG, P);
    CALL(sched_getparam, 0, 0, 0, P);
    CALL(sched_setparam, 0, 0, 0, P);
    CALL(sched_setscheduler, 0, 0, 0, 0, P);
    CALL(sched_rr_get_interval, OWN, 0, 0, P);
    CALL(sched_getattr, 0, 2, 0, P, 48, 0);
    CALL(sched_setattr, 0, 0, 0, P, 0);
    CALL(clock_adjtime, OWN, 0, CLOCK_REALTIME, P);
    CALL(getcpu, 0, 0, P, P);
    CALL(get_mempolicy, 0, 2, P, P, 64, 0, 0);
    CALL(set_mempolicy, 0, 0, 3, P, 64);
    CALL(getgroups, OWN, 0, 64, P);
    CALL(getresuid, 0, 0, P, P, P);
    CALL(capget, 0, 0, P, P);
    CALL(fcntl, 0, 0, drain[0], F_SETOWN_EX, P);
    CALL(fcntl, 0, 0, drain[0], F_GETOWN_EX, P);
    CALL(fcntl, 0, 0, file, F_GET_RW_HINT, P);
}

// Calls that an ordinary user may not make, or that few programs make. Root makes those only that change nothing.
static void rare(void) {
    int group = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, 0), shared = shmget(IPC_PRIVATE, PAGE, 0600);
    CALL(adjtimex, OWN, 0, P);
    CALL(capset, 0, 0, P, P);
    CALL(fanotify_mark, 0, 0, group, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, P);
    CALL(getresgid, 0, 0, P, P, P);
    CALL(lgetxattr, 0, 3, P, P, P, 100);
    CALL(llistxattr, 0, 2, P, P, 100);
    CALL(lremovexattr, 0, 0, P, P);
    CALL(lsetxattr, 0, 3, P, P, P, 100, 0);
    CALL(mbind, 0, 0, 0, 0, 1, P, 64, 0);
    CALL(mknod, 0, 0, P, S_IFIFO | 0600, 0);
    CALL(move_pages, 0, 1, 0, 1, P, P, P, 0);
    CALL(name_to_handle_at, 0, 0, AT_FDCWD, P, P, P, AT_EMPTY_PATH);
    CALL(open_by_handle_at, 0, 0, AT_FDCWD, P, O_RDONLY);
    int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    CALL(pidfd_send_signal, 0, 0, process, 0, P, 0);
    CALL(rt_tgsigqueueinfo, 0, 0, getpid(), getpid(), 0, P);
    CALL(shmctl, 0, 0, shared, IPC_STAT, P);
    CALL(signalfd, NEW, 0, -1, P, 8);
    CALL(syslog, OWN, 0, 3, P, 100);
    close(group), close(process), shmctl(shared, IPC_RMID, NULL);
    if (geteuid() == 0) return;
    CALL(chroot, 0, 0, P);
    CALL(clock_settime, 0, 0, CLOCK_REALTIME, P);
    CALL(mount, 0, 0, P, P, P, 0, P);
    CALL(setdomainname, 0, 1, P, 10);
    CALL(setgroups, 0, 0, 1, P);
    CALL(sethostname, 0, 1, P, 10);
    CALL(settimeofday, 0, 0, P, P);
}

// These calls may create descriptors even if they fail, so that they must be the last ones.
static void makers(void) {
    CALL(io_uring_setup, NEW, 0, 0, P);
    CALL(socketpair, 0, 0, AF_UNIX, SOCK_STREAM, 0, P);
    CALL(pipe, 0, 0, P);
    CALL(pipe2, 0, 0, P, 0);
}

// Returns an array of two buffers in far memory. The array itself crosses the boundary of two far pages.
static struct iovec *parts(void *second, size_t len) {
    struct iovec *array = (void *)(fresh(2) + PAGE - 24);
    array[0] = (struct iovec){fresh(1), 40}, array[1] = (struct iovec){second, len};
    return array;
}

static void vector(const char *name, long number, int fd) {
    const long lens[] = {0, 1, 60, 5000, INT_MAX, SSIZE_MAX - 39, SSIZE_MAX, -1};
    for (int kind = 0; kind < KINDS; kind++) {
        answer(name, "array", kinds[kind], 0, number, (long[6]){fd, (long)pointer(kind), 2, 0, 0, 0});
        answer(name, "no parts at", kinds[kind], 0, number, (long[6]){fd, (long)pointer(kind), 0, 0, 0, 0});
        answer(name, "part", kinds[kind], 0, number, (long[6]){fd, (long)parts((void *)pointer(kind), 60), 2, 0, 0, 0});
        answer(name, "empty part", kinds[kind], 0, number, (long[6]){fd, (long)parts((void *)pointer(kind), 0), 2, 0, 0, 0});
    }
    for (size_t at = 0; at < sizeof lens / sizeof *lens; at++) {
        char how[32];
        sprintf(how, "of %ld", lens[at]);
        // A signal may end a read of /dev/zero after each 4 KiB.
        answer(name, "part", how, STILL, number, (long[6]){fd, (long)parts(fresh(1), (size_t)lens[at]), 2, 0, 0, 0});
    }
    for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
        struct iovec *array = (void *)fresh(5);
        for (int at = 0; at < 1025; at++) array[at] = (struct iovec){array, 0};
        answer(name, "a count of", counts[which].name, 0, number, (long[6]){fd, (long)array, (long)counts[which].count, 0, 0, 0});
    }
}

// Returns message headers in far memory, whose pointers are to far memory too.
static struct mmsghdr *header(struct iovec *array, size_t len) {
    struct mmsghdr *all = (void *)fresh(1);
    for (int at = 0; at < 4; at++) all[at].msg_hdr = (struct msghdr){.msg_iov = array, .msg_iovlen = len};
    return all;
}

static void message(const char *name, long number, int fd, int many) {
    long a[6] = {fd, 0, many ? 1 : MSG_DONTWAIT, many ? MSG_DONTWAIT : 0, 0, 0};
    for (int kind = 0; kind < KINDS; kind++) {
        struct mmsghdr *now;
        a[1] = (long)pointer(kind), answer(name, "header", kinds[kind], 0, number, a);
        now = header((void *)pointer(kind), 2), a[1] = (long)now, answer(name, "array", kinds[kind], 0, number, a);
        now = header((void *)pointer(kind), 0), a[1] = (long)now, answer(name, "no parts at", kinds[kind], 0, number, a);
        now = header(parts((void *)pointer(kind), 60), 2), a[1] = (long)now, answer(name, "part", kinds[kind], 0, number, a);
        now = header(parts(fresh(1), 60), 2), now->msg_hdr.msg_name = (void *)pointer(kind), now->msg_hdr.msg_namelen = 16;
        a[1] = (long)now, answer(name, "name", kinds[kind], 0, number, a);
        now = header(parts(fresh(1), 60), 2), now->msg_hdr.msg_control = (void *)pointer(kind), now->msg_hdr.msg_controllen = 64;
        a[1] = (long)now, answer(name, "control", kinds[kind], 0, number, a);
    }
    for (size_t which = 0; which < sizeof counts / sizeof *counts; which++) {
        struct mmsghdr *now = header(parts(fresh(1), counts[which].count), 2);
        a[1] = (long)now, answer(name, "length", counts[which].name, 0, number, a);
        now = header(parts(fresh(1), 60), counts[which].count), a[1] = (long)now, answer(name, "parts", counts[which].name, 0, number, a);
        now = header(parts(fresh(1), 60), 2), now->msg_hdr.msg_name = fresh(1), now->msg_hdr.msg_namelen = counts[which].count;
        a[1] = (long)now, answer(name, "length of name", counts[which].name, 0, number, a);
        now = header(parts(fresh(1), 60), 2), now->msg_hdr.msg_control = fresh(1), now->msg_hdr.msg_controllen = counts[which].count;
        a[1] = (long)now, answer(name, "length of control", counts[which].name, 0, number, a);
        if (many) {
            long all[6] = {fd, (long)header(parts(fresh(1), 6), 2), (long)counts[which].count, MSG_DONTWAIT, 0, 0};
            answer(name, "messages", counts[which].name, 0, number, all);
        }
    }
    for (int kind = 0; number == SYS_recvmmsg && kind < KINDS; kind++) {
        long all[6] = {fd, (long)header(parts(fresh(1), 60), 2), 1, MSG_DONTWAIT, (long)pointer(kind), 0};
        answer(name, "timeout", kinds[kind], 0, number, all);
    }
}

static sigjmp_buf before;

static void go_back(int signal) { siglongjmp(before, signal); }

// Prints the signal that the program gets when it reads each kind of address itself.
static void touches(void) {
    struct sigaction action = {.sa_handler = go_back};
    sigaction(SIGSEGV, &action, NULL), sigaction(SIGBUS, &action, NULL);
    for (volatile int kind = 0; kind < KINDS; kind++) {
        volatile char *at = (char *)pointer(kind);
        int signal = sigsetjmp(before, 1);
        if (signal == 0) (void)*at, puts("a touch: good");
        else printf("a touch of %s: signal %d\n", kinds[kind], signal);
    }
}

static void open_all(void) {
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), in = ends[0], out = ends[1];
    pipe2(drain, O_NONBLOCK), fcntl(drain[1], F_SETPIPE_SZ, 1 << 16);
    file = open("bad.dat", O_RDWR | O_CREAT | O_TRUNC, 0600), unlink("bad.dat"), ftruncate(file, 100);
    zero = open("/dev/zero", O_RDONLY), events = epoll_create1(0), watch = inotify_init1(IN_NONBLOCK);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    bind(listener, (void *)&(sa_family_t){AF_UNIX}, sizeof(sa_family_t)), listen(listener, 1);
    sem = semget(IPC_PRIVATE, 1, 0600), terminal = posix_openpt(O_RDWR | O_NOCTTY);
}

int main(void) {
    region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), next = region;
    flood = malloc(FLOOD);
    for (size_t at = 0; at < REGION; at += PAGE) region[at + MARK] = 1;
    for (int round = 0; round < 2; round++)
        for (size_t at = 0; at < FLOOD; at += PAGE) flood[at]++;
    open_all();
    near_none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    near_read = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    past_file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 1 << 20);
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
    touches(), buffers(), times(), waits(), files(), sockets(), system_itself(), names(), queues(), threads(), nested(), rare();
    vector("readv", SYS_readv, zero), vector("writev", SYS_writev, file);
    vector("preadv", SYS_preadv, zero), vector("pwritev", SYS_pwritev, file);
    vector("preadv2", SYS_preadv2, zero), vector("pwritev2", SYS_pwritev2, file), vector("vmsplice", SYS_vmsplice, drain[1]);
    message("sendmsg", SYS_sendmsg, out, 0), message("recvmsg", SYS_recvmsg, in, 0);
    message("sendmmsg", SYS_sendmmsg, out, 1), message("recvmmsg", SYS_recvmmsg, in, 1);
    makers();
    semctl(sem, 0, IPC_RMID);
    return 0;
}
