//! The state of the pager that its lock guards: the page table, the policies' memory, and the limits.
//!
//! `transfers.rs` adds which pages are filled together, `victims.rs` which are evicted. No function here reads a clock:
//! `now` is passed in.

use crate::lock::{RankedGuard, STATE};
use crate::page_table::PageTable;
use crate::pins::Pins;
use crate::write_copies::WriteCopies;
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::eviction_cost::EvictionCost;
use largesse_policy::reclaim_mode::ReclaimMode;
use largesse_policy::replacement::{Protection, Replacement};
use largesse_policy::streams::{Access, Prefetch};
use largesse_policy::transfer::TransferUnits;
use largesse_policy::{FreeReserve, SpeculativePages};
use std::time::{Duration, Instant};

/// Largest number of pages that a write makes writable at once, from the written one on: a loop writes to the next
/// ones, too.
pub(crate) const WRITE_AHEAD: usize = 16;
/// From this number of pages on, evicting a unit takes longer than waking the thread that does it.
pub(crate) const LARGE_UNIT: usize = 8;
/// A full store is asked again after this time, and deferred pages can be victims again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Number of pages that are evicted together while fills are small, and while they are large.
const BATCH: [usize; 2] = [16, 128];
/// Weight of the latest fill in the mean size of fills.
const LATEST: f64 = 1.0 / 32.0;

/// The pager's lock, held.
pub(crate) type StateGuard<'a> = RankedGuard<'a, PagerState, STATE>;

/// Everything that the pager's lock guards.
#[derive(Debug)]
pub(crate) struct PagerState {
    pub(crate) pages: PageTable,
    /// Resident pages in the order of their eviction.
    pub(crate) queue: Box<dyn Replacement>,
    pub(crate) pins: Pins,
    /// Upper bound of resident pages.
    pub(crate) local: usize,
    /// Number of pages that the program may use, resident or not; 0 if it is unknown.
    pub(crate) mapped: usize,
    pub(crate) units: TransferUnits,
    /// Predicts from faults which pages are used next.
    pub(crate) prefetch: Box<dyn Prefetch>,
    /// Mean size of the recent fills, in pages.
    pub(crate) mean_fill: f64,
    /// New pages that were filled along with others and are perhaps never used.
    pub(crate) speculative: SpeculativePages,
    /// When the store last had no room.
    pub(crate) full: Option<Instant>,
    /// When the first of the deferred pages was deferred; `None` if there are none.
    pub(crate) deferred_since: Option<Instant>,
    /// Whether evictions are made at need or ahead of it, and on which CPU faults are handled.
    pub(crate) reclaim_mode: ReclaimMode,
    /// The cost of evictions, for the choice of the transfer size.
    pub(crate) eviction_cost: EvictionCost,
    /// Whether transfers run while the threads that started them continue.
    pub(crate) asynchronous: bool,
    /// Number of pages that are `Leaving` until such transfers end.
    pub(crate) leaving: usize,
    /// The copies of these pages that are being written.
    pub(crate) write_copies: WriteCopies,
    /// Bytes of a page.
    pub(crate) page_bytes: usize,
    /// Number of pages for which a fault waits for room, 0 if none does.
    pub(crate) room_wanted: usize,
    /// Number of times that the evicting thread of such transfers found no victim although room was wanted.
    pub(crate) stuck: u64,
    /// Whether this was so the last time, and because the store is full.
    pub(crate) stuck_since_full: bool,
    /// Number of pages that such transfers keep free.
    pub(crate) free_reserve: FreeReserve,
    /// The number of the compute core that runs, and the number of units that it swapped in.
    pub(crate) core: (u16, usize),
    /// Pages that are near again (`near_again.rs`): their faults are the kernel's.
    pub(crate) near: Range<PageNumber>,
    /// Pages of which the swapped-out ones are fetched back in the background (`recall.rs`).
    pub(crate) recall: Range<PageNumber>,
}

impl PagerState {
    /// Returns how many pages to evict together to make room for `missing` pages. Evicting several units at once is
    /// cheaper, since each step of the kernel costs as much as several pages.
    pub(crate) fn batch(&self, missing: usize) -> usize {
        let together = BATCH[usize::from(self.fills_are_large())];
        missing.max(together.min(self.local / 64))
    }

