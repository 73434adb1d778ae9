//! The heap itself.

use crate::layout::{DataAlign, Place, place};
use crate::records::Records;
use crate::sync::Lock;
use core::ptr::NonNull;
use largesse_arena::{
    Arena, Backing, Colours, GRANULE, Granules, PER_SPAN, Prefer, Request, Retention, SpanKind, TakeError,
};
use largesse_pages::{MapError, SPAN, now_seconds};
use largesse_report::{BlockRecord, Cause, Kind, Report};

/// Blocks from here on may be grown by moving pages instead of bytes.
const MOVE_FROM: usize = 2 * SPAN;
/// A cleared block from here on is looked at when it is freed: much of it may never have been touched.
const INSPECT_FROM: usize = 2 * SPAN;

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

#[derive(Debug)]
struct Inner<B: 'static> {
    arena: Arena<&'static B>,
    records: Records,
    colours: Colours,
    last_decay: u32,
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
        let inner = Inner { arena, records, colours: Colours::default(), last_decay: now_seconds() };
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
        let (start, at, granules, cold_bytes) = self.inner.with(|inner| {
            inner.decay(now);
            let Some(place) = place(size, align, self.header, self.data, &mut inner.colours) else {
                return Err(inner.refuse(TakeError::RangeFull));
            };
            let (start, at, cold) = inner.take(place, size, fill, now)?;
            inner.update_sums();
            Ok((start, at, place.granules, cold))
        })?;
        if fill == Fill::Zero {
            self.clear(start, size, at, granules);
        }
        Ok(Block { start, cold_bytes })
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

    /// Make a block larger or smaller; returns where it is now. On refusal the block is as it was.
    ///
    /// # Safety
    /// `address` is a live block of this heap that nobody else uses meanwhile.
    pub unsafe fn resize(&self, address: usize, size: usize) -> Result<Block, ResizeError> {
        let now = now_seconds();
        let step = self.inner.with(|inner| inner.resize_in_place_or_move(address, size, now))?;
        let (old_usable, same) = match step {
            Step::Done(block) => return Ok(block),
            Step::Copy { usable } => (usable, address),
        };
        let block = self.allocate(size, 1, Fill::Any).map_err(ResizeError::Refused)?;
        let old = core::ptr::with_exposed_provenance::<u8>(same);
        // SAFETY: the old block has `old_usable` bytes, the new one `size`; both are live and distinct.
        unsafe { block.start.as_ptr().copy_from_nonoverlapping(old, old_usable.min(size)) };
        self.free(address).map_err(ResizeError::NotABlock)?;
        Ok(block)
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
        self.inner.with(|inner| inner.decay(now));
    }

    /// Touch at most `spans` of the memory that requests will reach next; returns the bytes touched.
    pub fn prepare(&self, spans: usize) -> usize {
        let Some((first, count)) = self.inner.with(|inner| inner.arena.cold_ahead(spans)) else { return 0 };
        if !self.backing.populate(first, count) {
            self.note(Cause::PopulateRefused);
            return 0;
        }
        self.inner.with(|inner| {
            inner.arena.warmed(first, count);
            inner.records.counters().populated_bytes += (count * SPAN) as u64;
        });
        count * SPAN
    }

    /// Count a request that was served with less.
    pub fn note(&self, cause: Cause) {
        self.inner.with(|inner| inner.records.note(cause));
    }

    /// Change the report's settings.
    pub fn edit_report(&self, f: impl FnOnce(&mut Report)) {
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
    pub fn with_report<R>(&self, f: impl FnOnce(&Report) -> R) -> R {
        self.inner.with(|inner| {
            inner.update_sums();
            f(inner.records.report())
        })
    }

    /// Call `f` for each live block, in no order. `f` must not use the heap.
    pub fn each_block(&self, mut f: impl FnMut(BlockRecord)) {
        self.inner.with(|inner| inner.records.iter().for_each(&mut f));
    }

    /// Before `fork`: nobody is inside the heap until one of the two calls below.
    pub fn before_fork(&self) {
        self.inner.keep_across_fork();
    }

    /// After `fork`, in the parent.
    pub fn after_fork_in_parent(&self) {
        self.inner.release_after_fork();
    }

    /// After `fork`, in the child, whose only thread calls.
    pub fn after_fork_in_child(&self) {
        self.inner.reset();
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

/// Why a block was not resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeError {
    /// No memory for the new size.
    Refused(Refused),
    /// There is no such block.
    NotABlock(NotABlock),
}

impl From<NotABlock> for ResizeError {
    fn from(error: NotABlock) -> ResizeError {
        ResizeError::NotABlock(error)
    }
}

enum Step {
    Done(Block),
    Copy { usable: usize },
}

impl<B: Backing> Heap<B> {
    /// In a forked child: blocks on hugetlb pages move to ordinary ones. A write to a shared hugetlb
    /// page needs a free one of the pool, and the child is killed when there is none. `demote` moves
    /// so many spans from a first one on; only this thread exists.
    pub fn demote_in_child(&self, mut demote: impl FnMut(usize, usize) -> Result<(), MapError>) {
        self.inner.with(|inner| {
            for kind in [SpanKind::Hugetlb, SpanKind::Hugetlb1G] {
                while let Some((first, spans)) = inner.arena.first_run_of(kind) {
                    if demote(first, spans).is_err() {
                        // Leave the rest: a write may still succeed, and there is nobody to tell.
                        inner.records.note(Cause::OutOfMemory);
                        return;
                    }
                    inner.arena.rekind(first, spans, SpanKind::Thp);
                    inner.records.note(Cause::DemotedInChild);
                }
            }
            inner.records.rekind(Kind::Hugetlb, Kind::Thp);
        });
    }

    /// Whether any memory is on pages of a pool (and a fork has to demote it).
    pub fn has_pool_pages(&self) -> bool {
        self.inner.with(|inner| {
            [SpanKind::Hugetlb, SpanKind::Hugetlb1G]
                .into_iter()
                .any(|kind| inner.arena.first_run_of(kind).is_some())
        })
    }
}

impl<B: Backing> Inner<B> {
    fn decay(&mut self, now: u32) {
        if now != self.last_decay {
            self.last_decay = now;
            self.arena.decay(now);
        }
    }

    fn refuse(&mut self, error: TakeError) -> Refused {
        let (cause, refused) = match error {
            TakeError::RangeFull => (Cause::RangeFull, Refused::RangeFull),
            TakeError::NoMemory(_) => (Cause::OutOfMemory, Refused::NoMemory),
        };
        self.records.note(cause);
        refused
    }

    fn take(
        &mut self,
        place: Place,
        size: usize,
        fill: Fill,
        now: u32,
    ) -> Result<(NonNull<u8>, Granules, usize), Refused> {
        // Alignment is a matter of addresses, and the range may start anywhere on a span.
        let first = (self.arena.address(0).as_ptr().addr() / GRANULE) as Granules;
        let phase = first.wrapping_neg() & (place.align - 1);
        let request = Request { granules: place.granules, align: place.align, phase, prefer: Prefer::Warm };
        let taken = self.arena.take(request, now).map_err(|error| self.refuse(error))?;
        // SAFETY: `lead + size` bytes fit into the extent, by `place`.
        let start = unsafe { self.arena.address(taken.at).add(place.lead) };
        self.record(taken.at, start, size, fill, now)?;
        let counters = self.records.counters();
        counters.allocations += 1;
        counters.fresh_bytes += taken.cold_bytes as u64;
        counters.reused += u64::from(taken.cold_bytes <= size / 2);
        Ok((start, taken.at, taken.cold_bytes))
    }

    fn record(
        &mut self,
        at: Granules,
        start: NonNull<u8>,
        size: usize,
        fill: Fill,
        now: u32,
    ) -> Result<(), Refused> {
        let kind = match self.arena.kind(at) {
            kind if kind.from_pool() => Kind::Hugetlb,
            SpanKind::Small => Kind::Small,
            _ => Kind::Thp,
        };
        let Some(slot) = self.records.add(start.as_ptr().expose_provenance() as u64, size as u64, kind)
        else {
            self.arena.give_back(at, false, now);
            return Err(self.refuse(TakeError::RangeFull));
        };
        self.arena.set_owner(at, slot << 1 | u32::from(fill == Fill::Zero && size >= INSPECT_FROM));
        self.add_live(size as u64);
        Ok(())
    }

    fn add_live(&mut self, size: u64) {
        let counters = self.records.counters();
        counters.live_bytes += size;
        counters.peak_bytes = counters.peak_bytes.max(counters.live_bytes);
    }

    /// The block at an address: its extent, its slot, its record.
    fn block(&self, address: usize) -> Result<(Granules, u32, BlockRecord), NotABlock> {
        let (at, _) = self.arena.used_at(address).ok_or(NotABlock(address))?;
        let slot = self.arena.owner(at) >> 1;
        let record = self.records.get(slot);
        if record.address == address as u64 { Ok((at, slot, record)) } else { Err(NotABlock(address)) }
    }

    fn usable(&self, at: Granules, address: usize) -> usize {
        let (_, len) = self.arena.used_at(address).unwrap_or((at, 0));
        self.arena.address(at).as_ptr().addr() + len as usize * GRANULE - address
    }

    fn drop_extent(&mut self, at: Granules, record: &BlockRecord, now: u32) {
        let maybe_untouched = self.arena.owner(at) & 1 == 1;
        self.arena.give_back(at, maybe_untouched, now);
        let counters = self.records.counters();
        counters.frees += 1;
        counters.live_bytes -= record.size;
    }

    fn resize_in_place_or_move(
        &mut self,
        address: usize,
        size: usize,
        now: u32,
    ) -> Result<Step, ResizeError> {
        let (at, slot, record) = self.block(address)?;
        let lead = address - self.arena.address(at).as_ptr().addr();
        let usable = self.usable(at, address);
        let len = ((lead + usable) / GRANULE) as Granules;
        let Some(bytes) = size.checked_add(lead) else {
            return Err(ResizeError::Refused(self.refuse(TakeError::RangeFull)));
        };
        let Ok(wanted) = u32::try_from(bytes.div_ceil(GRANULE).max(1)) else {
            return Err(ResizeError::Refused(self.refuse(TakeError::RangeFull)));
        };
        let fits = wanted <= len;
        if fits && len - wanted >= (len / 8).max(4) {
            self.arena.shrink(at, wanted, now);
        }
        if fits || self.arena.grow(at, wanted, now) {
            self.records.counters().live_bytes -= record.size;
            self.add_live(size as u64);
            self.records.resize(slot, address as u64, size as u64);
            self.records.counters().resized_in_place += 1;
            let start = core::ptr::with_exposed_provenance_mut(address);
            return Ok(Step::Done(Block {
                start: NonNull::new(start).ok_or(NotABlock(address))?,
                cold_bytes: 0,
            }));
        }
        if usable >= MOVE_FROM
            && let Some(start) = self.resize_by_moving(at, slot, &record, lead, wanted, size, now)
        {
            return Ok(Step::Done(Block { start, cold_bytes: 0 }));
        }
        Ok(Step::Copy { usable })
    }

    #[expect(clippy::too_many_arguments, reason = "the facts its only caller has established")]
    fn resize_by_moving(
        &mut self,
        at: Granules,
        slot: u32,
        record: &BlockRecord,
        lead: usize,
        wanted: Granules,
        size: usize,
        now: u32,
    ) -> Option<NonNull<u8>> {
        let per_span = PER_SPAN as Granules;
        let request =
            Request { granules: wanted, align: per_span, phase: at % per_span, prefer: Prefer::Cold };
        let to = self.arena.take(request, now).ok()?.at;
        let (_, len) = self.arena.used_at(record.address as usize)?;
        // SAFETY: the caller of `resize` owns the block, and the target was taken just now.
        let Some(moved) = (unsafe { self.arena.relocate(at, to, len) }) else {
            self.arena.give_back(to, true, now);
            return None;
        };
        let (source, target) = (self.arena.address(at), self.arena.address(to));
        let held = lead + record.size as usize;
        let end = moved.end as usize * GRANULE;
        for part in [0..(moved.start as usize * GRANULE).min(held), end..held.max(end)] {
            // SAFETY: the parts lie inside both extents, which are distinct.
            unsafe { target.add(part.start).copy_from_nonoverlapping(source.add(part.start), part.len()) };
        }
        // SAFETY: `lead` is inside the target's first granule.
        let start = unsafe { target.add(lead) };
        self.arena.set_owner(to, self.arena.owner(at));
        self.arena.give_back(at, true, now);
        self.records.resize(slot, start.as_ptr().expose_provenance() as u64, size as u64);
        let counters = self.records.counters();
        counters.live_bytes -= record.size;
        counters.moved_by_mremap += 1;
        self.add_live(size as u64);
        Some(start)
    }

    fn update_sums(&mut self) {
        let totals = self.arena.totals();
        let counters = self.records.counters();
        counters.retained_bytes = totals.warm.saturating_sub(totals.live) as u64;
        counters.returned_bytes = totals.returned as u64;
    }
}
