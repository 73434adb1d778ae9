//! Defines the heap's interface, and does the work outside of its lock.

mod change_over;
mod fork;
mod locked;
mod request;
mod resize;

use crate::layout::{DataAlign, layout};
use crate::records::Records;
use crate::sync::HeapLock;
use core::ptr::NonNull;
use largesse_arena::{Arena, Backing, Colours, GRANULE, Granules, Prefer, Retention, TakeError};
use largesse_pages::{SPAN, now_seconds};
use largesse_report::{BlockRecord, Cause, HeapReport};
use locked::LockedHeap;
pub use request::{Fill, NotABlock, Refused};
pub use resize::{ResizeError, Resized};

/// The settings of a heap.
#[derive(Clone, Copy, Debug)]
pub struct LargeHeapSettings {
    /// Number of bytes before the data of a block.
    pub header: usize,
    /// Alignment of the data behind the header.
    pub data: DataAlign,
    /// Bound on the free memory that is kept for reuse.
    pub retention: Retention,
}

/// A block that was allocated just now.
#[derive(Clone, Copy, Debug)]
pub struct HeapBlock {
    /// Address of the block.
    pub start: NonNull<u8>,
    /// Number of the block's bytes whose first touch is still to be paid.
    pub cold_bytes: usize,
    /// Whether the heap is near the process's memory limit.
    pub near_limit: bool,
}

/// Allocates large blocks over one backing.
#[derive(Debug)]
pub struct LargeBlockHeap<B: 'static> {
    backing: &'static B,
    start: usize,
    len: usize,
    header: usize,
    data: DataAlign,
    inner: HeapLock<LockedHeap<B>>,
}

impl<B: Backing> LargeBlockHeap<B> {
    /// Creates a heap over the whole of `backing`, or returns `None` if its tables cannot be mapped.
    pub fn new(backing: &'static B, settings: LargeHeapSettings) -> Option<LargeBlockHeap<B>> {
        let len = backing.spans() * SPAN;
        let start = backing.start().as_ptr().addr();
        let arena = Arena::new(backing, settings.retention)?;
        let mut records = Records::new(len / crate::SMALLEST_MIN * 2)?;
        let report = records.report_mut();
        report.range_start = start as u64;
        report.range_len = len as u64;
        report.header = settings.header as u32;
        let inner = LockedHeap {
            arena,
            records,
            colours: Colours::default(),
            last_decay: now_seconds(),
            seen: [0; _],
        };
        Some(LargeBlockHeap {
            backing,
            start,
            len,
            header: settings.header,
            data: settings.data,
            inner: HeapLock::new(inner),
        })
    }

    /// Returns whether an address lies in the heap's range.
    #[inline]
    #[must_use]
    pub fn owns(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len
    }

    /// Allocates a block of `size` bytes whose start is a multiple of `align` (a power of two).
    pub fn allocate(&self, size: usize, align: usize, fill: Fill) -> Result<HeapBlock, Refused> {
        self.allocate_in(Prefer::Warm, size, align, fill)
    }

    /// As [`allocate`](Self::allocate), for a block of which much may never be touched: it gets small pages, unless the
    /// memory for it has pages already.
    pub fn allocate_sparse(&self, size: usize, align: usize, fill: Fill) -> Result<HeapBlock, Refused> {
        self.allocate_in(Prefer::Sparse, size, align, fill)
    }

    fn allocate_in(
        &self,
        prefer: Prefer,
        size: usize,
        align: usize,
        fill: Fill,
    ) -> Result<HeapBlock, Refused> {
        let now = now_seconds();
        let (start, at, granules, cold_bytes, near_limit) = self.inner.with(|inner| {
            inner.decay(now);
            let Some(layout) = layout(size, align, self.header, self.data, &mut inner.colours) else {
                return Err(inner.refuse(TakeError::RangeFull));
            };
            let (start, at, cold) = inner.take(prefer, layout, size, fill, now)?;
            inner.update_sums();
            Ok((start, at, layout.granules, cold, inner.arena.is_near_limit()))
        })?;
        if fill == Fill::Zero {
            self.clear(start, size, at, granules);
        }
        Ok(HeapBlock { start, cold_bytes, near_limit })
    }

    /// Frees a block.
    pub fn free(&self, address: usize) -> Result<(), NotABlock> {
        let now = now_seconds();
        self.inner.with(|inner| {
            let (at, slot, record) = inner.block(address)?;
            inner.records.remove(slot);
            inner.drop_extent(at, &record, now);
            inner.decay(now);
            inner.update_sums();
            Ok(())
        })
    }

    /// Returns the number of bytes that the owner of a block may use.
    pub fn usable(&self, address: usize) -> Result<usize, NotABlock> {
        self.inner.with(|inner| {
            let (at, ..) = inner.block(address)?;
            Ok(inner.usable(at, address))
        })
    }

