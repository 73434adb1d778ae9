//! The table of system calls whose arguments point to memory, with the extent of that memory.
//!
//! Calls that are not in the table are not trapped: they fail with `EFAULT` on far memory, unless the page is resident.

use libc::c_long;

/// The most bytes that the kernel uses of an array whose length the program passes, except of `pollfd` arrays: the
/// longest list of groups (`NGROUPS_MAX`). The kernel refuses longer arrays, or fills no more elements than it has
/// (`epoll_wait`).
pub(super) const LONGEST: usize = 256 << 10;

/// How many bytes of memory an argument points to. Where a length, size, command, request or operation is another
/// argument, the first number of the variant is that argument's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A structure whose size in bytes is at most this number.
    Bytes(usize),
    /// An array whose length is an argument (an `int`), and the size of an element in bytes; at most [`LONGEST`] bytes
    /// of it are used.
    Times(usize, usize),
    /// An array of `pollfd` whose length is an argument.
    Polled(usize),
    /// A number of bytes, followed by a buffer whose size in bytes (a `size_t`) is an argument; at most [`LONGEST`]
    /// bytes of the buffer are used, all of them in one call.
    Sized(usize, usize),
    /// A buffer for a path, whose size in bytes is an argument; at most `PATH_MAX` bytes of it are used.
    Path(usize),
    /// A bit set of descriptors (`fd_set`) in 64-bit words, whose number of bits is an argument.
    Descriptors(usize),
    /// A buffer whose size in bytes is an argument; the call may transfer fewer bytes, and returns their number.
    Buffer(usize),
    /// A path that ends with a NUL.
    Text,
    /// A structure for `ioctl`, whose request is an argument, and the memory that its words point to.
    Request(usize),
    /// A socket option whose size in bytes is an argument, and the memory that its words point to (`SO_ATTACH_FILTER`).
    SocketOption(usize),
    /// A buffer for a socket option. An argument points to its size, a `socklen_t`; at most [`LONGEST`] bytes are used.
    SizedAt(usize),
    /// For some commands of `fcntl`, a structure of at most 32 bytes; for the others, a number instead of a pointer.
    Command(usize),
    /// A `timespec` if the operation of `futex` waits; for other operations, a number instead of a pointer.
    Deadline(usize),
    /// A second word of four bytes if the operation of `futex` uses one; otherwise the argument is undefined.
    SecondWord(usize),
    /// An array of `iovec` whose length is an argument, and the buffers that it lists.
    Vector(usize),
    /// A structure with a pointer to a signal set and the set's size in bytes.
    Mask,
    /// A `msghdr`, and all memory that it points to.
    Message,
    /// An array of `mmsghdr` whose length is an argument, and all memory that it points to.
    Messages(usize),
}

use Extent::{
    Buffer, Bytes, Command, Deadline, Descriptors, Mask, Message, Messages, Path, Polled, Request,
    SecondWord, Sized, SizedAt, SocketOption, Text, Times, Vector,
};

/// Describes an argument that points to memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    /// Index of the argument, 0 to 5.
    pub(super) argument: usize,
    pub(super) extent: Extent,
    /// Whether the kernel writes to the memory.
    pub(super) written: bool,
}

impl Pointer {
    /// Returns whether the argument is a structure with further pointers (`iovec`, `msghdr`), which must be read to
    /// find all memory that the call uses.
    pub(super) const fn is_nested(&self) -> bool {
        matches!(self.extent, Vector(_) | Mask | Message | Messages(_) | Request(_) | SocketOption(_))
    }
}

/// Describes a system call that uses memory of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syscall {
    pub(super) number: c_long,
    pub(super) pointers: &'static [Pointer],
}

/// Describes an argument that points to memory which the kernel reads.
const fn reads(argument: usize, extent: Extent) -> Pointer {
    Pointer { argument, extent, written: false }
}

/// Describes an argument that points to memory which the kernel writes to.
const fn writes(argument: usize, extent: Extent) -> Pointer {
    Pointer { argument, extent, written: true }
}

