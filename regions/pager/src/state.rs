//! The state of the pager that its lock guards: the page table, the policies' memory, and the limits.
//!
//! `transfers.rs` adds the choice of pages that are filled together, `victims.rs` that of pages that are evicted. No
//! function of this type reads a clock: the caller passes `now`.

use crate::lock::{RankedGuard, STATE};
use crate::page_table::PageTable;
use crate::pins::Pins;
use crate::write_copies::WriteCopies;
use core::ops::Range;
use largesse_arena::Reads;
use largesse_policy::PageNumber;
use largesse_policy::eviction_cost::EvictionCost;
use largesse_policy::reclaim_mode::ReclaimMode;
use largesse_policy::replacement::{Protection, Replacement};
use largesse_policy::streams::{Access, Prefetch};
use largesse_policy::transfer::TransferUnits;
use largesse_policy::{FreeReserve, MAX_TRANSFER, Policies, SpeculativePages};
use std::time::{Duration, Instant};

/// Number of pages that a write makes writable at once: the written one and those after it, because a loop is likely to
/// write to them next.
pub(crate) const WRITE_AHEAD: usize = 16;
/// Number of pages of a unit from which on its eviction takes longer than waking the evicting thread.
pub(crate) const LARGE_UNIT: usize = 8;
/// Time after which a full store is tried again, and deferred pages can be victims again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Number of pages that are evicted together: `[0]` while fills are small, `[1]` while they are large. Evictions by
/// asynchronous transfers always select at least `[1]` victims at once, so that neighbours are written together.
pub(crate) const BATCH: [usize; 2] = [16, 128];
/// Longest time in milliseconds for which a thread of the pager sleeps if it has nothing to do and is not woken.
pub(crate) const IDLE_SLEEP: u16 = 500;
/// Number of milliseconds for which a fault waits for room in local memory before it looks again.
pub(crate) const ROOM_WAIT: u64 = 1;
/// Weight of the latest fill in the moving average of the sizes of fills.
const LATEST: f64 = 1.0 / 32.0;

/// The pager's lock, held.
pub(crate) type StateGuard<'a> = RankedGuard<'a, PagerState, STATE>;

/// Everything that the pager's lock guards.
#[derive(Debug)]
pub(crate) struct PagerState {
    pub(crate) pages: PageTable,
    /// The replacement queue: resident pages in the order in which they will be evicted.
    pub(crate) queue: Box<dyn Replacement>,
    pub(crate) pins: Pins,
    /// Size of local memory: upper bound of the number of resident pages.
    pub(crate) local: usize,
    /// Number of pages that the program may use, resident or not; 0 if it is unknown.
    pub(crate) mapped: usize,
    pub(crate) units: TransferUnits,
    /// Predicts from faults which pages are used next.
    pub(crate) prefetch: Box<dyn Prefetch>,
    /// Moving average of the sizes of fills, in pages.
    pub(crate) mean_fill: f64,
    /// New pages that were filled along with others and are perhaps never used. They are checked later.
    pub(crate) speculative: SpeculativePages,
    /// When the store last refused a write because it had no room; `None` if it never did.
    pub(crate) full: Option<Instant>,
    /// When the first of the deferred pages was deferred; `None` if there are none.
    pub(crate) deferred_since: Option<Instant>,
    /// Whether pages are evicted at need or in the background, and on which CPU faults are handled.
    pub(crate) reclaim_mode: ReclaimMode,
    /// The measured cost of evictions, from which the transfer size is chosen.
    pub(crate) eviction_cost: EvictionCost,
    /// Whether transfers are asynchronous: they run while the threads that started them continue.
    pub(crate) asynchronous: bool,
    /// Size in pages of the largest transfer unit for which asynchronous reads have memory.
    pub(crate) largest_async: usize,
    /// Number of pages that are `Leaving` until asynchronous writes end.
    pub(crate) leaving: usize,
    /// The copies of `Leaving` pages from which asynchronous writes are made.
    pub(crate) write_copies: WriteCopies,
    /// Number of `Leaving` pages that take no local memory any more, because only a copy in the queue of writes exists.
    pub(crate) copied: usize,
    /// Size of a page in bytes.
    pub(crate) page_bytes: usize,
    /// Number of pages for which a fault waits for room, 0 if none does.
    pub(crate) room_wanted: usize,
    /// Number of times that the evicting thread of asynchronous transfers found no victim although room was wanted.
    pub(crate) stuck: u64,
    /// Whether the evicting thread of asynchronous transfers found no victim the last time, and the store was full
    /// then.
    pub(crate) stuck_since_full: bool,
    /// Number of pages that asynchronous transfers keep free.
    pub(crate) free_reserve: FreeReserve,
    /// Number of the compute core that runs (0 if none does), and the number of units that it paged in.
    pub(crate) core: (u16, usize),
    /// Which pages the program reads, if it only reads for now (`watch.rs`).
    pub(crate) only_read: Option<Reads>,
    /// Pages that are near again (`near_again.rs`): their faults are the kernel's.
    pub(crate) near: Range<PageNumber>,
    /// Pages of which the swapped-out ones are fetched back in the background (`recall.rs`).
    pub(crate) recall: Range<PageNumber>,
}

