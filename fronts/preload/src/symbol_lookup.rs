//! Exports `dlsym`, by which a library can find the C library's `pthread_create` past ours, as jemalloc does.
//!
//! The threads that it starts then may block the signals of the filter of system calls for good. So the filter, if one is
//! needed, is installed when a library looks that name up (`late_filter.rs`). The answers of `dlsym` do not change.

use crate::slots::object::{is_own, text};
use crate::{allocator, late_filter};
use core::arch::naked_asm;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Oldest version of `dlsym` on this architecture, which every C library has.
const VERSION: &CStr = c"GLIBC_2.2.5";

/// The C library's function; null before it was looked up.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// Implements `dlsym(3)`.
///
/// Jumps to the C library's function instead of calling it, which takes the object with the return address for the caller.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "mov rdx, [rsp]",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before,
    );
}

/// Prepares for the look-up of `name` by the code at `caller`. Returns the C library's `dlsym`.
extern "C" fn before(_handle: *mut c_void, name: *const c_char, caller: *const c_void) -> *const c_void {
    // Another allocator may look the name up before it can allocate, which the installation of a filter needs.
    if late_filter::is_pending()
        && text(name) == b"pthread_create"
        && !is_own(caller)
        && allocator::other().is_none()
    {
        late_filter::before_thread();
    }
    next()
}

fn next() -> *const c_void {
    // Relaxed: code needs no ordering.
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: both names are C strings.
        next = unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), VERSION.as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    next
}
