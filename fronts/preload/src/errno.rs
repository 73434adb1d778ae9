//! Saves and restores the thread's `errno`, which calls that succeed, and every `free`, must not change.

use core::ffi::c_int;

/// Holds a value of `errno`, saved or to be set.
pub(crate) struct Errno(pub(crate) c_int);

impl Errno {
    pub(crate) fn save() -> Errno {
        // SAFETY: the location belongs to this thread and is always valid.
        Errno(unsafe { *libc::__errno_location() })
    }

    pub(crate) fn put(self) {
        // SAFETY: the location belongs to this thread and is always valid.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
