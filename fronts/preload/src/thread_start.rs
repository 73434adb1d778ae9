//! Exports `pthread_create`, since the filter of system calls must be there before the program has a second thread
//! (`late_filter.rs`), and `pthread_setaffinity_np`, by which programs and OpenMP bind single threads.

use crate::late_filter;
use crate::slots::object::is_own;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use largesse_machine::process;

type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

type SetAffinity = unsafe extern "C" fn(libc::pthread_t, usize, *const libc::cpu_set_t) -> c_int;

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

/// Implements `pthread_setaffinity_np(3)`. If the main thread binds itself by this call, the processors of the process
/// stay the same.
///
/// # Safety
/// The requirements are those of `pthread_setaffinity_np`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_setaffinity_np(
    thread: libc::pthread_t,
    size: usize,
    set: *const libc::cpu_set_t,
) -> c_int {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_setaffinity_np".as_ptr()) };
    if next.is_null() {
        return libc::ENOSYS;
    }
    // SAFETY: every version of the C library that this library supports gives its function this type.
    let next: SetAffinity = unsafe { core::mem::transmute(next) };
    // SAFETY: the caller's promise.
    let bind = || unsafe { next(thread, size, set) };
    // SAFETY: no preconditions.
    let is_own = thread == unsafe { libc::pthread_self() };
    if is_own { process::binding_one_thread(bind) } else { bind() }
}