    /// Returns whether the store had no room less than `RETRY_AFTER` ago: changed pages are then not evicted, so that
    /// no thread waits for them in vain.
    pub(crate) fn store_is_full(&self, now: Instant) -> bool {
        self.full.is_some_and(|since| now.saturating_duration_since(since) < RETRY_AFTER)
    }

    /// Notes that `pages` pages are filled again, which were evicted as `eviction` says.
    pub(crate) fn note_refault(&mut self, pages: usize, eviction: Option<(Protection, u32)>) {
        let distance = eviction.map_or(u32::MAX, |(_, clock)| self.queue.clock().wrapping_sub(clock));
        self.eviction_cost.refaulted(pages, distance, self.local);
    }

    /// Notes a fill of `pages` pages.
    pub(crate) fn note_fill(&mut self, pages: usize, now: Instant) {
        self.mean_fill += (pages as f64 - self.mean_fill) * LATEST;
        // As long as there is room, fills say nothing about ways to evict.
        if self.pages.resident() + self.high_watermark() > self.local {
            self.reclaim_mode.filled(pages, now);
        }
    }

    /// Returns whether the recent fills were so large that another thread should make room for them.
    pub(crate) fn fills_are_large(&self) -> bool {
        self.mean_fill >= LARGE_UNIT as f64
    }

    /// Returns the number of free pages that background reclaim restores, so that a fault need not wait for room: twice
    /// the size of a recent fill, 16 to 512, and at most a sixteenth of local memory.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
    pub(crate) fn high_watermark(&self) -> usize {
        ((self.mean_fill * 2.0) as usize).clamp(16, 512).min(self.local / 16)
    }

    /// Returns the number of free pages below which the evicting thread starts. 0 while fills are small: then the
    /// thread that serves faults evicts before and between them. Unmapping pages interrupts every CPU that runs a
    /// thread of the process, so that two such threads at once would hold each other up.
    pub(crate) fn low_watermark(&self) -> usize {
        if self.fills_are_large() && self.reclaim_mode.in_background() { self.high_watermark() } else { 0 }
    }

    /// Returns whether waiting for room is in vain: since `stuck` had its value, the evicting thread found no victim
    /// again and again, or once if most of local memory is pinned.
    pub(crate) fn nothing_can_leave(&self, stuck: u64, now: Instant) -> bool {
        const PATIENCE: u64 = 200;
        let patience = if self.mostly_pinned() { 1 } else { PATIENCE };
        self.stuck_since_full && self.store_is_full(now) || self.stuck - stuck >= patience
    }

    /// Returns whether more than half of local memory is pinned.
    pub(crate) fn mostly_pinned(&self) -> bool {
        self.pins.pages() * 2 > self.local
    }

    /// Notes that a fault or a prefetch found no room for `pages` pages. A larger reserve would not help while the
    /// store is full.
    pub(crate) fn found_no_room(&mut self, pages: usize, now: Instant) {
        if !self.store_is_full(now) {
            self.free_reserve.found_no_room(pages);
        }
    }

    /// Notes whether the evicting thread of asynchronous transfers found victims.
    pub(crate) fn note_victims(&mut self, any: bool, now: Instant) {
        let stuck = !any && self.leaving == 0;
        self.stuck += u64::from(stuck);
        self.stuck_since_full = stuck && self.store_is_full(now);
    }

    /// Returns the number of pages that asynchronous transfers should evict, in addition to those that are `Leaving`.
    pub(crate) fn wanted_evictions(&self, now: Instant) -> usize {
        // Few pages can be evicted while the store is full: none of them should be before it was used.
        let reserve = if self.store_is_full(now) { 1 } else { self.free_reserve.pages(self.local) };
        let reserve = reserve.max(self.room_wanted);
        (self.pages.resident() + reserve).saturating_sub(self.local + self.leaving)
    }

    /// Adds the unit of a swapped-in page to the working set of the compute core that runs, if one does.
    pub(crate) fn note_swap_in(&mut self, page: PageNumber) {
        let unit = self.units.in_force(page, Access::Dense);
        let (core, count) = &mut self.core;
        if *core != 0 && self.pages.swap_in_during(page / unit * unit, *core) {
            *count += 1;
        }
    }

    /// Forgets runs of the replacement queue of which no page is resident, when there are many of them.
    pub(crate) fn tidy(&mut self) {
        if self.queue.runs() > 2 * self.pages.resident() + 1024 {
            let pages = &self.pages;
            self.queue.retain(&mut |run| run.range().any(|page| pages[page].state.is_resident()));
        }
    }
}
