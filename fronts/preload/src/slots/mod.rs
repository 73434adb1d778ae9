//! Slots: a session that was started without the library is served by patching calls in place.
//!
//! Calls between shared objects go through slots that the dynamic linker fills. We overwrite
//! `malloc calloc realloc free` of libR.so, so that R's vectors come from us; and `free realloc`
//! and their kin of *every* object, so that a block which crosses libraries is recognised. `mmap`
//! and its kin are patched everywhere for the buffers of OpenBLAS and others, and `dlopen`, so that an object
//! loaded later is patched before it is used.
//!
//! The library is never unloaded: slots point into it for good.

mod deepbind;
pub(crate) mod enumeration;
pub(crate) mod object;
mod patch;

use crate::allocator;
use crate::guard::Inside;
use crate::start::{Hooked, set_hooked};
use core::ffi::{CStr, c_char, c_int, c_void};
use object::{RAllocator, each_object};

/// Whether libR.so (or an R program without it) is in this process.
pub(crate) fn r_is_loaded() -> bool {
    let (mut found, allocator) = (false, RAllocator::find());
    each_object(|object| found |= object.is_r(allocator));
    found
}

/// Says why the blocks of this process cannot be served; `None` when they can.
pub(crate) fn why_not() -> Option<&'static CStr> {
    if let Some(text) = crate::start::bad_setting().or_else(watched).or_else(allocator::other) {
        return Some(text);
    }
    if crate::start::hooked() == Hooked::No as u32 && !r_is_loaded() {
        return Some(c"the process was not started by `largesse run`, and it is not an R session whose calls could be patched");
    }
    None
}

/// Names the tool that must see every allocation of this process itself, if there is one.
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

/// Patch every object of this process.
pub(crate) fn patch_session() {
    if patch::patch(|_| true) > 0 {
        set_hooked(Hooked::Patched);
    }
}

/// Opens a library in a patched session, and patches what came with it before the caller can use it.
///
/// The C library sees us as the caller, so that a name without a slash is searched without the
/// caller's own RUNPATH; R and Python pass paths.
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
