//! Serves small blocks from the range of the heap, once memory is far or may become far.
//!
//! The C library's own small blocks come from `brk`, which far memory cannot have (`docs/design/limit.md`). Allocating
//! and freeing take no lock and block no signals, unless a span of 2 MiB is needed or returned.

use crate::errno::Errno;
use crate::guard::Inside;
use crate::heap::{self, heap};
use crate::message::die;
use crate::options::Options;
use crate::routing::ROUTING;
use crate::slots::object;
use crate::small_cache::{self, cache};
use crate::small_heap::{self, small};
use crate::{callers, record, refused, shortage, spill};
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use largesse_malloc::{Fill, LARGEST_SMALL, NotABlock, SmallHeap};
use largesse_pages::SPAN;

/// Begins to serve small blocks from the heap's range if the settings say so. Only a library that was loaded before the
/// C library sees every `free`.
pub(crate) fn begin(options: &Options) {
    let Some(heap) = heap().filter(|_| options.small_blocks && cfg!(target_arch = "x86_64")) else { return };
    if small().is_some() || !object::is_preloaded() {
        return;
    }
    let (start, len) = heap.range();
    let Some(made) = SmallHeap::new(start, len) else { return };
    if !small_cache::prepare() {
        return;
    }
    callers::prepare();
    small_heap::set(Box::leak(Box::new(made)));
    ROUTING.accept_small();
}

/// Returns whether small blocks are served.
pub(crate) fn is_on() -> bool {
    small().is_some()
}

/// Returns whether a request that the library takes is for a small block.
#[inline]
pub(crate) fn serves(size: usize, align: usize) -> bool {
    size <= LARGEST_SMALL && align <= LARGEST_SMALL && small().is_some()
}

/// Allocates a small block; returns `None` if the next allocator is to serve the request.
#[inline]
pub(crate) fn allocate(size: usize, align: usize, fill: Fill) -> Option<*mut c_void> {
    let small = small()?;
    let block = small.allocate(cache()?, size, align, || new_span(small.spans() < SPARSE_SPANS));
    match block {
        Some(block) => {
            if fill == Fill::Zero && !block.is_zero {
                // SAFETY: the block has at least `size` bytes, and no other code has its address yet.
                unsafe { block.start.write_bytes(0, size) };
            }
            Some(block.start.as_ptr().cast())
        }
        None => refuse(size),
    }
}

/// Answers a request for which there is no memory, as `serve::allocate` does.
#[cold]
fn refuse(size: usize) -> Option<*mut c_void> {
    heap::is_far().then(|| {
        shortage::explain(size);
        Errno(libc::ENOMEM).put();
        null_mut()
    })
}

/// Number of spans of small blocks up to which new ones get small pages. A program with few small blocks has them in
/// many size classes, whose slabs are mostly empty. On large pages these took 10 MiB of a Python that had imported
/// NumPy.
const SPARSE_SPANS: usize = 4;

/// Returns a span that reads as zero.
#[cold]
fn new_span(is_sparse: bool) -> Option<NonNull<u8>> {
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    let heap = heap()?;
    let span = match is_sparse {
        true => heap.allocate_sparse(SPAN, SPAN, Fill::Zero),
        false => heap.allocate(SPAN, SPAN, Fill::Zero),
    };
    refused::report_new(heap);
    let span = span.ok()?;
    spill::before_use(heap);
    note();
    record::update();
    errno.put();
    Some(span.start)
}

/// Frees a block in the heap's range; returns `false` if it is a large one.
#[inline]
pub(crate) fn free(block: *mut c_void) -> bool {
    let Some(small) = small().filter(|small| small.owns(block.addr())) else { return false };
    match small.free(small_cache::present(), block.addr()) {
        Ok(false) => {}
        Ok(true) => reclaim(),
        Err(NotABlock(_)) => die(&["free(): not a block of this heap, or freed twice"]),
    }
    true
}

/// Returns the number of bytes that the owner of a block in the heap's range may use; `None` if it is a large one.
pub(crate) fn usable(block: *mut c_void) -> Option<usize> {
    let small = small().filter(|small| small.owns(block.addr()))?;
    match small.usable(block.addr()) {
        Ok(usable) => Some(usable),
        Err(NotABlock(_)) => die(&["not a block of this heap, or a freed one"]),
    }
}

/// Returns spans without blocks to the heap of large blocks.
#[cold]
pub(crate) fn reclaim() {
    let (Some(small), Some(heap)) = (small(), heap()) else { return };
    let _inside = Inside::enter_heap();
    let errno = Errno::save();
    small.reclaim(|span| {
        if heap.free(span.as_ptr().addr()).is_err() {
            die(&["a span of small blocks is not a block of the heap"]);
        }
    });
    note();
    record::update();
    errno.put();
}

/// Returns spans without blocks now and then while the program frees few, and updates the report.
pub(crate) fn tick() {
    if small().is_some_and(SmallHeap::has_emptied) {
        reclaim();
    } else {
        note();
    }
}

/// Notes in the heap's report how many bytes small blocks take.
pub(crate) fn note() {
    if let (Some(small), Some(heap)) = (small(), heap()) {
        let bytes = small.slab_bytes() as u64;
        heap.edit_report(|report| report.small_bytes = bytes);
    }
}

/// Locks the heap before `fork`, in the thread that then locks the heap of large blocks.
pub(crate) fn before_fork() {
    small().inspect(|small| small.before_fork());
}

/// Unlocks the heap after `fork`, in the parent.
pub(crate) fn after_fork_in_parent() {
    small().inspect(|small| small.after_fork_in_parent());
}

/// Unlocks the heap in a forked child, and takes what the parent's other threads had cached.
pub(crate) fn after_fork_in_child() {
    if let Some(small) = small() {
        small.after_fork_in_child();
        small_cache::return_others(small);
    }
}
