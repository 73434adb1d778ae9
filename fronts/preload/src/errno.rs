//! The thread's `errno`, which is the program's: calls that succeed, and `free` whatever it did, leave it alone.

use core::ffi::c_int;

/// What `errno` was, or shall be.
pub(crate) struct Errno(pub(crate) c_int);

impl Errno {
    pub(crate) fn save() -> Errno {
        // SAFETY: the location is this thread's and always valid.
        Errno(unsafe { *libc::__errno_location() })
    }

    pub(crate) fn put(self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
