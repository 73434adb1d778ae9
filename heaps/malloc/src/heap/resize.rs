//! Resizes blocks: in place, by moving pages, or by copying.

use super::locked::LockedHeap;
use super::{Fill, HeapBlock, LargeBlockHeap, NotABlock, Refused};
use core::ptr::NonNull;
use largesse_arena::{Backing, GRANULE, Granules, PER_SPAN, Prefer, Request, TakeError};
use largesse_pages::{SPAN, now_seconds};
use largesse_report::BlockRecord;

/// Size in bytes from which blocks may be grown by moving pages instead of copying.
const MOVE_FROM: usize = 2 * SPAN;

/// The reason for which a block was not resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeError {
    /// There was no memory for the new size.
    Refused(Refused),
    /// The address is no live block.
    NotABlock(NotABlock),
}

impl From<NotABlock> for ResizeError {
    fn from(error: NotABlock) -> ResizeError {
        ResizeError::NotABlock(error)
    }
}

/// The outcome of resizing a block without copying.
#[derive(Clone, Copy, Debug)]
pub enum Resized {
    /// The block has its new size, at this address.
    Done(HeapBlock),
    /// The contents must be copied to this new block, and the old block freed.
    Copy {
        /// New block of the requested size.
        to: HeapBlock,
        /// Number of usable bytes of the old block.
        usable: usize,
    },
}

impl<B: Backing> LargeBlockHeap<B> {
    /// Makes a block larger or smaller and returns its new address. After an error the block is unchanged.
    ///
    /// # Safety
    /// `address` is a live block of this heap that nothing else uses during the call.
    pub unsafe fn resize(&self, address: usize, size: usize) -> Result<HeapBlock, ResizeError> {
        // SAFETY: the caller's promise.
        match unsafe { self.resize_without_copying(address, size)? } {
            Resized::Done(block) => Ok(block),
            Resized::Copy { to, usable } => {
                let old = core::ptr::with_exposed_provenance::<u8>(address);
                // SAFETY: the old block has `usable` bytes, the new one `size`; both are live and distinct.
                unsafe { to.start.as_ptr().copy_from_nonoverlapping(old, usable.min(size)) };
                self.free(address)?;
                Ok(to)
            }
        }
    }

    /// Resizes a block as [`resize`](LargeBlockHeap::resize) does, but leaves copying to the caller. So a caller that
    /// blocks signals during this call can unblock them before it copies a large block.
    ///
    /// # Safety
    /// The requirements are those of [`resize`](LargeBlockHeap::resize).
    pub unsafe fn resize_without_copying(&self, address: usize, size: usize) -> Result<Resized, ResizeError> {
        let now = now_seconds();
        let result = self.inner.with(|inner| {
            let result = inner.resize_in_place_or_move(address, size, now);
            inner.update_sums();
            result
        })?;
        match result {
            ResizeStep::Done(block) => Ok(Resized::Done(block)),
            ResizeStep::Copy { usable } => {
                let to = self.allocate(size, 1, Fill::Any).map_err(ResizeError::Refused)?;
                Ok(Resized::Copy { to, usable })
            }
        }
    }
}

/// The outcome of the part of resizing that is done under the heap's lock.
enum ResizeStep {
    Done(HeapBlock),
    /// Nothing was done, and the block has this number of usable bytes.
    Copy {
        usable: usize,
    },
}

impl<B: Backing> LockedHeap<B> {
    fn resize_in_place_or_move(
        &mut self,
        address: usize,
        size: usize,
        now: u32,
    ) -> Result<ResizeStep, ResizeError> {
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
            let kinds = self.kinds(at);
            self.records.resize(slot, address as u64, size as u64, kinds);
            self.records.counters().resized_in_place += 1;
            let start = core::ptr::with_exposed_provenance_mut(address);
            return Ok(ResizeStep::Done(HeapBlock {
                start: NonNull::new(start).ok_or(NotABlock(address))?,
                cold_bytes: 0,
                near_limit: self.arena.is_near_limit(),
            }));
        }
        if usable >= MOVE_FROM
            && let Some(start) = self.resize_by_moving(at, slot, &record, lead, wanted, size, now)
        {
            let near_limit = self.arena.is_near_limit();
            return Ok(ResizeStep::Done(HeapBlock { start, cold_bytes: 0, near_limit }));
        }
        Ok(ResizeStep::Copy { usable })
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
        let kinds = self.kinds(to);
        self.records.resize(slot, start.as_ptr().expose_provenance() as u64, size as u64, kinds);
        let counters = self.records.counters();
        counters.live_bytes -= record.size;
        counters.moved_by_mremap += 1;
        self.add_live(size as u64);
        Some(start)
    }
}
