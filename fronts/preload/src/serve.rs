//! The one heap of the process: made at the first large request, reached by everything else.

use crate::errno::Errno;
use crate::ground::{Far, Ground};
use crate::guard::Inside;
use crate::wish::Wish;
use crate::{helper, next, record, refused, shortage, start};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use largesse_malloc::{Fill, LargeBlockHeap, Refused, ResizeError, Resized, Routing};
use largesse_report::{CAUSES, Cause};

pub(crate) type LargeHeap = LargeBlockHeap<Ground>;

/// Nothing is taken before the library has started.
pub(crate) static ROUTING: Routing = Routing::new(usize::MAX, usize::MAX, false);

/// Another allocator serves the blocks of this process ([`crate::allocator`]).
static MAPPINGS_ONLY: AtomicBool = AtomicBool::new(false);

static HEAP: AtomicPtr<LargeHeap> = AtomicPtr::new(null_mut());
static GROUND: AtomicPtr<Ground> = AtomicPtr::new(null_mut());
/// The heap's range, so that `free` needs no more than a comparison; empty without a heap.
static RANGE_START: AtomicUsize = AtomicUsize::new(0);
static RANGE_LEN: AtomicUsize = AtomicUsize::new(0);
/// Who has the right to make the heap.
static MAKING: AtomicU32 = AtomicU32::new(NOBODY);
const NOBODY: u32 = 0;
const MAKER: u32 = 1;
/// A thread that forks: there is no heap, and none may come meanwhile.
const FORKER: u32 = 2;
/// Causes noted before there is a heap to count them, or where its lock cannot be taken.
static EARLY_CAUSES: [AtomicU64; CAUSES] = [const { AtomicU64::new(0) }; CAUSES];

#[inline]
pub(crate) fn takes(size: usize) -> bool {
    ROUTING.takes(size)
}

/// Whether anything is taken: blocks and mappings, or mappings only.
pub(crate) fn is_enabled() -> bool {
    // Relaxed: set before the program starts.
    ROUTING.limits().2 || MAPPINGS_ONLY.load(Ordering::Relaxed)
}

/// Whether a mapping of `len` bytes is to be served.
pub(crate) fn takes_mapping(len: usize) -> bool {
    let (min, max, _) = ROUTING.limits();
    is_enabled() && (min..=max).contains(&len)
}

/// Serves the mappings of this process, and leaves its blocks to another allocator.
pub(crate) fn serve_mappings_only() {
    MAPPINGS_ONLY.store(true, Ordering::Relaxed);
}

/// Whether an address is in the heap's range.
// Relaxed: whoever holds a block of the range has it from a thread that saw the range.
#[inline]
pub(crate) fn owns(block: *mut c_void) -> bool {
    block.addr().wrapping_sub(RANGE_START.load(Ordering::Relaxed)) < RANGE_LEN.load(Ordering::Relaxed)
}

/// The heap, if one was made.
pub(crate) fn heap() -> Option<&'static LargeHeap> {
    // Acquire: pairs with the Release in `make`, so that the heap is whole.
    // SAFETY: a heap that was published lives for good.
    unsafe { HEAP.load(Ordering::Acquire).as_ref() }
}

/// The heap, made now if there is none yet.
pub(crate) fn heap_or_make() -> Option<&'static LargeHeap> {
    heap().or_else(make)
}

/// Counts a request that was served with less.
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

/// How often each cause occurred, wherever it was counted.
pub(crate) fn not_granted() -> [u64; CAUSES] {
    let _inside = Inside::enter();
    let mut counts = heap().map_or([0; CAUSES], |heap| heap.with_report(|report| report.not_granted));
    for (count, early) in counts.iter_mut().zip(&EARLY_CAUSES) {
        *count += early.load(Ordering::Relaxed);
    }
    counts
}

/// Counts in the heap's report what was noted before there was a heap: `largesse status` reads nothing else.
fn count_early(heap: &LargeHeap) {
    for (cause, early) in Cause::ALL.into_iter().zip(&EARLY_CAUSES) {
        (0..early.swap(0, Ordering::Relaxed)).for_each(|_| heap.note(cause));
    }
}

/// What the heap stands on.
pub(crate) fn ground() -> Option<&'static Ground> {
    // SAFETY: a ground that was published lives for good.
    unsafe { GROUND.load(Ordering::Acquire).as_ref() }
}

/// Far memory, if there is any.
pub(crate) fn far() -> Option<&'static Far> {
    ground().and_then(Ground::far)
}

