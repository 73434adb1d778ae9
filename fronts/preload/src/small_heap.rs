//! Holds the heap of small blocks once it is made.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use largesse_malloc::SmallHeap;

static HEAP: AtomicPtr<SmallHeap> = AtomicPtr::new(null_mut());

/// Returns the heap of small blocks, if they are served.
#[inline]
pub(crate) fn small() -> Option<&'static SmallHeap> {
    // Acquire: pairs with the Release in `set`.
    // SAFETY: a published heap is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// Makes the heap visible to all threads.
pub(crate) fn set(heap: &'static SmallHeap) {
    HEAP.store((&raw const *heap).cast_mut(), Ordering::Release);
}
