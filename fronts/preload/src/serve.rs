//! Holds the heap of the process, which is made at the first large request, and serves requests from it.

use crate::backing::{Far, HeapBacking};
use crate::errno::Errno;
use crate::far_config::FarConfig;
use crate::guard::Inside;
use crate::{helper, next, record, refused, shortage, start};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use largesse_malloc::{Fill, LargeBlockHeap, Refused, ResizeError, Resized, Routing};
use largesse_report::{CAUSES, Cause};

pub(crate) type LargeHeap = LargeBlockHeap<HeapBacking>;

/// Holds the bounds of the sizes that the heap serves; none is served before the library has started.
pub(crate) static ROUTING: Routing = Routing::new(usize::MAX, usize::MAX, false);

/// Whether another allocator serves the blocks of this process ([`crate::allocator`]).
static MAPPINGS_ONLY: AtomicBool = AtomicBool::new(false);

static HEAP: AtomicPtr<LargeHeap> = AtomicPtr::new(null_mut());
static BACKING: AtomicPtr<HeapBacking> = AtomicPtr::new(null_mut());
/// The heap's range starts here, so that `free` needs only a comparison.
static RANGE_START: AtomicUsize = AtomicUsize::new(0);
/// The heap's range has this many bytes, 0 without a heap.
static RANGE_LEN: AtomicUsize = AtomicUsize::new(0);
/// Tells whether a thread makes the heap, or forbids that: [`UNCLAIMED`], [`MAKER`] or [`FORKER`].
static MAKING: AtomicU32 = AtomicU32::new(UNCLAIMED);
const UNCLAIMED: u32 = 0;
const MAKER: u32 = 1;
/// [`MAKING`] has this value while a thread forks without a heap: no other thread may make one.
const FORKER: u32 = 2;
/// Counts causes that occurred without a heap, or where its lock could not be taken.
static EARLY_CAUSES: [AtomicU64; CAUSES] = [const { AtomicU64::new(0) }; CAUSES];

#[inline]
pub(crate) fn takes(size: usize) -> bool {
    ROUTING.takes(size)
}

/// Returns whether the library serves anything: blocks and mappings, or mappings only.
pub(crate) fn is_enabled() -> bool {
    // Relaxed: set before the program starts.
    ROUTING.limits().2 || MAPPINGS_ONLY.load(Ordering::Relaxed)
}

/// Returns whether a mapping of `len` bytes is to be served.
pub(crate) fn takes_mapping(len: usize) -> bool {
    let (min, max, _) = ROUTING.limits();
    is_enabled() && (min..=max).contains(&len)
}

/// Makes the library serve the mappings of this process only, since another allocator serves its blocks.
pub(crate) fn serve_mappings_only() {
    MAPPINGS_ONLY.store(true, Ordering::Relaxed);
}

/// Returns whether an address is in the heap's range.
// Relaxed: a thread gets a block of the range only from one that saw the range.
#[inline]
pub(crate) fn owns(block: *mut c_void) -> bool {
    block.addr().wrapping_sub(RANGE_START.load(Ordering::Relaxed)) < RANGE_LEN.load(Ordering::Relaxed)
}

/// Returns the heap, if one was made.
pub(crate) fn heap() -> Option<&'static LargeHeap> {
    // Acquire: pairs with the Release in `publish`, so that the heap is initialised.
    // SAFETY: a published heap is never freed.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// Returns the heap, and makes it if there is none yet.
pub(crate) fn heap_or_make() -> Option<&'static LargeHeap> {
    heap().or_else(make)
}

/// Counts a request that was granted less than it asked for.
pub(crate) fn note(cause: Cause) {
    match heap() {
        Some(heap) if !heap.is_interrupted() => {
            let _inside = Inside::enter_heap();
            heap.note(cause);
        }
        // Relaxed: a statistic.
        _ => _ = EARLY_CAUSES[cause as usize].fetch_add(1, Ordering::Relaxed),
    }
}