impl PagerState {
    /// Makes the state of a pager whose pages, of `page_bytes` bytes each, are as in the table `pages`, and of which at
    /// most `local` are resident.
    pub(crate) fn new(pages: PageTable, page_bytes: usize, local: usize, policies: Policies) -> PagerState {
        let Policies { replacement, prefetch, size } = policies;
        PagerState {
            pages,
            queue: replacement,
            pins: Pins::default(),
            local,
            mapped: 0,
            units: TransferUnits::new(size),
            prefetch,
            mean_fill: 0.0,
            speculative: SpeculativePages::default(),
            reclaim_mode: ReclaimMode::default(),
            eviction_cost: EvictionCost::default(),
            full: None,
            deferred_since: None,
            asynchronous: false,
            leaving: 0,
            write_copies: WriteCopies::default(),
            page_bytes,
            copied: 0,
            largest_async: MAX_TRANSFER,
            room_wanted: 0,
            stuck: 0,
            stuck_since_full: false,
            free_reserve: FreeReserve::default(),
            core: (0, 0),
            only_read: None,
            near: 0..0,
            recall: 0..0,
        }
    }

    /// Returns the number of pages to evict together so that there is room for `missing` pages. Evicting several units
    /// at once is cheaper, since each system call costs as much as several pages.
    pub(crate) fn batch(&self, missing: usize) -> usize {
        let together = BATCH[usize::from(self.fills_are_large())];
        missing.max(together.min(self.local / 64))
    }

    /// Returns the number of pages that take local memory: all resident ones, except those of which only the copy
    /// exists that is being written.
    pub(crate) fn occupied(&self) -> usize {
        self.pages.resident() - self.copied
    }

    /// Returns whether the store had no room less than `RETRY_AFTER` ago. Changed pages are then not evicted, since
    /// their writes would fail again.
    pub(crate) fn store_is_full(&self, now: Instant) -> bool {
        self.full.is_some_and(|since| now.saturating_duration_since(since) < RETRY_AFTER)
    }

    /// Notes that `pages` pages are filled again. `eviction` is the part of the replacement queue from which they were
    /// evicted, and the eviction clock at that time.
    pub(crate) fn note_refault(&mut self, pages: usize, eviction: Option<(Protection, u32)>) {
        let distance = eviction.map_or(u32::MAX, |(_, clock)| self.queue.clock().wrapping_sub(clock));
        self.eviction_cost.refaulted(pages, distance, self.local);
    }

    /// Notes a fill of `pages` pages, from which it is chosen how pages are evicted to a store whose transfers end at
    /// once. Asynchronous transfers have no such choice.
    pub(crate) fn note_fill(&mut self, pages: usize, now: Instant) {
        if self.asynchronous {
            return;
        }
        self.mean_fill += (pages as f64 - self.mean_fill) * LATEST;
        // As long as there is room, fills say nothing about ways to evict.
        if self.occupied() + self.high_watermark() > self.local {
            self.reclaim_mode.filled(pages, now);
        }
    }

