//! Gives threads a table of file descriptors of their own, and duplicates descriptors of another thread's table.

use crate::sys;
use core::ffi::c_int;

/// Gives the calling thread an empty descriptor table of its own, which it shares with threads that it starts. The
/// error is the kernel's `errno` (before Linux 5.9: `ENOSYS`).
pub fn own_table() -> Result<(), i32> {
    sys::descriptors::own_table()
}

/// Duplicates descriptor `number` of the process's first thread into the caller's table. The duplicate is closed on
/// `exec`. Needs Linux 5.6; the error is the kernel's `errno`.
pub fn of_first_thread(number: c_int) -> Result<c_int, i32> {
    sys::descriptors::of_first_thread(number).map(sys::Descriptor::into_number)
}

/// Duplicates descriptor `number` of any thread of this process into the caller's table. Needs Linux 6.9; the error is
/// the kernel's `errno`.
pub fn of_thread(thread: u32, number: c_int) -> Result<c_int, i32> {
    sys::descriptors::of_thread(thread, number).map(sys::Descriptor::into_number)
}