    /// Gives free memory beyond `keep` bytes back to the kernel. Returns the number of bytes given back.
    pub fn trim(&self, keep: usize) -> usize {
        self.inner.with(|inner| inner.arena.trim(keep))
    }

    /// Gives memory that was free for a while back to the kernel. The caller calls this now and then while the heap is
    /// idle.
    pub fn tick(&self) {
        let now = now_seconds();
        self.inner.with(|inner| {
            inner.decay(now);
            inner.update_sums();
        });
    }

    /// Sets the number of bytes that the heap may hold before the process could reach its memory limit: the heap's
    /// resident bytes plus what is left of the limit.
    pub fn set_limit(&self, bytes: usize) {
        self.inner.with(|inner| inner.arena.set_limit(bytes));
    }

    /// Gives small pages to blocks below two spans until `spans` spans are in use, and large pages to later ones.
    pub fn start_on_small_pages(&self, spans: usize) {
        self.inner.with(|inner| inner.arena.start_on_small_pages(spans));
    }

    /// Returns the first span at or after `from` that is in use and on small pages, counted from the start of the range.
    pub fn small_span_from(&self, from: usize) -> Option<usize> {
        self.inner.with(|inner| inner.arena.small_span_from(from))
    }

    /// Records that the kernel has put the contents of a span on a large page, counted from the start of the range.
    pub fn became_large(&self, span: usize) {
        self.inner.with(|inner| inner.became_large(span));
    }

    /// Lowers the memory limit to the part `1 / sharers` of the room that is left, because other processes use that, too.
    pub fn share_limit(&self, sharers: usize) {
        self.inner.with(|inner| inner.arena.share_limit(sharers));
    }

    /// Returns the number of bytes that would be left of the memory limit if every block were touched.
    pub fn room(&self) -> usize {
        self.inner.with(|inner| inner.arena.room())
    }

    /// Returns the length in bytes of the part of the range, from its start, that contains every block ever allocated.
    pub fn used_range(&self) -> usize {
        self.inner.with(|inner| inner.arena.used_range())
    }

    /// Populates at most `spans` spans of the memory that requests will use next. Returns the number of bytes
    /// populated.
    pub fn prepare(&self, spans: usize) -> usize {
        let Some((first, count)) = self.inner.with(|inner| inner.arena.cold_ahead(spans)) else { return 0 };
        // The backing counts its refusals.
        if !self.backing.populate(first, count) {
            return 0;
        }
        self.inner.with(|inner| {
            inner.arena.warmed(first, count);
            inner.records.counters().populated_bytes += (count * SPAN) as u64;
        });
        count * SPAN
    }

    /// Returns whether the calling thread is a signal handler that interrupted a call of this heap in the same thread,
    /// so that any call of its own would deadlock.
    pub fn is_interrupted(&self) -> bool {
        self.inner.is_mine()
    }

    /// Counts a request that was served with less than it asked for.
    pub fn note(&self, cause: Cause) {
        self.inner.with(|inner| inner.records.note(cause));
    }

    /// Changes the report's settings.
    pub fn edit_report(&self, f: impl FnOnce(&mut HeapReport)) {
        self.inner.with(|inner| f(inner.records.report_mut()));
    }

    /// Returns the start and length in bytes of the range that contains every block.
    pub fn range(&self) -> (usize, usize) {
        (self.start, self.len)
    }

    /// Returns the address of the report, for readers in other processes.
    pub fn report_address(&self) -> usize {
        self.inner.with(|inner| (&raw const *inner.records.report()).addr())
    }

    /// Calls `f` with the report, after updating its sums.
    pub fn with_report<R>(&self, f: impl FnOnce(&HeapReport) -> R) -> R {
        self.inner.with(|inner| {
            inner.update_sums();
            f(inner.records.report())
        })
    }

    /// Calls `f` for each live block, in no order. `f` must not use the heap.
    pub fn each_block(&self, mut f: impl FnMut(BlockRecord)) {
        self.inner.with(|inner| inner.records.iter().for_each(&mut f));
    }

    /// Clears a new block, except the granules that are known to be zero.
    fn clear(&self, start: NonNull<u8>, size: usize, at: Granules, granules: Granules) {
        let mut from = at;
        let mut cleared = 0;
        let base = start.as_ptr().addr();
        while let Some(run) = self.inner.with(|inner| inner.arena.dirty_run(from..at + granules)) {
            let extent = self.inner.with(|inner| inner.arena.address(run.start)).as_ptr().addr();
            let low = extent.max(base);
            let high = (extent + run.len() * GRANULE).min(base + size);
            if low < high {
                // SAFETY: `low..high` is inside the block, which no other code knows yet.
                unsafe { start.add(low - base).write_bytes(0, high - low) };
                cleared += high - low;
            }
            from = run.end;
        }
        self.inner.with(|inner| inner.records.counters().clear_skipped_bytes += (size - cleared) as u64);
    }
}
