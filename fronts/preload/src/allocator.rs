//! Another allocator in the process: preloaded, linked with the program, or part of it. All blocks are left to it.
//!
//! Such an allocator has more names than the C library's: `operator new` and `delete`, `sdallocx`, `tc_malloc_size`,
//! `mi_realloc`, methods of C++ objects. Its own functions do not recognise a block of Largesse, and not all of them can be
//! replaced from outside. Which blocks a program hands to them cannot be foreseen, so that none is safe to serve.

use crate::next;
use crate::slots::object;
use core::ffi::CStr;
use std::ffi::CString;
use std::sync::OnceLock;

/// Says which allocator serves `malloc` in this process; `None` when it is the C library's.
///
/// The answer stays what it is: a library that is loaded later stands behind the C library.
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