/// Returns the number of times that each cause occurred, with and without a heap.
pub(crate) fn not_granted() -> [u64; CAUSES] {
    let _inside = Inside::enter();
    let mut counts = heap().map_or([0; CAUSES], |heap| heap.with_report(|report| report.not_granted));
    for (count, early) in counts.iter_mut().zip(&EARLY_CAUSES) {
        *count += early.load(Ordering::Relaxed);
    }
    counts
}

/// Adds causes that occurred without a heap to the heap's report, the only place where `largesse status` reads them.
fn count_early(heap: &LargeHeap) {
    for (cause, early) in Cause::ALL.into_iter().zip(&EARLY_CAUSES) {
        (0..early.swap(0, Ordering::Relaxed)).for_each(|_| heap.note(cause));
    }
}

/// Returns the heap's backing, if there is a heap.
pub(crate) fn backing() -> Option<&'static HeapBacking> {
    // SAFETY: a published backing is never freed.
    unsafe { BACKING.load(Ordering::Acquire).as_ref() }
}

/// Returns far memory, if there is any.
pub(crate) fn far() -> Option<&'static Far> {
    backing().and_then(HeapBacking::far)
}

/// Allocates a block; returns `None` if the next allocator shall try.
#[cold]
pub(crate) fn allocate(size: usize, align: usize, fill: Fill) -> Option<*mut c_void> {
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    let heap = heap().or_else(make)?;
    let allocated = heap.allocate(size, align, fill);
    refused::report_new(heap);
    match allocated {
        Ok(block) => {
            helper::block_taken(&block);
            record::update();
            errno.put();
            Some(block.start.as_ptr().cast())
        }
        // The store is full, and memory of the next allocator, which is not far, would exceed the limit.
        Err(_) if far().is_some() => {
            shortage::explain(size);
            Errno(libc::ENOMEM).put();
            Some(null_mut())
        }
        Err(_) => None,
    }
}

#[cold]
pub(crate) fn free(block: *mut c_void) {
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    record::before_free();
    if let Some(heap) = heap()
        && heap.free(block.addr()).is_err()
    {
        start::die(&["free(): not a block of this heap, or freed twice"]);
    }
    record::update();
    errno.put();
}

pub(crate) fn usable(block: *mut c_void) -> usize {
    let _inside = Inside::enter_heap();
    match heap().map(|heap| heap.usable(block.addr())) {
        Some(Ok(usable)) => usable,
        _ => start::die(&["malloc_usable_size(): not a block of this heap"]),
    }
}

pub(crate) fn trim(keep: usize) -> usize {
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
    let (min, ..) = ROUTING.limits();
    // SAFETY: the caller's promise.
    let resized = if size >= min / 2 { unsafe { resize_without_copying(old, size) } } else { None };
    let (new, usable) = match resized {
        Some(Resized::Done(block)) => return block.start.as_ptr().cast(),
        Some(Resized::Copy { to, usable }) => (to.start.as_ptr().cast(), usable),
        // It became small, or the range is full, so the next allocator serves it.
        // SAFETY: no preconditions.
        None => (unsafe { next::malloc(size) }, usable(old)),
    };
    if !new.is_null() {
        // Without `Inside`, so that handlers of the program can run during a long copy.
        // SAFETY: the old block has `usable` bytes, the new one `size`; they are distinct.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), usable.min(size)) };
        free(old);
    }
    new
}

/// Resizes a block of the heap, unless it must be copied; returns `None` if the heap has no memory for it.
///
/// # Safety
/// The requirements are those of [`resize`].
unsafe fn resize_without_copying(old: *mut c_void, size: usize) -> Option<Resized> {
    let _inside = Inside::enter_heap();
    let Some(heap) = heap() else { start::die(&["realloc(): not a block of this heap"]) };
    // SAFETY: the caller's promise.
    match unsafe { heap.resize_without_copying(old.addr(), size) } {
        Ok(resized) => {
            record::update();
            Some(resized)
        }
        Err(ResizeError::NotABlock(_)) => start::die(&["realloc(): not a block of this heap"]),
        Err(ResizeError::Refused(Refused::RangeFull | Refused::NoMemory)) => None,
    }
}