/// A block, or `None` when the next allocator shall try.
#[cold]
pub(crate) fn allocate(size: usize, align: usize, fill: Fill) -> Option<*mut c_void> {
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    let heap = heap().or_else(make)?;
    let allocated = heap.allocate(size, align, fill);
    refused::say_new(heap);
    match allocated {
        Ok(block) => {
            helper::block_taken(&block);
            record::update();
            errno.put();
            Some(block.start.as_ptr().cast())
        }
        // A full store: what the next allocator has is not far, and would go beyond the limit.
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

/// `realloc` of a block of ours.
///
/// # Safety
/// `old` is a live block of ours that nobody else uses meanwhile.
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
        // It became small, or the range is full: the next allocator's turn.
        // SAFETY: no preconditions.
        None => (unsafe { next::malloc(size) }, usable(old)),
    };
    if !new.is_null() {
        // Not `Inside`: copying may take long, and handlers of the program run meanwhile.
        // SAFETY: the old block has `usable` bytes, the new one `size`; they are distinct.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), usable.min(size)) };
        free(old);
    }
    new
}

/// Resizes a block of ours, unless it must be copied. `None`: the heap has no memory for it.
///
/// # Safety
/// As [`resize`].
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

/// `realloc` of another allocator's block to a size that is ours.
///
/// # Safety
/// `old` is a live block of the next allocator that nobody else uses meanwhile.
#[cold]
pub(crate) unsafe fn adopt(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    let usable = unsafe { next::usable_size(old) };
    // A block that is large already stays where it is: its owner can resize it without copying.
    if !takes(usable)
        && let Some(new) = allocate(size, 16, Fill::Any)
    {
        if new.is_null() {
            return new; // refused: the old block stays as it is
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

/// Make the heap. Of several threads one makes it; the others let the next allocator serve them.
#[cold]
fn make() -> Option<&'static LargeHeap> {
    let _inside = Inside::enter();
    if !take_making(MAKER) {
        return None;
    }
    // Another thread may have made it since this one looked.
    let made = heap().or_else(make_alone);
    MAKING.store(NOBODY, Ordering::Release);
    made
}

fn make_alone() -> Option<&'static LargeHeap> {
    let Some((ground, heap)) = start::make_heap() else {
        note(Cause::RangeFull);
        ROUTING.enable(false); // there is no range: do not try at every request
        let why =
            shortage::with_limits("no address space for large blocks, the C library serves them".into());
        start::warn(&why);
        return None;
    };
    Some(made(ground, heap))
}

/// Make the heap on far memory, in a session that has none yet.
pub(crate) fn make_far(wish: &Wish) -> Result<(), String> {
    if !take_making(MAKER) {
        return Err("another thread asks for large memory at the same moment; try again".into());
    }
    let outcome = match ground() {
        Some(Ground::Far(_)) => Err("this session has far memory already, chosen when it started".into()),
        Some(Ground::Near(_)) => Err("this session has large blocks already; far memory is chosen \
            before the first one, or at the start: largesse run --local SIZE -- PROGRAM"
            .into()),
        None => match start::options().excluded_by_far() {
            Some((name, accepts)) => Err(format!("{name} is set; it accepts {accepts}")),
            None => start::make_far_heap(wish).map(|(ground, heap)| _ = made(ground, heap)),
        },
    };
    MAKING.store(NOBODY, Ordering::Release);
    outcome
}

/// From here on everybody finds the heap.
fn made(ground: &'static Ground, heap: &'static LargeHeap) -> &'static LargeHeap {
    GROUND.store((&raw const *ground).cast_mut(), Ordering::Release);
    let (range, len) = heap.range();
    RANGE_START.store(range, Ordering::Relaxed);
    RANGE_LEN.store(len, Ordering::Relaxed);
    HEAP.store((&raw const *heap).cast_mut(), Ordering::Release);
    count_early(heap);
    start::publish(heap);
    refused::say(heap);
    heap
}

fn take_making(who: u32) -> bool {
    // Acquire and Release: who makes the heap sees what the last one did.
    MAKING.compare_exchange(NOBODY, who, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Before a fork without a heap: none is made until [`fork_is_over`]. A thread that makes one holds locks
/// of the dynamic linker now and then, which a child would find taken for good. `false`: not now.
pub(crate) fn no_heap_while_forking() -> bool {
    take_making(FORKER)
}

/// After it, in parent and child.
pub(crate) fn fork_is_over() {
    // Relaxed: whoever is somebody else stays so.
    let _ = MAKING.compare_exchange(FORKER, NOBODY, Ordering::Release, Ordering::Relaxed);
}

/// In a forked child: a heap that another thread was about to make when nobody kept it will not be
/// finished. Whatever there is of it is forgotten; no block of it was handed out to this thread.
pub(crate) fn after_fork_without_heap() {
    HEAP.store(null_mut(), Ordering::Release);
    RANGE_LEN.store(0, Ordering::Relaxed);
    MAKING.store(NOBODY, Ordering::Release);
}

/// Leak a value into memory of its own.
pub(crate) fn keep<T>(value: T) -> Option<&'static T> {
    let at: NonNull<T> = largesse_pages::mapping_at(size_of::<T>())?.cast();
    // SAFETY: the mapping is page-aligned, large enough, and lives for good.
    unsafe {
        at.write(value);
        Some(at.as_ref())
    }
}
