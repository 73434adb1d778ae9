//! Keeps the state under the heap's lock consistent: arena, records and counters.

use super::request::{Fill, NotABlock, Refused};
use crate::layout::BlockLayout;
use crate::records::{Kinds, Records};
use core::ptr::NonNull;
use largesse_arena::{
    Arena, Backing, Colours, GRANULE, Granules, PER_SPAN, Prefer, Refusal, Request, SpanKind, TakeError,
};
use largesse_pages::SPAN;
use largesse_report::{BlockKind, BlockRecord, Cause};

/// Size in bytes from which `free` checks which pages of a cleared block are resident, because much of the block may
/// never have been touched.
const INSPECT_FROM: usize = 2 * SPAN;

/// The kinds of refusal that a backing counts, each with the cause under which it is reported.
const REFUSALS: [(Refusal, Cause); 7] = [
    (Refusal::PoolEmpty, Cause::HugetlbPoolEmpty),
    (Refusal::PoolRefused, Cause::HugetlbRefused),
    (Refusal::Lock, Cause::LockRefused),
    (Refusal::Place, Cause::NodeRefused),
    (Refusal::Move, Cause::MoveRefused),
    (Refusal::Populate, Cause::PopulateRefused),
    (Refusal::NearLimit, Cause::NearLimit),
];

fn in_report(kind: SpanKind) -> BlockKind {
    match kind {
        kind if kind.from_pool() => BlockKind::Hugetlb,
        SpanKind::Small => BlockKind::Small,
        _ => BlockKind::Thp,
    }
}

#[derive(Debug)]
pub(super) struct LockedHeap<B: 'static> {
    pub(super) arena: Arena<&'static B>,
    pub(super) records: Records,
    pub(super) colours: Colours,
    pub(super) last_decay: u32,
    /// Number of the backing's refusals that are already in the report, in the order of [`REFUSALS`].
    pub(super) seen: [u64; REFUSALS.len()],
}

impl<B: Backing> LockedHeap<B> {
    pub(super) fn decay(&mut self, now: u32) {
        if now != self.last_decay {
            self.last_decay = now;
            self.arena.decay(now);
        }
    }

    pub(super) fn refuse(&mut self, error: TakeError) -> Refused {
        let (cause, refused) = match error {
            TakeError::RangeFull => (Cause::RangeFull, Refused::RangeFull),
            TakeError::NoMemory(_) => (Cause::OutOfMemory, Refused::NoMemory),
        };
        self.records.note(cause);
        refused
    }

    pub(super) fn take(
        &mut self,
        prefer: Prefer,
        layout: BlockLayout,
        size: usize,
        fill: Fill,
        now: u32,
    ) -> Result<(NonNull<u8>, Granules, usize), Refused> {
        // Alignment concerns addresses, and the range may start at any span.
        let first = (self.arena.address(0).as_ptr().addr() / GRANULE) as Granules;
        let phase = first.wrapping_neg() & (layout.align - 1);
        let request = Request { granules: layout.granules, align: layout.align, phase, prefer };
        let taken = self.arena.take(request, now).map_err(|error| self.refuse(error))?;
        // SAFETY: `lead + size` bytes fit into the extent, by `layout`.
        let start = unsafe { self.arena.address(taken.at).add(layout.lead) };
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
        let kinds = self.kinds(at);
        let address = start.as_ptr().expose_provenance() as u64;
        let Some(slot) = self.records.add(address, size as u64, kinds) else {
            self.arena.give_back(at, false, now);
            return Err(self.refuse(TakeError::RangeFull));
        };
        self.arena.set_owner(at, slot << 1 | u32::from(fill == Fill::Zero && size >= INSPECT_FROM));
        self.add_live(size as u64);
        Ok(())
    }

    /// Returns the kinds of page that an extent is on.
    pub(super) fn kinds(&self, at: Granules) -> Kinds {
        let mut runs = self.arena.kinds(at).map(|(spans, kind)| (spans, in_report(kind)));
        let (mut spans, first) = runs.next().unwrap_or((0, BlockKind::Thp));
        let mut then = None;
        for (more, kind) in runs {
            match then {
                None if kind == first => spans += more,
                None => then = Some((spans, kind)),
                Some((spans, second)) if kind != second => then = Some((spans, BlockKind::Mixed)),
                Some(_) => {}
            }
        }
        Kinds { first, then }
    }

    /// Records that a span is on a large page, also in the records of the blocks that have a part of it.
    pub(super) fn became_large(&mut self, span: usize) {
        if self.arena.small_span_from(span) != Some(span) {
            return; // it was freed and purged since
        }
        self.arena.rekind(span, 1, SpanKind::Thp);
        let start = self.arena.address((span * PER_SPAN) as Granules).as_ptr().addr() as u64;
        for slot in 0..self.records.report().slots as u32 {
            let record = self.records.get(slot);
            if record.address < start + SPAN as u64
                && record.address + record.size > start
                && let Some((at, _)) = self.arena.used_at(record.address as usize)
            {
                let kinds = self.kinds(at);
                self.records.resize(slot, record.address, record.size, kinds);
            }
        }
    }

    pub(super) fn add_live(&mut self, size: u64) {
        let counters = self.records.counters();
        counters.live_bytes += size;
        counters.peak_bytes = counters.peak_bytes.max(counters.live_bytes);
    }

    /// Returns the block at an address: the start of its extent, its record's number, and the record.
    pub(super) fn block(&self, address: usize) -> Result<(Granules, u32, BlockRecord), NotABlock> {
        let (at, _) = self.arena.used_at(address).ok_or(NotABlock(address))?;
        let slot = self.arena.owner(at) >> 1;
        let record = self.records.get(slot);
        if record.address == address as u64 { Ok((at, slot, record)) } else { Err(NotABlock(address)) }
    }

    pub(super) fn usable(&self, at: Granules, address: usize) -> usize {
        let (_, len) = self.arena.used_at(address).unwrap_or((at, 0));
        self.arena.address(at).as_ptr().addr() + len as usize * GRANULE - address
    }

    pub(super) fn drop_extent(&mut self, at: Granules, record: &BlockRecord, now: u32) {
        let maybe_untouched = self.arena.owner(at) & 1 == 1;
        self.arena.give_back(at, maybe_untouched, now);
        let counters = self.records.counters();
        counters.frees += 1;
        counters.live_bytes -= record.size;
    }

    pub(super) fn update_sums(&mut self) {
        for (seen, (refusal, cause)) in self.seen.iter_mut().zip(REFUSALS) {
            let now = self.arena.backing().refused(refusal);
            self.records.note_many(cause, now - *seen);
            *seen = now;
        }
        let totals = self.arena.totals();
        let counters = self.records.counters();
        counters.retained_bytes = totals.warm.saturating_sub(totals.live) as u64;
        counters.returned_bytes = totals.returned as u64;
    }
}