    /// Returns whether the recent fills were so large that the evicting thread should make room for them.
    pub(crate) fn fills_are_large(&self) -> bool {
        self.mean_fill >= LARGE_UNIT as f64
    }

    /// Returns the number of free pages that background reclaim restores, so that a fault need not wait for room: twice
    /// the mean size of recent fills, between 16 and 512, and at most a sixteenth of local memory.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
    pub(crate) fn high_watermark(&self) -> usize {
        ((self.mean_fill * 2.0) as usize).clamp(16, 512).min(self.local / 16)
    }

    /// Returns the number of free pages below which the evicting thread starts. It is 0 while fills are small, because
    /// then the handler thread evicts before and between them. Unmapping pages interrupts every CPU that runs a thread
    /// of the process, so that two threads that unmap at once would delay each other.
    pub(crate) fn low_watermark(&self) -> usize {
        if self.fills_are_large() && self.reclaim_mode.in_background() { self.high_watermark() } else { 0 }
    }

    /// Returns whether a fault waits for room in vain: since the caller read `stuck`, the evicting thread found no
    /// victim [again and again](PagerState::patience).
    pub(crate) fn nothing_can_leave(&self, stuck: u64, now: Instant) -> bool {
        self.stuck_since_full && self.store_is_full(now) || self.stuck - stuck >= self.patience().max(1)
    }

    /// Returns how often a fault looks again, a millisecond apart, for room in a local memory without any victim. It
    /// looks once again if most pages are pinned, and not at all if most of them are pinned for good: waiting would
    /// make each fault a millisecond longer for nothing.
    pub(crate) fn patience(&self) -> u64 {
        /// Number of looks while at most half of local memory is pinned.
        const MOST: u64 = 200;
        match (self.pins.permanent() * 2 > self.local, self.pins.pages() * 2 > self.local) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => MOST,
        }
    }

    /// Notes that a fault or a prefetch found no room for `pages` pages, which may enlarge the free reserve. Does
    /// nothing while the store is full, since more free pages would not help then.
    pub(crate) fn found_no_room(&mut self, pages: usize, now: Instant) {
        if !self.store_is_full(now) {
            self.free_reserve.found_no_room(pages);
        }
    }

    /// Notes whether the evicting thread of asynchronous transfers found victims (`any`).
    pub(crate) fn note_victims(&mut self, any: bool, now: Instant) {
        let stuck = !any && self.leaving == 0;
        self.stuck += u64::from(stuck);
        self.stuck_since_full = stuck && self.store_is_full(now);
    }

    /// Returns the number of pages that the evicting thread of asynchronous transfers should evict, in addition to
    /// those that are `Leaving` already.
    pub(crate) fn wanted_evictions(&self, now: Instant) -> usize {
        // Few pages can be evicted while the store is full: none of them should be before it was used.
        let reserve = if self.store_is_full(now) { 1 } else { self.free_reserve.pages(self.local) };
        let reserve = reserve.max(self.room_wanted);
        (self.pages.resident() + reserve).saturating_sub(self.local + self.leaving)
    }

    /// Adds the unit of a page that was paged in to the working set of the compute core that runs, if one does.
    pub(crate) fn note_swap_in(&mut self, page: PageNumber) {
        let unit = self.units.in_force(page, Access::Dense);
        let (core, count) = &mut self.core;
        if *core != 0 && self.pages.swap_in_during(page / unit * unit, *core) {
            *count += 1;
        }
    }

    /// Removes runs of the replacement queue of which no page is resident, if there are many of them.
    pub(crate) fn tidy(&mut self) {
        if self.queue.runs() > 2 * self.pages.resident() + 1024 {
            let pages = &self.pages;
            self.queue.retain(&mut |run| run.range().any(|page| pages[page].state.is_resident()));
        }
    }
}
