//! Exports the `malloc` family under its C names.
//!
//! Each function compares the requested size with the bounds of the settings, then calls the heap or the next
//! allocator.

use crate::guard::called_from_outside;
use crate::heap::owns;
use crate::routing::takes;
use crate::{next, serve, shortage};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use largesse_malloc::Fill;

/// Alignment in bytes of blocks for which none was requested.
const MALLOC_ALIGN: usize = 16;

/// Implements `malloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    called_from_outside("malloc");
    if takes(size) {
        let block = serve::allocate(size, MALLOC_ALIGN, Fill::Any);
        // SAFETY: no preconditions.
        return block.unwrap_or_else(|| shortage::answer(size, unsafe { next::malloc(size) }));
    }
    // SAFETY: no preconditions.
    unsafe { next::malloc(size) }
}

/// Implements `calloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
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

/// Implements `realloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    called_from_outside("realloc");
    if old.is_null() {
        // SAFETY: no preconditions.
        return unsafe { malloc(size) };
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
        return unsafe { realloc(old, total) };
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
    aligned(align, size).unwrap_or_else(|| shortage::answer(size, unsafe { next::memalign(align, size) }))
}

/// Implements `aligned_alloc(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    called_from_outside("aligned_alloc");
    // SAFETY: no preconditions.
    aligned(align, size)
        .unwrap_or_else(|| shortage::answer(size, unsafe { next::aligned_alloc(align, size) }))
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
            shortage::answer(size, null_mut());
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
