//! Tables of file descriptors: one for some threads alone, and what another thread's table holds.

use crate::sys;
use core::ffi::c_int;

/// From now on this thread has a table of descriptors of its own, an empty one; threads that it starts
/// share that. The error is the kernel's `errno` (before Linux 5.9: `ENOSYS`).
pub fn own_table() -> Result<(), i32> {
    sys::descriptors::own_table()
}

/// A duplicate of what the first thread of this process has as `number`, in the table of the caller;
/// closed on `exec`. Linux 5.6 and later.
pub fn of_first_thread(number: c_int) -> Result<c_int, i32> {
    sys::descriptors::of_first_thread(number).map(sys::Descriptor::into_number)
}

/// The same of any thread of this process. Linux 6.9 and later.
pub fn of_thread(thread: u32, number: c_int) -> Result<c_int, i32> {
    sys::descriptors::of_thread(thread, number).map(sys::Descriptor::into_number)
}