const fn call(number: c_long, pointers: &'static [Pointer]) -> Syscall {
    Syscall { number, pointers }
}

const STAT: Extent = Bytes(144);
const TIME: Extent = Bytes(16);
const ADDRESS: Extent = Bytes(128);
const LENGTH: Extent = Bytes(4);
const USAGE: Extent = Bytes(144);
const MASK: Extent = Bytes(8);
const SET: Extent = Descriptors(0);
const TIMER: Extent = Bytes(32);
const NODES: Extent = Bytes(128);

/// Lists the system calls that use memory. The most frequent come first, since the filter compares in this order.
pub(super) const CALLS: &[Syscall] = &[
    call(libc::SYS_read, &[writes(1, Buffer(2))]),
    call(libc::SYS_write, &[reads(1, Buffer(2))]),
    call(libc::SYS_futex, &[writes(0, LENGTH), reads(3, Deadline(1)), writes(4, SecondWord(1))]),
    call(libc::SYS_pread64, &[writes(1, Buffer(2))]),
    call(libc::SYS_pwrite64, &[reads(1, Buffer(2))]),
    call(libc::SYS_newfstatat, &[reads(1, Text), writes(2, STAT)]),
    call(libc::SYS_openat, &[reads(1, Text)]),
    call(libc::SYS_clock_gettime, &[writes(1, TIME)]),
    call(libc::SYS_getrusage, &[writes(1, USAGE)]),
    call(libc::SYS_poll, &[writes(0, Polled(1))]),
    call(libc::SYS_recvfrom, &[writes(1, Buffer(2)), writes(4, ADDRESS), writes(5, LENGTH)]),
    call(libc::SYS_sendto, &[reads(1, Buffer(2)), reads(4, Times(5, 1))]),
    call(libc::SYS_readv, &[writes(1, Vector(2))]),
    call(libc::SYS_writev, &[reads(1, Vector(2))]),
    call(libc::SYS_preadv, &[writes(1, Vector(2))]),
    call(libc::SYS_pwritev, &[reads(1, Vector(2))]),
    call(libc::SYS_preadv2, &[writes(1, Vector(2))]),
    call(libc::SYS_pwritev2, &[reads(1, Vector(2))]),
    call(libc::SYS_sendmsg, &[reads(1, Message)]),
    call(libc::SYS_recvmsg, &[writes(1, Message)]),
    call(libc::SYS_sendmmsg, &[reads(1, Messages(2))]),
    call(libc::SYS_recvmmsg, &[writes(1, Messages(2)), reads(4, TIME)]),
    call(libc::SYS_nanosleep, &[reads(0, TIME), writes(1, TIME)]),
    call(libc::SYS_clock_nanosleep, &[reads(2, TIME), writes(3, TIME)]),
    call(libc::SYS_clock_getres, &[writes(1, TIME)]),
    call(libc::SYS_gettimeofday, &[writes(0, TIME), writes(1, TIME)]),
    call(libc::SYS_times, &[writes(0, Bytes(32))]),
    call(libc::SYS_ppoll, &[writes(0, Polled(1)), writes(2, TIME), reads(3, MASK)]),
    call(libc::SYS_select, &[writes(1, SET), writes(2, SET), writes(3, SET), writes(4, TIME)]),
    call(
        libc::SYS_pselect6,
        &[writes(1, SET), writes(2, SET), writes(3, SET), writes(4, TIME), reads(5, Mask)],
    ),
    call(libc::SYS_epoll_ctl, &[reads(3, Bytes(12))]),
    call(libc::SYS_epoll_wait, &[writes(1, Times(2, 12))]),
    call(libc::SYS_epoll_pwait, &[writes(1, Times(2, 12)), reads(4, MASK)]),
    call(libc::SYS_open, &[reads(0, Text)]),
    call(libc::SYS_stat, &[reads(0, Text), writes(1, STAT)]),
    call(libc::SYS_lstat, &[reads(0, Text), writes(1, STAT)]),
    call(libc::SYS_fstat, &[writes(1, STAT)]),
    call(libc::SYS_statx, &[reads(1, Text), writes(4, Bytes(256))]),
    call(libc::SYS_statfs, &[reads(0, Text), writes(1, STAT)]),
    call(libc::SYS_fstatfs, &[writes(1, STAT)]),
    call(libc::SYS_access, &[reads(0, Text)]),
    call(libc::SYS_faccessat, &[reads(1, Text)]),
    call(libc::SYS_faccessat2, &[reads(1, Text)]),
    call(libc::SYS_readlink, &[reads(0, Text), writes(1, Path(2))]),
    call(libc::SYS_readlinkat, &[reads(1, Text), writes(2, Path(3))]),
    call(libc::SYS_getcwd, &[writes(0, Path(1))]),
    call(libc::SYS_getdents64, &[writes(1, Buffer(2))]),
    call(libc::SYS_chdir, &[reads(0, Text)]),
    call(libc::SYS_mkdir, &[reads(0, Text)]),
    call(libc::SYS_mkdirat, &[reads(1, Text)]),
    call(libc::SYS_rmdir, &[reads(0, Text)]),
    call(libc::SYS_unlink, &[reads(0, Text)]),
    call(libc::SYS_unlinkat, &[reads(1, Text)]),
    call(libc::SYS_rename, &[reads(0, Text), reads(1, Text)]),
    call(libc::SYS_renameat, &[reads(1, Text), reads(3, Text)]),
    call(libc::SYS_renameat2, &[reads(1, Text), reads(3, Text)]),
    call(libc::SYS_link, &[reads(0, Text), reads(1, Text)]),
    call(libc::SYS_linkat, &[reads(1, Text), reads(3, Text)]),
    call(libc::SYS_symlink, &[reads(0, Text), reads(1, Text)]),
    call(libc::SYS_symlinkat, &[reads(0, Text), reads(2, Text)]),
    call(libc::SYS_chmod, &[reads(0, Text)]),
    call(libc::SYS_fchmodat, &[reads(1, Text)]),
    call(libc::SYS_chown, &[reads(0, Text)]),
    call(libc::SYS_lchown, &[reads(0, Text)]),
    call(libc::SYS_fchownat, &[reads(1, Text)]),
    call(libc::SYS_truncate, &[reads(0, Text)]),
    call(libc::SYS_utimensat, &[reads(1, Text), reads(2, Bytes(32))]),
    call(libc::SYS_memfd_create, &[reads(0, Text)]),
    call(libc::SYS_inotify_add_watch, &[reads(1, Text)]),
    call(libc::SYS_bind, &[reads(1, Times(2, 1))]),
    call(libc::SYS_connect, &[reads(1, Times(2, 1))]),
    call(libc::SYS_accept, &[writes(1, ADDRESS), writes(2, LENGTH)]),
    call(libc::SYS_accept4, &[writes(1, ADDRESS), writes(2, LENGTH)]),
    call(libc::SYS_getsockname, &[writes(1, ADDRESS), writes(2, LENGTH)]),
    call(libc::SYS_getpeername, &[writes(1, ADDRESS), writes(2, LENGTH)]),
    call(libc::SYS_setsockopt, &[reads(3, SocketOption(4))]),
    call(libc::SYS_getsockopt, &[writes(3, SizedAt(4)), writes(4, LENGTH)]),
    call(libc::SYS_socketpair, &[writes(3, MASK)]),
    call(libc::SYS_pipe, &[writes(0, MASK)]),
    call(libc::SYS_pipe2, &[writes(0, MASK)]),
    call(libc::SYS_sendfile, &[writes(2, MASK)]),
    call(libc::SYS_copy_file_range, &[writes(1, MASK), writes(3, MASK)]),
    // The end of the pipe decides whether the memory is read or written.
    call(libc::SYS_vmsplice, &[writes(1, Vector(2))]),
    call(libc::SYS_splice, &[writes(1, MASK), writes(3, MASK)]),
    call(libc::SYS_fcntl, &[writes(2, Command(1))]),
    call(libc::SYS_ioctl, &[writes(2, Request(1))]),
    call(libc::SYS_wait4, &[writes(1, LENGTH), writes(3, USAGE)]),
    call(libc::SYS_waitid, &[writes(2, ADDRESS), writes(4, USAGE)]),
    call(libc::SYS_uname, &[writes(0, Bytes(390))]),
    call(libc::SYS_sysinfo, &[writes(0, ADDRESS)]),
    call(libc::SYS_getrandom, &[writes(0, Buffer(1))]),
    call(libc::SYS_getrlimit, &[writes(1, TIME)]),
    call(libc::SYS_setrlimit, &[reads(1, TIME)]),
    call(libc::SYS_prlimit64, &[reads(2, TIME), writes(3, TIME)]),
    call(libc::SYS_sched_setaffinity, &[reads(2, Times(1, 1))]),
    call(libc::SYS_sched_getaffinity, &[writes(2, Times(1, 1))]),
    call(libc::SYS_getitimer, &[writes(1, Bytes(32))]),
    call(libc::SYS_setitimer, &[reads(1, Bytes(32)), writes(2, Bytes(32))]),
    call(libc::SYS_timerfd_settime, &[reads(2, Bytes(32)), writes(3, Bytes(32))]),
    call(libc::SYS_timerfd_gettime, &[writes(1, Bytes(32))]),
    call(libc::SYS_semop, &[reads(1, Times(2, 6))]),
    call(libc::SYS_semtimedop, &[reads(1, Times(2, 6)), reads(3, TIME)]),
    call(libc::SYS_rt_sigsuspend, &[reads(0, MASK)]),
    call(libc::SYS_rt_sigpending, &[writes(0, MASK)]),
    call(libc::SYS_rt_sigtimedwait, &[reads(0, MASK), writes(1, ADDRESS), reads(2, TIME)]),
    call(libc::SYS_epoll_pwait2, &[writes(1, Times(2, 12)), reads(3, TIME), reads(4, MASK)]),
    call(libc::SYS_signalfd, &[reads(1, MASK)]),
    call(libc::SYS_signalfd4, &[reads(1, MASK)]),
    call(libc::SYS_rt_sigqueueinfo, &[reads(2, ADDRESS)]),
    call(libc::SYS_rt_tgsigqueueinfo, &[reads(3, ADDRESS)]),
    call(libc::SYS_pidfd_send_signal, &[reads(2, ADDRESS)]),
    // For some operations a number instead of a pointer: then a page is paged in for nothing.
    call(libc::SYS_prctl, &[writes(1, TIME), reads(4, Text)]),
    call(libc::SYS_timer_create, &[reads(1, Bytes(64)), writes(2, LENGTH)]),
    call(libc::SYS_timer_settime, &[reads(2, TIMER), writes(3, TIMER)]),
    call(libc::SYS_timer_gettime, &[writes(1, TIMER)]),
    call(libc::SYS_clock_settime, &[reads(1, TIME)]),
    call(libc::SYS_settimeofday, &[reads(0, TIME), reads(1, TIME)]),
    call(libc::SYS_adjtimex, &[writes(0, Bytes(208))]),
    call(libc::SYS_clock_adjtime, &[writes(1, Bytes(208))]),
    call(libc::SYS_sched_setparam, &[reads(1, LENGTH)]),
    call(libc::SYS_sched_getparam, &[writes(1, LENGTH)]),
    call(libc::SYS_sched_setscheduler, &[reads(2, LENGTH)]),
    call(libc::SYS_sched_rr_get_interval, &[writes(1, TIME)]),
    call(libc::SYS_sched_setattr, &[writes(1, ADDRESS)]),
    call(libc::SYS_sched_getattr, &[writes(1, Times(2, 1))]),
    call(libc::SYS_getcpu, &[writes(0, LENGTH), writes(1, LENGTH)]),
    call(libc::SYS_get_mempolicy, &[writes(0, LENGTH), writes(1, NODES)]),
    call(libc::SYS_set_mempolicy, &[reads(1, NODES)]),
    call(libc::SYS_mbind, &[reads(3, NODES)]),
    call(libc::SYS_move_pages, &[reads(2, Times(1, 8)), reads(3, Times(1, 4)), writes(4, Times(1, 4))]),
    call(libc::SYS_getxattr, &[reads(0, Text), reads(1, Text), writes(2, Sized(0, 3))]),
    call(libc::SYS_lgetxattr, &[reads(0, Text), reads(1, Text), writes(2, Sized(0, 3))]),
    call(libc::SYS_fgetxattr, &[reads(1, Text), writes(2, Sized(0, 3))]),
    call(libc::SYS_setxattr, &[reads(0, Text), reads(1, Text), reads(2, Sized(0, 3))]),
    call(libc::SYS_lsetxattr, &[reads(0, Text), reads(1, Text), reads(2, Sized(0, 3))]),
    call(libc::SYS_fsetxattr, &[reads(1, Text), reads(2, Sized(0, 3))]),
    call(libc::SYS_listxattr, &[reads(0, Text), writes(1, Sized(0, 2))]),
    call(libc::SYS_llistxattr, &[reads(0, Text), writes(1, Sized(0, 2))]),
    call(libc::SYS_flistxattr, &[writes(1, Sized(0, 2))]),
    call(libc::SYS_removexattr, &[reads(0, Text), reads(1, Text)]),
    call(libc::SYS_lremovexattr, &[reads(0, Text), reads(1, Text)]),
    call(libc::SYS_fremovexattr, &[reads(1, Text)]),
    call(libc::SYS_openat2, &[reads(1, Text), reads(2, Sized(0, 3))]),
    call(libc::SYS_creat, &[reads(0, Text)]),
    call(libc::SYS_mknod, &[reads(0, Text)]),
    call(libc::SYS_mknodat, &[reads(1, Text)]),
    call(libc::SYS_chroot, &[reads(0, Text)]),
    call(libc::SYS_mount, &[reads(0, Text), reads(1, Text), reads(2, Text), reads(4, Text)]),
    call(libc::SYS_umount2, &[reads(0, Text)]),
    call(libc::SYS_utime, &[reads(0, Text), reads(1, TIME)]),
    call(libc::SYS_utimes, &[reads(0, Text), reads(1, TIMER)]),
    call(libc::SYS_futimesat, &[reads(1, Text), reads(2, TIMER)]),
    call(libc::SYS_name_to_handle_at, &[reads(1, Text), writes(2, STAT), writes(3, MASK)]),
    call(libc::SYS_open_by_handle_at, &[reads(1, STAT)]),
    call(libc::SYS_fanotify_mark, &[reads(4, Text)]),
    call(libc::SYS_msgsnd, &[reads(1, Sized(8, 2))]),
    call(libc::SYS_msgrcv, &[writes(1, Sized(8, 2))]),
    call(libc::SYS_msgctl, &[writes(2, ADDRESS)]),
    // For `SETALL` and `GETALL`, an array of as many numbers as the set has: at most 32,000 of two bytes.
    call(libc::SYS_semctl, &[writes(3, Bytes(64 << 10))]),
    call(libc::SYS_shmctl, &[writes(2, ADDRESS)]),
    call(libc::SYS_mq_open, &[reads(0, Text), reads(3, Bytes(64))]),
    call(libc::SYS_mq_unlink, &[reads(0, Text)]),
    call(libc::SYS_mq_timedsend, &[reads(1, Sized(0, 2)), reads(4, TIME)]),
    call(libc::SYS_mq_timedreceive, &[writes(1, Sized(0, 2)), writes(3, LENGTH), reads(4, TIME)]),
    call(libc::SYS_mq_getsetattr, &[reads(1, Bytes(64)), writes(2, Bytes(64))]),
    call(libc::SYS_mq_notify, &[reads(1, Bytes(64))]),
    call(libc::SYS_getgroups, &[writes(1, Times(0, 4))]),
    call(libc::SYS_setgroups, &[reads(1, Times(0, 4))]),
    call(libc::SYS_getresuid, &[writes(0, LENGTH), writes(1, LENGTH), writes(2, LENGTH)]),
    call(libc::SYS_getresgid, &[writes(0, LENGTH), writes(1, LENGTH), writes(2, LENGTH)]),
    call(libc::SYS_capget, &[writes(0, MASK), writes(1, Bytes(24))]),
    call(libc::SYS_capset, &[writes(0, MASK), reads(1, Bytes(24))]),
    call(libc::SYS_sethostname, &[reads(0, Times(1, 1))]),
    call(libc::SYS_setdomainname, &[reads(0, Times(1, 1))]),
    call(libc::SYS_syslog, &[writes(1, Times(2, 1))]),
];

