//! Detects another allocator in the process (preloaded, linked or built in), which then serves all blocks.
//!
//! Such an allocator has more names than the C library's: `operator new` and `delete`, `sdallocx`, `tc_malloc_size`,
//! `mi_realloc`, methods of C++ objects. Its own functions do not recognise a block of Largesse, and not all of them
//! can be replaced from outside. Since a program may pass any block to them, no block is safe to serve.

use crate::next;
use crate::slots::object;
use core::ffi::CStr;
use std::ffi::CString;
use std::sync::OnceLock;

/// Returns a message that names the allocator which serves `malloc` in this process; `None` if that is the C library.
///
/// The answer never changes: the `malloc` of a library that is loaded later has no effect, because that library follows
/// the C library in the search order.
pub(crate) fn other() -> Option<&'static CStr> {
    static OTHER: OnceLock<Option<CString>> = OnceLock::new();
    let other = OTHER.get_or_init(|| {
        let malloc = next::malloc_address();
        if object::is_c_library(malloc) {
            return None;
        }
        let file = object::file_of(malloc)?;
        CString::new(format!("{file} brings its own malloc, which serves every block")).ok()
    });
    other.as_deref()
}
