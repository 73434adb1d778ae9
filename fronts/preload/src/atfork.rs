//! Registers the library's fork handlers before those of all other libraries.
//!
//! The C library calls handlers in an order that follows their registration. The library's own must be the last before
//! the fork and the first after it (`far_fork.rs`). So the library exports `__register_atfork`, by which all other
//! libraries register theirs, and registers its own first.

use crate::fork::{before, in_child, in_parent};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// Registers the library's fork handlers, once in a process and before those of all other libraries.
pub(crate) fn watch() {
    static WATCHING: AtomicBool = AtomicBool::new(false);
    if !WATCHING.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers live as long as this library, which is never unloaded.
        unsafe { register(Some(before), Some(in_parent), Some(in_child), null_mut()) };
    }
}

/// Replaces the C library's function behind `pthread_atfork`: registers the library's own handlers, then those given.
///
/// # Safety
/// The requirements are those of `pthread_atfork`.
#[unsafe(no_mangle)]
unsafe extern "C" fn __register_atfork(
    before: Handler,
    in_parent: Handler,
    in_child: Handler,
    object: *mut c_void,
) -> c_int {
    watch();
    // SAFETY: the caller's promise.
    unsafe { register(before, in_parent, in_child, object) }
}

/// Registers fork handlers with the C library.
///
/// # Safety
/// The handlers must live as long as the loaded object whose handle is `object`, or as the process if it is null.
unsafe fn register(before: Handler, in_parent: Handler, in_child: Handler, object: *mut c_void) -> c_int {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__register_atfork".as_ptr()) };
    if found.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: every version of the C library gives its function this type.
    let register: Register = unsafe { core::mem::transmute(found) };
    // SAFETY: the caller's promise.
    unsafe { register(before, in_parent, in_child, object) }
}
