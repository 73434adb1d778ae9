//! Closes descriptors that a process inherited.

#![expect(
    clippy::disallowed_methods,
    reason = "glibc 2.28, for which packages are built, has no name for the call"
)]

/// Closes the descriptors from `first` to `last`, both included. Linux before 5.9 closes none.
///
/// # Safety
/// Nothing in this process uses or owns these descriptors.
pub(crate) unsafe fn close_range(first: u32, last: u32) {
    // SAFETY: takes numbers only, and the caller gives these descriptors up.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