/// Lists the calls that are always trapped, since they decide which signals a thread receives and on which stack.
pub(super) const SIGNALS: [c_long; 3] =
    [libc::SYS_rt_sigprocmask, libc::SYS_rt_sigaction, libc::SYS_sigaltstack];

/// The call that sets up an `io_uring`. It is always trapped, since the kernel uses the memory of requests in this
/// queue at any later time.
pub(super) const QUEUE: c_long = libc::SYS_io_uring_setup;
/// Describes the arguments of [`QUEUE`].
const SETUP: &Syscall = &call(QUEUE, &[writes(1, Bytes(120))]);

/// Returns whether the kernel may read the memory of a call after the call has returned.
pub(super) fn lends(number: c_long, arguments: &[usize; 6]) -> bool {
    let flags = match number {
        QUEUE | libc::SYS_vmsplice => return true,
        libc::SYS_sendto | libc::SYS_sendmmsg => arguments[3],
        libc::SYS_sendmsg => arguments[2],
        _ => 0,
    };
    flags & libc::MSG_ZEROCOPY as usize != 0
}

/// Returns the description of a call; `None` if it is not in the table.
pub(super) fn find(number: c_long) -> Option<&'static Syscall> {
    CALLS.iter().chain([SETUP]).find(|call| call.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_arguments_are_listed_once() {
        for (at, call) in CALLS.iter().enumerate() {
            assert!(!CALLS[..at].iter().any(|other| other.number == call.number), "{}", call.number);
            let buffers = call.pointers.iter().filter(|pointer| matches!(pointer.extent, Buffer(_)));
            assert!(buffers.count() <= 1, "{}", call.number);
            for argument in call.pointers.iter().map(|pointer| pointer.argument) {
                let same = call.pointers.iter().filter(|pointer| pointer.argument == argument);
                assert!(argument < 6 && same.count() == 1, "{}", call.number);
            }
        }
        assert!(SIGNALS.iter().all(|&number| find(number).is_none()));
        assert!(CALLS.iter().all(|call| call.number != QUEUE));
    }

    #[test]
    fn zero_copy_calls_lend_memory() {
        let zero_copy = libc::MSG_ZEROCOPY as usize | libc::MSG_DONTWAIT as usize;
        for (number, arguments, wanted) in [
            (libc::SYS_sendto, [3, 0, 0, zero_copy, 0, 0], true),
            (libc::SYS_sendto, [3, 0, zero_copy, 0, 0, 0], false),
            (libc::SYS_sendmsg, [3, 0, zero_copy, 0, 0, 0], true),
            (libc::SYS_sendmmsg, [3, 0, 1, zero_copy, 0, 0], true),
            (libc::SYS_write, [3, 0, zero_copy, zero_copy, 0, 0], false),
            (libc::SYS_vmsplice, [3, 0, 1, 0, 0, 0], true),
            (QUEUE, [8, 0, 0, 0, 0, 0], true),
        ] {
            assert_eq!(lends(number, &arguments), wanted, "{number} {arguments:?}");
        }
    }
}
