//! Exports `pthread_create`: the filter of system calls must be there before the program has a second thread
//! (`late_filter.rs`).

use crate::late_filter;
use crate::slots::object::is_own;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// The next function of that name: the C library's, or that of another preloaded library; null before it was looked up.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks up the next function, unless that is done. The constructor does so, since a forked child must not wait for a
/// lock of the dynamic linker that another thread of its parent held.
pub(crate) fn find() -> *mut c_void {
    // Relaxed: code needs no ordering.
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: the name is a C string.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    next
}

/// Implements `pthread_create(3)`.
///
/// # Safety
/// The requirements are those of `pthread_create`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // A thread of this library itself works without the filter.
    if late_filter::is_pending() && !is_own(start as *const c_void) {
        late_filter::before_thread();
    }
    let next = find();
    if next.is_null() {
        return libc::EAGAIN;
    }
    // SAFETY: every version of the C library gives its function this type.
    let next: Create = unsafe { core::mem::transmute(next) };
    // SAFETY: the caller's promise.
    unsafe { next(thread, attributes, start, argument) }
}
