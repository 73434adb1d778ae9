//! Results of system calls as the kernel returns them.

use core::ffi::c_int;

/// Result of a system call as the kernel returns it: a number, or `-errno`.
pub(crate) type Answer = isize;

/// Returns the result of a system call that the kernel refuses with this error.
pub(crate) const fn refused(errno: c_int) -> Answer {
    -(errno as Answer)
}

/// Returns whether a result is an error of the kernel.
pub(crate) fn is_error(answer: Answer) -> bool {
    (-4095..0).contains(&answer)
}
