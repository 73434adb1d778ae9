//! Decides whether the blocks of this process can be served.

use super::object::each_object;
use super::r::r_is_loaded;
use crate::allocator;
use crate::hooked::{Hooked, hooked};
use crate::settings::bad_setting;
use crate::symbol::symbol;
use core::ffi::CStr;

/// Returns the reason why the blocks of this process cannot be served; `None` if they can.
pub(crate) fn why_not() -> Option<&'static CStr> {
    if let Some(text) = why_never() {
        return Some(text);
    }
    if hooked() == Hooked::No as u32 && !r_is_loaded() {
        return Some(c"the process was not started by `largesse run`, and it is not an R session whose calls could be patched");
    }
    None
}

/// Returns the reason why the blocks of this process cannot be served in whichever way its calls reach the library.
pub(crate) fn why_never() -> Option<&'static CStr> {
    bad_setting().or_else(watched).or_else(allocator::other)
}

/// Returns a message that names the tool, if any, that must see every allocation of this process itself.
pub(crate) fn watched() -> Option<&'static CStr> {
    for checker in [c"__asan_init", c"__hwasan_init", c"__msan_init", c"__tsan_init"] {
        if !symbol(checker).is_null() {
            return Some(c"the program is built with a sanitizer, which must see every allocation itself");
        }
    }
    let mut valgrind = false;
    each_object(|object| valgrind |= object.name_contains(b"vgpreload"));
    valgrind.then_some(c"the program runs under valgrind, which must see every allocation itself")
}
