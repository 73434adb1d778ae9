//! Runs code in a forked child, for tests that must not affect the other threads of the test process.

use core::ffi::c_int;

/// Returns whether `test` holds in a forked child. `test` may make system calls only, because another thread may have
/// held any lock at the fork.
pub(crate) fn in_child(test: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls only, and then exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = c_int::from(!test());
        // SAFETY: no preconditions.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: our own child, and a variable for its status.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status == 0
}
