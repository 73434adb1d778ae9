//! Exports the `malloc` family under its C names.
//!
//! Each function compares the requested size with the bounds of the settings, then calls the heap or the next
//! allocator. While small blocks are served, the functions that the C library calls for itself also look at the address
//! of their caller (`callers.rs`), which only machine code can know.

use crate::guard::called_from_outside;
use crate::heap::owns;
use crate::routing::takes;
use crate::{callers, next, serve, shortage, small};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use largesse_malloc::Fill;

/// Alignment in bytes of blocks for which none was requested.
const MALLOC_ALIGN: usize = 16;

/// Exports a C function that calls `$plain`, or, while small blocks are served, `$called` with the address of its
/// caller as an additional last argument. Small blocks are served while the first word of `ROUTING` (`routing.rs`) is
/// 0.
#[cfg(target_arch = "x86_64")]
macro_rules! export {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*), $register:literal, $plain:ident, $called:ident) => {
        $(#[$doc])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            core::arch::naked_asm!(
                "cmp qword ptr [rip + {routing}], 0",
                "je 2f",
                "jmp {plain}",
                "2:",
                concat!("mov ", $register, ", [rsp]"),
                "jmp {called}",
                routing = sym crate::routing::ROUTING,
                plain = sym $plain,
                called = sym $called,
            )
        }
    };
}

/// Exports a function, which is implemented by `$plain`: small blocks are not served.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! export {
    ($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*), $register:literal, $plain:ident, $called:ident) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            // SAFETY: the caller's promise.
            unsafe { $plain($($argument),*) }
        }
    };
}

export! {
    /// Implements `malloc(3)`.
    malloc(size: usize), "rsi", malloc_for_any, malloc_for
}
export! {
    /// Implements `calloc(3)`.
    calloc(count: usize, size: usize), "rdx", calloc_for_any, calloc_for
}
export! {
    /// Implements `realloc(3)`.
    realloc(old: *mut c_void, size: usize), "rdx", realloc_for_any, realloc_for
}

/// Returns whether a request for `size` bytes by the code at `caller` is one of the C library for itself.
#[inline]
fn is_for_c_library(size: usize, caller: usize) -> bool {
    small::serves(size, MALLOC_ALIGN) && callers::is_for_c_library(caller)
}

unsafe extern "C" fn malloc_for(size: usize, caller: usize) -> *mut c_void {
    called_from_outside("malloc");
    if is_for_c_library(size, caller) {
        // SAFETY: no preconditions.
        return unsafe { next::malloc(size) };
    }
    if small::serves(size, MALLOC_ALIGN)
        && let Some(block) = small::allocate(size, MALLOC_ALIGN, Fill::Any)
    {
        return block;
    }
    // SAFETY: no preconditions.
    unsafe { malloc_for_any(size) }
}

unsafe extern "C" fn malloc_for_any(size: usize) -> *mut c_void {
    called_from_outside("malloc");
    if takes(size) {
        let block = serve::allocate(size, MALLOC_ALIGN, Fill::Any);
        // SAFETY: no preconditions.
        return block.unwrap_or_else(|| shortage::answer(size, unsafe { next::malloc(size) }));
    }
    // SAFETY: no preconditions.
    unsafe { next::malloc(size) }
}

unsafe extern "C" fn calloc_for(count: usize, size: usize, caller: usize) -> *mut c_void {
    called_from_outside("calloc");
    if is_for_c_library(count.saturating_mul(size), caller) {
        // SAFETY: no preconditions.
        return unsafe { next::calloc(count, size) };
    }
    // SAFETY: no preconditions.
    unsafe { calloc_for_any(count, size) }
}

unsafe extern "C" fn calloc_for_any(count: usize, size: usize) -> *mut c_void {
    called_from_outside("calloc");
    if let Some(total) = count.checked_mul(size)
        && takes(total)
    {
        let block = serve::allocate(total, MALLOC_ALIGN, Fill::Zero);
        // SAFETY: no preconditions.
        return block.unwrap_or_else(|| shortage::answer(total, unsafe { next::calloc(count, size) }));
    }
    // SAFETY: no preconditions; the C library refuses a product that overflows.
    unsafe { next::calloc(count, size) }
}

