//! Makes the system calls on descriptor tables for which the C library has no names yet.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of the kernel's interface")]

use super::files::Descriptor;
use super::linux::checked;
use super::shared::process;
use core::ffi::{c_int, c_uint};

const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;

pub(crate) fn own_table() -> Result<(), i32> {
    // SAFETY: numbers only. Descriptors are closed in a table that no other thread has.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, CLOSE_RANGE_UNSHARE) };
    checked(rc as c_int)
}

pub(crate) fn of_thread(thread: u32, number: c_int) -> Result<Descriptor, i32> {
    /// Flag of `linux/pidfd.h`: the descriptor may be that of a thread that is not the first of its process.
    const PIDFD_THREAD: c_int = libc::O_EXCL;
    // SAFETY: numbers only.
    let thread =
        Descriptor::made(unsafe { libc::syscall(libc::SYS_pidfd_open, thread, PIDFD_THREAD) } as c_int)?;
    // SAFETY: as above.
    Descriptor::made(unsafe { libc::syscall(libc::SYS_pidfd_getfd, thread.0, number, 0) } as c_int)
}

pub(crate) fn of_first_thread(number: c_int) -> Result<Descriptor, i32> {
    // SAFETY: no preconditions.
    let this = process(unsafe { libc::getpid() })?;
    // SAFETY: numbers only.
    Descriptor::made(unsafe { libc::syscall(libc::SYS_pidfd_getfd, this.0, number, 0) } as c_int)
}
