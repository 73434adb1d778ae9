//! Holds the heap of the process and its backing once they are made.

use crate::backing::{Far, HeapBacking};
use crate::limit_state;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use largesse_malloc::LargeBlockHeap;

/// The heap of large blocks on near or far memory.
pub(crate) type LargeHeap = LargeBlockHeap<HeapBacking>;

static HEAP: AtomicPtr<LargeHeap> = AtomicPtr::new(null_mut());
static BACKING: AtomicPtr<HeapBacking> = AtomicPtr::new(null_mut());
/// Start of the heap's address range, to which `free` compares addresses to recognise blocks of the heap.
static RANGE_START: AtomicUsize = AtomicUsize::new(0);
/// Length of the heap's range in bytes, 0 without a heap.
static RANGE_LEN: AtomicUsize = AtomicUsize::new(0);

/// Returns whether an address is in the heap's range.
// Relaxed: a thread gets a block of the range only from one that saw the range.
#[inline]
pub(crate) fn owns(block: *mut c_void) -> bool {
    block.addr().wrapping_sub(RANGE_START.load(Ordering::Relaxed)) < RANGE_LEN.load(Ordering::Relaxed)
}

/// Returns the first address of the heap's range, and the one after its last; two equal ones without a heap.
pub(crate) fn addresses() -> (usize, usize) {
    // Relaxed: as in `owns`.
    let start = RANGE_START.load(Ordering::Relaxed);
    (start, start + RANGE_LEN.load(Ordering::Relaxed))
}

/// Returns the heap, if one was made.
pub(crate) fn heap() -> Option<&'static LargeHeap> {
    // Acquire: pairs with the Release in `set`, so that the heap is initialised.
    // SAFETY: a published heap is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// Returns the heap's backing, if there is a heap.
pub(crate) fn backing() -> Option<&'static HeapBacking> {
    // SAFETY: a published backing is never freed.
    unsafe { BACKING.load(Ordering::Acquire).as_ref() }
}

/// Returns far memory, if there is any. With a limit, blocks may be near again ([`is_far`]).
pub(crate) fn far() -> Option<&'static Far> {
    backing().and_then(HeapBacking::far)
}

/// Returns whether blocks are far at present.
pub(crate) fn is_far() -> bool {
    backing().is_some_and(|backing| match backing {
        HeapBacking::Near(_) => false,
        HeapBacking::Limited(limited) => limited.is_far(),
        HeapBacking::Far(_) => true,
    })
}

/// Returns whether the heap is on far memory, or may be at any time.
pub(crate) fn may_be_far() -> bool {
    backing().is_some_and(|backing| match backing {
        HeapBacking::Near(_) => false,
        HeapBacking::Limited(limited) => limit_state::is_watched() || limited.far().is_some(),
        HeapBacking::Far(_) => true,
    })
}

/// Makes a new heap visible to all threads.
pub(crate) fn set(backing: &'static HeapBacking, heap: &'static LargeHeap) {
    BACKING.store((&raw const *backing).cast_mut(), Ordering::Release);
    let (range, len) = heap.range();
    RANGE_START.store(range, Ordering::Relaxed);
    RANGE_LEN.store(len, Ordering::Relaxed);
    HEAP.store((&raw const *heap).cast_mut(), Ordering::Release);
}

/// Forgets the heap in a forked child whose only thread has no block of it.
pub(crate) fn forget() {
    HEAP.store(null_mut(), Ordering::Release);
    RANGE_LEN.store(0, Ordering::Relaxed);
}