/// Implements `free(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    called_from_outside("free");
    if owns(block) {
        serve::free(block);
    } else {
        // SAFETY: the caller promises a live block, which the next allocator returned because the heap does not own it.
        unsafe { next::free(block) };
    }
}

unsafe extern "C" fn realloc_for(old: *mut c_void, size: usize, caller: usize) -> *mut c_void {
    called_from_outside("realloc");
    if !owns(old) && is_for_c_library(size, caller) {
        // SAFETY: the caller's promise, and the block is the next allocator's, if it is one.
        return unsafe { next::realloc(old, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { realloc_for_any(old, size) }
}

unsafe extern "C" fn realloc_for_any(old: *mut c_void, size: usize) -> *mut c_void {
    called_from_outside("realloc");
    if old.is_null() {
        // SAFETY: no preconditions.
        return unsafe { malloc_for_any(size) };
    }
    if owns(old) {
        // SAFETY: the caller promises a live block, and the heap owns it.
        return shortage::answer(size, unsafe { serve::resize(old, size) });
    }
    if takes(size) {
        // SAFETY: the caller promises a live block, and the heap does not own it.
        return shortage::answer(size, unsafe { serve::adopt(old, size) });
    }
    // SAFETY: the caller's promise.
    unsafe { next::realloc(old, size) }
}

/// Implements `reallocarray(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    if let Some(total) = count.checked_mul(size)
        && (owns(old) || takes(total))
    {
        // SAFETY: the caller's promise.
        return unsafe { realloc_for_any(old, total) };
    }
    // SAFETY: the caller's promise; a product that overflows is refused without access to the block.
    unsafe { next::reallocarray(old, count, size) }
}

/// Returns a block of the heap for an aligned request. Returns `None` if the next allocator is to serve it: it is
/// small, the heap has no memory for it, or its alignment is not a power of two, which C libraries treat differently.
fn aligned(align: usize, size: usize) -> Option<*mut c_void> {
    if align.is_power_of_two() && takes(size) { serve::allocate(size, align, Fill::Any) } else { None }
}

/// Implements `memalign(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    called_from_outside("memalign");
    // SAFETY: no preconditions.
    aligned(align, size)
        .unwrap_or_else(|| shortage::answer(size.max(align), unsafe { next::memalign(align, size) }))
}

/// Implements `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    called_from_outside("aligned_alloc");
    // SAFETY: no preconditions.
    aligned(align, size)
        .unwrap_or_else(|| shortage::answer(size.max(align), unsafe { next::aligned_alloc(align, size) }))
}

/// Implements `posix_memalign(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    called_from_outside("posix_memalign");
    let accepted = align.is_multiple_of(size_of::<*mut c_void>());
    let Some(block) = accepted.then(|| aligned(align, size)).flatten() else {
        // SAFETY: the caller's promise.
        let error = unsafe { next::posix_memalign(out, align, size) };
        if error == libc::ENOMEM {
            shortage::answer(size.max(align), null_mut());
        }
        return error;
    };
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller promises that `out` is writable.
    unsafe { out.write(block) };
    0
}

/// Implements `valloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    called_from_outside("valloc");
    // SAFETY: no preconditions.
    aligned(largesse_pages::base_page(), size)
        .unwrap_or_else(|| shortage::answer(size, unsafe { next::valloc(size) }))
}

/// Implements `pvalloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    called_from_outside("pvalloc");
    let page = largesse_pages::base_page();
    let block = size.checked_next_multiple_of(page).and_then(|size| aligned(page, size));
    // SAFETY: no preconditions.
    block.unwrap_or_else(|| shortage::answer(size, unsafe { next::pvalloc(size) }))
}

/// Implements `malloc_usable_size(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if owns(block) {
        return serve::usable(block);
    }
    if block.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { next::usable_size(block) }
}

/// Implements `malloc_trim(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_trim(keep: usize) -> c_int {
    let ours = serve::trim(keep) > 0;
    // SAFETY: no preconditions.
    let theirs = unsafe { next::trim(keep) };
    c_int::from(ours || theirs != 0)
}
