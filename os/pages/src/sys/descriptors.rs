//! Tables of descriptors: system calls that the C library has no names for yet.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of the kernel's interface")]

use super::linux::errno;
use core::ffi::{c_int, c_uint};

const CLOSE_RANGE_UNSHARE: c_uint = 1 << 1;

pub(crate) fn own_table() -> Result<(), i32> {
    // SAFETY: numbers only. What is closed is closed in a table that nobody else has.
    let rc = unsafe { libc::syscall(libc::SYS_close_range, 0, c_uint::MAX, CLOSE_RANGE_UNSHARE) };
    if rc == 0 { Ok(()) } else { Err(errno()) }
}

pub(crate) fn of_first_thread(number: c_int) -> Result<c_int, i32> {
    // SAFETY: numbers only; the process is this one.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) } as c_int;
    if process < 0 {
        return Err(errno());
    }
    // SAFETY: numbers only.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) } as c_int;
    let error = errno();
    // SAFETY: our own descriptor, closed once.
    unsafe { libc::close(process) };
    if got < 0 { Err(error) } else { Ok(got) }
}
