//! Hands the heap to programs that accept an allocator as functions with a context, such as NumPy (NEP 49).
//!
//! The context is the program's own allocator, which serves every request that the heap does not: small blocks, and all
//! blocks while the library is switched off.

use crate::guard::Inside;
use crate::heap::owns;
use crate::hooked::{Hooked, hooked, set_hooked};
use crate::routing::takes;
use crate::slots::eligibility;
use crate::status::{BAD_ARGUMENT, NOT_SUPPORTED, OK};
use crate::{serve, shortage};
use core::ffi::{c_int, c_void};
use largesse_malloc::Fill;

/// Alignment of blocks in bytes, as that of `malloc`.
const ALIGN: usize = 16;

/// Mirrors `largesse_allocator_t` of `largesse.h`, which has the layout of NumPy's `PyDataMemAllocator`.
#[repr(C)]
pub(crate) struct ContextAllocator {
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// Fills in `out` with functions that serve large requests from the heap and pass all others to `next`.
///
/// # Safety
/// `next` must be NULL or an allocator that is never freed and whose blocks are the C library's; `out` must be NULL or
/// writable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_allocator(
    next: *const ContextAllocator,
    out: *mut ContextAllocator,
) -> c_int {
    if next.is_null() || out.is_null() {
        return BAD_ARGUMENT;
    }
    let _inside = Inside::enter();
    if eligibility::why_never().is_some() {
        return NOT_SUPPORTED;
    }
    if hooked() == Hooked::No as u32 {
        set_hooked(Hooked::Functions);
    }
    let functions = ContextAllocator { context: next.cast_mut().cast(), malloc, calloc, realloc, free };
    // SAFETY: not NULL, so writable by the caller's promise.
    unsafe { out.write(functions) };
    OK
}

/// Returns the program's own allocator, to which requests that the heap does not serve are passed.
///
/// # Safety
/// `context` must be the context of an allocator from [`largesse_allocator`].
unsafe fn below(context: *mut c_void) -> &'static ContextAllocator {
    // SAFETY: it is the `next` of that call, which is not NULL and never freed.
    unsafe { &*context.cast_const().cast() }
}

unsafe extern "C" fn malloc(context: *mut c_void, size: usize) -> *mut c_void {
    let block = if takes(size) { serve::allocate(size, ALIGN, Fill::Any) } else { None };
    block.unwrap_or_else(|| {
        // SAFETY: the program passes the context that it got.
        let next = unsafe { below(context) };
        // SAFETY: the function and the context belong together.
        shortage::answer(size, unsafe { (next.malloc)(next.context, size) })
    })
}

unsafe extern "C" fn calloc(context: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let total = count.checked_mul(size).filter(|total| takes(*total));
    let block = total.and_then(|total| serve::allocate(total, ALIGN, Fill::Zero));
    block.unwrap_or_else(|| {
        // SAFETY: the program passes the context that it got.
        let next = unsafe { below(context) };
        // SAFETY: the function and the context belong together.
        shortage::answer(count.saturating_mul(size), unsafe { (next.calloc)(next.context, count, size) })
    })
}

unsafe extern "C" fn realloc(context: *mut c_void, old: *mut c_void, size: usize) -> *mut c_void {
    if owns(old) {
        // SAFETY: the caller promises a live block, and the heap owns it.
        return shortage::answer(size, unsafe { serve::resize(old, size) });
    }
    if !old.is_null() && takes(size) {
        // SAFETY: the caller promises a live block, which is the C library's because the heap does not own it.
        return shortage::answer(size, unsafe { serve::adopt(old, size) });
    }
    // SAFETY: the program passes the context that it got.
    let next = unsafe { below(context) };
    // SAFETY: the function and the context belong together, and the block is not the heap's.
    shortage::answer(size, unsafe { (next.realloc)(next.context, old, size) })
}

unsafe extern "C" fn free(context: *mut c_void, block: *mut c_void, size: usize) {
    if owns(block) {
        serve::free(block);
    } else {
        // SAFETY: the program passes the context that it got.
        let next = unsafe { below(context) };
        // SAFETY: the function and the context belong together, and the block is not the heap's.
        unsafe { (next.free)(next.context, block, size) };
    }
}