/// Implements `realloc` of the next allocator's block to a size that the heap serves.
///
/// # Safety
/// `old` must be a live block of the next allocator that no other thread uses during the call.
#[cold]
pub(crate) unsafe fn adopt(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let usable = unsafe { next::usable_size(old) };
    // A block that is large already is left to its allocator, which can resize it without copying.
    if !takes(usable)
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

/// Makes the heap in one of several threads; returns `None` in the others, which the next allocator serves.
#[cold]
fn make() -> Option<&'static LargeHeap> {
    let _inside = Inside::enter();
    if !claim_making(MAKER) {
        return None;
    }
    // Another thread may have made it since this one checked.
    let made = heap().or_else(make_alone);
    MAKING.store(UNCLAIMED, Ordering::Release);
    made
}

fn make_alone() -> Option<&'static LargeHeap> {
    let Some((backing, heap)) = start::make_heap() else {
        note(Cause::RangeFull);
        ROUTING.enable(false); // later requests would not find a range either
        let why =
            shortage::with_limits("no address space for large blocks, the C library serves them".into());
        start::warn(&why);
        return None;
    };
    Some(publish(backing, heap))
}

/// Makes the heap on far memory in a session that has no heap yet; otherwise returns a message for the user.
pub(crate) fn make_far(config: &FarConfig) -> Result<(), String> {
    if !claim_making(MAKER) {
        return Err("another thread requests a large block at this moment; try again".into());
    }
    let outcome = match backing() {
        Some(HeapBacking::Far(_)) => {
            Err("this session has far memory already, chosen when it started".into())
        }
        Some(HeapBacking::Near(_)) => Err("this session has large blocks already; far memory is chosen \
            before the first one, or at the start: largesse run --local SIZE -- PROGRAM"
            .into()),
        None => match start::options().excluded_by_far() {
            Some((name, accepts)) => Err(format!("{name} is set; it accepts {accepts}")),
            None => start::make_far_heap(config).map(|(backing, heap)| _ = publish(backing, heap)),
        },
    };
    MAKING.store(UNCLAIMED, Ordering::Release);
    outcome
}

/// Makes a new heap visible to all threads and to `largesse status`.
fn publish(backing: &'static HeapBacking, heap: &'static LargeHeap) -> &'static LargeHeap {
    BACKING.store((&raw const *backing).cast_mut(), Ordering::Release);
    let (range, len) = heap.range();
    RANGE_START.store(range, Ordering::Relaxed);
    RANGE_LEN.store(len, Ordering::Relaxed);
    HEAP.store((&raw const *heap).cast_mut(), Ordering::Release);
    count_early(heap);
    start::publish(heap);
    refused::report(heap);
    heap
}

fn claim_making(claim: u32) -> bool {
    // Acquire and Release: the thread that makes the heap sees the stores of the last one that claimed it.
    MAKING.compare_exchange(UNCLAIMED, claim, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Forbids making a heap before a fork, until [`fork_is_over`]; returns `false` while a thread makes one. That thread
/// may hold locks of the dynamic linker, which would never be released in the child.
pub(crate) fn forbid_heap() -> bool {
    claim_making(FORKER)
}

/// Allows making a heap again, in parent and child.
pub(crate) fn fork_is_over() {
    // Relaxed: a claim that is not the forking thread's is not changed.
    let _ = MAKING.compare_exchange(FORKER, UNCLAIMED, Ordering::Release, Ordering::Relaxed);
}

/// Forgets, in a forked child, a heap that another thread was about to make without [`forbid_heap`]. It will not be
/// finished, and this thread has no block of it.
pub(crate) fn after_fork_without_heap() {
    HEAP.store(null_mut(), Ordering::Release);
    RANGE_LEN.store(0, Ordering::Relaxed);
    MAKING.store(UNCLAIMED, Ordering::Release);
}

/// Moves a value into a mapping of its own, which is never freed.
pub(crate) fn leak<T>(value: T) -> Option<&'static T> {
    let at: NonNull<T> = largesse_pages::mapping_at(size_of::<T>())?.cast();
    // SAFETY: the mapping is page-aligned, large enough, and never freed.
    unsafe {
        at.write(value);
        Some(at.as_ref())
    }
}
