//! The heap itself: its face, and what happens outside of the lock.

mod fork;
mod locked;
mod resize;

use crate::layout::{DataAlign, place};
use crate::records::Records;
use crate::sync::Lock;
use core::ptr::NonNull;
use locked::Inner;
use largesse_arena::{Arena, Backing, Colours, GRANULE, Granules, Retention, TakeError};
use largesse_pages::{SPAN, now_seconds};
use largesse_report::{BlockRecord, Cause, HeapReport};
pub use resize::{ResizeError, Resized};

/// What a heap is made with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes before the data of a block.
    pub header: usize,
    /// Where data start.
    pub data: DataAlign,
    /// How much free memory stays warm.
    pub retention: Retention,
}

/// What a block holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Anything.
    Any,
    /// Zeros.
    Zero,
}

/// A block that was handed out.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Where it starts.
    pub start: NonNull<u8>,
    /// Bytes of it whose first touch is still to be paid.
    pub cold_bytes: usize,
    /// Whether the heap is near a limit on the process's memory.
    pub near_limit: bool,
}

/// Nothing was handed out; the cause is counted in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address range is full, or the request is larger than any range.
    RangeFull,
    /// The kernel refused.
    NoMemory,
}

/// The address is inside the heap's range and is no live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotABlock(pub usize);

/// Large blocks over one backing.
#[derive(Debug)]
pub struct Heap<B: 'static> {
    backing: &'static B,
    start: usize,
    len: usize,
    header: usize,
    data: DataAlign,
    inner: Lock<Inner<B>>,
}

impl<B: Backing> Heap<B> {
    /// A heap over the whole of `backing`; `None` when there is no room for its tables.
    pub fn new(backing: &'static B, settings: Settings) -> Option<Heap<B>> {
        let len = backing.spans() * SPAN;
        let start = backing.start().as_ptr().addr();
        let arena = Arena::new(backing, settings.retention)?;
        let mut records = Records::new(len / crate::SMALLEST_MIN * 2)?;
        let report = records.report_mut();
        report.range_start = start as u64;
        report.range_len = len as u64;
        report.header = settings.header as u32;
        let inner =
            Inner { arena, records, colours: Colours::default(), last_decay: now_seconds(), seen: [0; _] };
        Some(Heap {
            backing,
            start,
            len,
            header: settings.header,
            data: settings.data,
            inner: Lock::new(inner),
        })
    }

    /// Whether an address lies in the heap's range.
    #[inline]
    #[must_use]
    pub fn owns(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.len
    }

    /// A block of `size` bytes whose start is a multiple of `align` (a power of two).
    pub fn allocate(&self, size: usize, align: usize, fill: Fill) -> Result<Block, Refused> {
        let now = now_seconds();
        let (start, at, granules, cold_bytes, near_limit) = self.inner.with(|inner| {
            inner.decay(now);
            let Some(place) = place(size, align, self.header, self.data, &mut inner.colours) else {
                return Err(inner.refuse(TakeError::RangeFull));
            };
            let (start, at, cold) = inner.take(place, size, fill, now)?;
            inner.update_sums();
            Ok((start, at, place.granules, cold, inner.arena.is_near_limit()))
        })?;
        if fill == Fill::Zero {
            self.clear(start, size, at, granules);
        }
        Ok(Block { start, cold_bytes, near_limit })
    }

    /// Give a block back.
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

    /// Bytes the owner of a block may use.
    pub fn usable(&self, address: usize) -> Result<usize, NotABlock> {
        self.inner.with(|inner| {
            let (at, ..) = inner.block(address)?;
            Ok(inner.usable(at, address))
        })
    }

    /// Give free memory beyond `keep` bytes back; returns how much that was.
    pub fn trim(&self, keep: usize) -> usize {
        self.inner.with(|inner| inner.arena.trim(keep))
    }

    /// Give back what nobody took for a while; to be called now and then when nothing else happens.
    pub fn tick(&self) {
        let now = now_seconds();
        self.inner.with(|inner| {
            inner.decay(now);
            inner.update_sums();
        });
    }

    /// Sets how many bytes the heap may hold before a limit on the process's memory could be reached: its
    /// resident bytes, and what is left of the limit.
    pub fn set_limit(&self, bytes: usize) {
        self.inner.with(|inner| inner.arena.set_limit(bytes));
    }

    /// Bytes that are left of the limit if every block is touched.
    pub fn room(&self) -> usize {
        self.inner.with(|inner| inner.arena.room())
    }

    /// Bytes from the start of the range that contain every block there ever was.
    pub fn used_range(&self) -> usize {
        self.inner.with(|inner| inner.arena.used_range())
    }

    /// Touch at most `spans` of the memory that requests will reach next; returns the bytes touched.
    pub fn prepare(&self, spans: usize) -> usize {
        let Some((first, count)) = self.inner.with(|inner| inner.arena.cold_ahead(spans)) else { return 0 };
        // A refusal is the backing's to count.
        if !self.backing.populate(first, count) {
            return 0;
        }
        self.inner.with(|inner| {
            inner.arena.warmed(first, count);
            inner.records.counters().populated_bytes += (count * SPAN) as u64;
        });
        count * SPAN
    }

    /// Whether the calling thread is a signal handler that interrupted a call of this heap in the same thread, so that every
    /// call that it makes itself would wait for good.
    pub fn is_interrupted(&self) -> bool {
        self.inner.is_mine()
    }

    /// Count a request that was served with less.
    pub fn note(&self, cause: Cause) {
        self.inner.with(|inner| inner.records.note(cause));
    }

    /// Change the report's settings.
    pub fn edit_report(&self, f: impl FnOnce(&mut HeapReport)) {
        self.inner.with(|inner| f(inner.records.report_mut()));
    }

    /// Start and length of the range that every block lies in.
    pub fn range(&self) -> (usize, usize) {
        (self.start, self.len)
    }

    /// Where the report lies, for readers in other processes.
    pub fn report_address(&self) -> usize {
        self.inner.with(|inner| (&raw const *inner.records.report()).addr())
    }

    /// Look at the report, with its sums brought up to date.
    pub fn with_report<R>(&self, f: impl FnOnce(&HeapReport) -> R) -> R {
        self.inner.with(|inner| {
            inner.update_sums();
            f(inner.records.report())
        })
    }

    /// Call `f` for each live block, in no order. `f` must not use the heap.
    pub fn each_block(&self, mut f: impl FnMut(BlockRecord)) {
        self.inner.with(|inner| inner.records.iter().for_each(&mut f));
    }

    /// Clear what may hold anything but zero.
    fn clear(&self, start: NonNull<u8>, size: usize, at: Granules, granules: Granules) {
        let mut from = at;
        let mut cleared = 0;
        let base = start.as_ptr().addr();
        while let Some(run) = self.inner.with(|inner| inner.arena.dirty_run(from..at + granules)) {
            let extent = self.inner.with(|inner| inner.arena.address(run.start)).as_ptr().addr();
            let low = extent.max(base);
            let high = (extent + run.len() * GRANULE).min(base + size);
            if low < high {
                // SAFETY: `low..high` is inside the block, which nobody else knows yet.
                unsafe { start.add(low - base).write_bytes(0, high - low) };
                cleared += high - low;
            }
            from = run.end;
        }
        self.inner.with(|inner| inner.records.counters().clear_skipped_bytes += (size - cleared) as u64);
    }
}
