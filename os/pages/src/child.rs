//! For tests of what must not happen to a process with other threads in it.

use core::ffi::c_int;

/// Whether `test` holds in a child. It makes system calls only: another thread may have held any lock at the fork.
pub(crate) fn in_child(test: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes system calls only, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let status = c_int::from(!test());
        // SAFETY: no preconditions.
        unsafe { libc::_exit(status) };
    }
    let mut status = -1;
    // SAFETY: our own child and a place for its status.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    status == 0
}
