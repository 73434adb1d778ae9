//! Serves requests for blocks from the heaps of the process; the first request makes that of large blocks.

use crate::errno::Errno;
use crate::guard::Inside;
use crate::heap::{heap, is_far};
use crate::make::heap_or_make;
use crate::message::die;
use crate::routing::{ROUTING, is_large, takes};
use crate::{helper, next, record, refused, shortage, small, spill};
use core::ffi::c_void;
use core::ptr::null_mut;
use largesse_malloc::{Fill, LARGEST_SMALL, Refused, ResizeError, Resized, SmallHeap};

/// Allocates a block; returns `None` if the next allocator is to serve the request.
#[cold]
pub(crate) fn allocate(size: usize, align: usize, fill: Fill) -> Option<*mut c_void> {
    if small::serves(size, align) {
        return small::allocate(size, align, fill);
    }
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    let heap = heap_or_make()?;
    let allocated = heap.allocate(size, align, fill);
    refused::report_new(heap);
    match allocated {
        Ok(block) => {
            spill::before_use(heap);
            helper::block_taken(&block);
            record::update();
            errno.put();
            Some(block.start.as_ptr().cast())
        }
        Err(_) if is_far() => Some(refuse(size.max(align))),
        Err(_) => None,
    }
}

/// Refuses a request because the store is full: memory of the next allocator, which is not far, would exceed the limit.
fn refuse(size: usize) -> *mut c_void {
    shortage::explain(size);
    Errno(libc::ENOMEM).put();
    null_mut()
}

/// Frees a block in the heap's range.
#[inline]
pub(crate) fn free(block: *mut c_void) {
    if !small::free(block) {
        free_large(block);
    }
}

#[cold]
fn free_large(block: *mut c_void) {
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    record::before_free();
    if let Some(heap) = heap()
        && heap.free(block.addr()).is_err()
    {
        die(&["free(): not a block of this heap, or freed twice"]);
    }
    record::update();
    errno.put();
}

pub(crate) fn usable(block: *mut c_void) -> usize {
    if let Some(usable) = small::usable(block) {
        return usable;
    }
    let _inside = Inside::enter_heap();
    match heap().map(|heap| heap.usable(block.addr())) {
        Some(Ok(usable)) => usable,
        _ => die(&["malloc_usable_size(): not a block of this heap"]),
    }
}

pub(crate) fn trim(keep: usize) -> usize {
    small::reclaim();
    let _inside = Inside::enter_heap();
    heap().map_or(0, |heap| heap.trim(keep))
}

/// Implements `realloc` for a block of the heap.
///
/// # Safety
/// `old` must be a live block of the heap that no other thread uses during the call.
#[cold]
pub(crate) unsafe fn resize(old: *mut c_void, size: usize) -> *mut c_void {
    if size == 0 {
        free(old);
        return null_mut();
    }
    let small = small::usable(old);
    if small.is_some_and(|usable| SmallHeap::fits(usable, size)) {
        return old;
    }
    let (min, ..) = ROUTING.limits();
    let least = if small::is_on() { LARGEST_SMALL + 1 } else { min / 2 };
    // SAFETY: the caller's promise, and it is a large block.
    let resize = || unsafe { resize_without_copying(old, size) };
    let stays_large = small.is_none() && size >= least;
    let resized = if stays_large { resize() } else { None };
    let (new, usable) = match resized {
        Some(Resized::Done(block)) => return block.start.as_ptr().cast(),
        Some(Resized::Copy { to, usable }) => (to.start.as_ptr().cast(), usable),
        None if stays_large && is_far() => {
            let _inside = Inside::enter_heap();
            return refuse(size);
        }
        // It has another size class now, became small, or the range is full.
        None => (of_another_kind(size, small.is_some()), usable(old)),
    };
    if !new.is_null() {
        // Without `Inside`, so that handlers of the program can run during a long copy.
        // SAFETY: the old block has `usable` bytes, the new one `size`; they are distinct.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), usable.min(size)) };
        free(old);
    }
    new
}

/// Allocates the new place of a block that is resized from small to large, from large to small, or from one class of
/// small blocks to another.
fn of_another_kind(size: usize, was_small: bool) -> *mut c_void {
    let ours = if was_small && takes(size) || small::serves(size, 16) {
        allocate(size, 16, Fill::Any)
    } else {
        None // a large block for which the range is full, or one that the next allocator is to serve
    };
    // SAFETY: no preconditions.
    ours.unwrap_or_else(|| unsafe { next::malloc(size) })
}

/// Resizes a large block, unless it must be copied; returns `None` if the heap has no memory for it.
///
/// # Safety
/// The requirements are those of [`resize`].
unsafe fn resize_without_copying(old: *mut c_void, size: usize) -> Option<Resized> {
    let _inside = Inside::enter_heap();
    let Some(heap) = heap() else { die(&["realloc(): not a block of this heap"]) };
    // SAFETY: the caller's promise.
    match unsafe { heap.resize_without_copying(old.addr(), size) } {
        Ok(resized) => {
            spill::before_use(heap);
            record::update();
            Some(resized)
        }
        Err(ResizeError::NotABlock(_)) => die(&["realloc(): not a block of this heap"]),
        Err(ResizeError::Refused(Refused::RangeFull | Refused::NoMemory)) => None,
    }
}

/// Implements `realloc` of the next allocator's block to a size that the library serves.
///
/// # Safety
/// `old` must be a live block of the next allocator that no other thread uses during the call.
#[cold]
pub(crate) unsafe fn adopt(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let usable = unsafe { next::usable_size(old) };
    // A block that is large already is left to its allocator, which can resize it without copying.
    if takes(size)
        && is_large(size)
        && !is_large(usable)
        && let Some(new) = allocate(size, 16, Fill::Any)
    {
        if new.is_null() {
            return new; // refused: the old block is unchanged
        }
        // SAFETY: `usable` bytes can be read, `size` written, and the blocks are distinct.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), usable.min(size)) };
        // SAFETY: the caller's promise.
        unsafe { next::free(old) };
        return new;
    }
    // SAFETY: the caller's promise.
    unsafe { next::realloc(old, size) }
}
