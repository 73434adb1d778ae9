//! Serves a session that was started without the library, by patching its function slots in place.
//!
//! Calls between shared objects go through slots that the dynamic linker fills. We overwrite `malloc calloc realloc
//! free` of libR.so, so that R's vectors come from our heap; and `free realloc` and related functions of *every*
//! object, so that a block of ours is recognised in every library. `mmap` and related functions are patched everywhere
//! for the buffers of OpenBLAS and others, and `dlopen`, so that an object loaded later is patched before it is used.
//!
//! The library is never unloaded, since slots point into it.

mod deepbind;
pub(crate) mod enumeration;
pub(crate) mod object;
mod patch;

use crate::allocator;
use crate::guard::Inside;
use crate::start::{Hooked, set_hooked};
use core::ffi::{CStr, c_char, c_int, c_void};
use object::{RAllocator, each_object};

/// Returns whether libR.so (or an R program without it) is in this process.
pub(crate) fn r_is_loaded() -> bool {
    let (mut found, allocator) = (false, RAllocator::find());
    each_object(|object| found |= object.is_r(allocator));
    found
}

/// Returns the reason why the blocks of this process cannot be served; `None` if they can.
pub(crate) fn why_not() -> Option<&'static CStr> {
    if let Some(text) = crate::start::bad_setting().or_else(watched).or_else(allocator::other) {
        return Some(text);
    }
    if crate::start::hooked() == Hooked::No as u32 && !r_is_loaded() {
        return Some(c"the process was not started by `largesse run`, and it is not an R session whose calls could be patched");
    }
    None
}

/// Returns a message that names the tool, if any, that must see every allocation of this process itself.
pub(crate) fn watched() -> Option<&'static CStr> {
    for checker in [c"__asan_init", c"__hwasan_init", c"__msan_init", c"__tsan_init"] {
        if !crate::next::symbol(checker).is_null() {
            return Some(c"the program is built with a sanitizer, which must see every allocation itself");
        }
    }
    let mut valgrind = false;
    each_object(|object| valgrind |= object.name_contains(b"vgpreload"));
    valgrind.then_some(c"the program runs under valgrind, which must see every allocation itself")
}

/// Patches every object of this process.
pub(crate) fn patch_session() {
    if patch::patch(|_| true) > 0 {
        set_hooked(Hooked::Patched);
    }
}

/// Opens a library in a patched session, and patches the objects loaded with it before the caller can use them.
///
/// The C library takes us for the caller, and so searches a name without a slash without the caller's own RUNPATH; R
/// and Python pass paths.
///
/// # Safety
/// As `dlopen(3)`.
pub(crate) unsafe extern "C" fn dlopen_and_patch(file: *const c_char, mode: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    let handle = unsafe { crate::next::dlopen(file, mode) };
    if !handle.is_null() {
        let _inside = Inside::enter();
        patch::patch(|_| true);
    }
    handle
}
