//! What the pager knows under its lock.

use crate::page::{PageState, Touch, number, runs};
use crate::page_table::PageTable;
use crate::pins::Pins;
use core::ops::Range;
use largesse_policy::eviction_cost::EvictionCost;
use largesse_policy::reclaim_mode::ReclaimMode;
use largesse_policy::replacement::{PageRun, Protection, ReplacementQueue};
use largesse_policy::streams::{Access, Streams};
use largesse_policy::transfer::TransferUnits;
use largesse_policy::{FreeReserve, SpeculativePages};
use largesse_policy::{MAX_TRANSFER, PageNumber};
use std::time::{Duration, Instant};

/// Pages made writable at once, from the one that is written on: a loop writes the next ones too.
pub(crate) const WRITE_AHEAD: usize = 16;
/// Pages that leave at once where few come together, and where many do.
const BATCH: [usize; 2] = [16, 128];
/// From here on, letting a set leave takes longer than waking the thread that does it.
pub(crate) const LARGE_UNIT: usize = 8;
/// A store that had no room is asked again after so long, and pages that could not leave have their turn again.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Of what is known of pages that come together, the last ones count for so much.
const LATELY: f64 = 1.0 / 32.0;

#[derive(Debug)]
pub(crate) struct PagerState {
    pub(crate) pages: PageTable,
    pub(crate) queue: ReplacementQueue,
    pub(crate) pins: Pins,
    /// Pages that may.
    pub(crate) local: usize,
    /// All that the program has, as far as anybody knows; 0: nobody does.
    pub(crate) mapped: usize,
    pub(crate) units: TransferUnits,
    /// Sequences of faults, unless nothing is to be fetched ahead.
    pub(crate) streams: Option<Streams>,
    /// Pages that come together, lately.
    pub(crate) together: f64,
    /// New pages that may be here for nothing.
    pub(crate) speculative: SpeculativePages,
    /// When the store last had no room.
    pub(crate) full: Option<Instant>,
    /// When the first of those pages was set aside that cannot leave now.
    pub(crate) deferred_since: Option<Instant>,
    /// When pages leave.
    pub(crate) reclaim_mode: ReclaimMode,
    /// What leaving costs, for the trial.
    pub(crate) eviction_cost: EvictionCost,
    /// Whether transfers run while the threads that started them continue.
    pub(crate) asynchronous: bool,
    /// Pages that are being written in order to be evicted, by such transfers.
    pub(crate) leaving: usize,
    /// Pages for which a fault waits for room, 0 if none does.
    pub(crate) room_wanted: usize,
    /// Number of times that nothing could be evicted by them although room was wanted.
    pub(crate) stuck: u64,
    /// Whether this was so the last time, and because the store is full.
    pub(crate) stuck_since_full: bool,
    /// Pages that such transfers keep free.
    pub(crate) free_reserve: FreeReserve,
    /// The number of the compute core that runs, and the sets it swapped in.
    pub(crate) core: (u16, usize),
}

/// A page on its way here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillPlan {
    /// Checksum of what must come.
    pub(crate) sum: u64,
    /// It may be written at once.
    pub(crate) dirty: bool,
}

impl PagerState {
    /// How a page comes: writable at once if it was changed lately, since a loop changes what it changed
    /// before, or if it lies at or right after one that is written now. Each is spared a second fault;
    /// what turns out the same when it leaves is not sent.
    pub(crate) fn plan(&self, number: PageNumber, touch: Touch, reuses: bool) -> FillPlan {
        let page = self.pages[number];
        let near = touch.write && (touch.page..touch.page + WRITE_AHEAD).contains(&number);
        FillPlan { sum: page.sum, dirty: reuses || near || page.changed > 0 }
    }

    /// Pages that were to leave stay after all.
    pub(crate) fn stay(&mut self, range: &Range<PageNumber>, part: Protection) {
        self.pages.cancel_evict(range.clone(), PageState::Dirty);
        self.defer(range, part);
    }

    /// Pages whose turn it was cannot leave now, and have their turn again a little later: tried again at once they would be
    /// in the way of those that can.
    pub(crate) fn defer(&mut self, range: &Range<PageNumber>, part: Protection) {
        self.queue.defer(PageRun { first: number(range.start), pages: number(range.len()) }, part);
        self.deferred_since.get_or_insert_with(Instant::now);
    }

    /// What was set aside has its turn again.
    pub(crate) fn retry_all_deferred(&mut self) {
        self.queue.retry_deferred(&(0..PageNumber::MAX), self.local);
        self.deferred_since = None;
    }

    /// How many pages leave at once where `missing` more are to fit: some sets leave together, since each step of the
    /// kernel's costs as much as several pages.
    pub(crate) fn batch(&self, missing: usize) -> usize {
        let together = BATCH[usize::from(self.fills_many())];
        missing.max(together.min(self.local / 64))
    }

    /// Takes runs of at least `wanted` pages from those that are here: from now on they are `Leaving`. Gives up after
    /// so many `tries` at runs of which all pages stay. Returns how many runs these are, too: neighbours go as one.
    pub(crate) fn select_victims(
        &mut self,
        wanted: usize,
        tries: &mut usize,
    ) -> (Vec<(Range<PageNumber>, PageState)>, usize) {
        let (mut going, mut pages, mut units) = (Vec::new(), 0, 0);
        let full = self.store_is_full();
        if self.deferred_since.is_some_and(|since| since.elapsed() >= RETRY_AFTER) {
            self.retry_all_deferred();
        }
        while pages < wanted && *tries > 0 {
            let Some((run, part)) = self.next_victim() else { break };
            let range = run.range();
            let some_stay = self.defer_pinned(&range, part) | self.defer_dirty(full, &range, part);
            let parts = runs(range, |number| {
                let page = self.pages[number];
                let may = !some_stay || !self.pins.contains(number);
                let goes = page.state == PageState::Clean || page.state == PageState::Dirty && !full;
                (may && goes).then_some(page.state)
            });
            // Without any they left another way, or are pinned; when all that is here is, nothing can leave.
            *tries -= usize::from(some_stay && parts.is_empty());
            units += usize::from(!parts.is_empty());
            for (range, state) in parts {
                if state == PageState::Clean {
                    self.pages.note_unchanged(range.clone());
                }
                self.pages.begin_evict(range.clone(), part);
                pages += range.len();
                going.push((range, state));
            }
        }
        going.sort_unstable_by_key(|(range, _)| range.start);
        going.dedup_by(|next, before| {
            let one = before.0.len() + next.0.len() <= MAX_TRANSFER;
            let follows = one && before.0.end == next.0.start && before.1 == next.1;
            if follows {
                before.0.end = next.0.end;
            }
            follows
        });
        (going, units)
    }

    /// The store had no room a moment ago: what was changed stays, so that nobody waits for it in vain.
    pub(crate) fn store_is_full(&self) -> bool {
        self.full.is_some_and(|since| since.elapsed() < RETRY_AFTER)
    }

    /// Defers the pinned pages of a run whose turn it is to be evicted. Returns whether there are any.
    fn defer_pinned(&mut self, range: &Range<PageNumber>, part: Protection) -> bool {
        let pinned = runs(range.clone(), |page| {
            (self.pins.contains(page) && self.pages[page].state.is_resident()).then_some(())
        });
        for (run, ()) in &pinned {
            self.defer(run, part);
        }
        !pinned.is_empty()
    }

    /// Where the store is `full`, pages of a run whose turn it is that were changed stay. Returns whether there are any.
    fn defer_dirty(&mut self, full: bool, range: &Range<PageNumber>, part: Protection) -> bool {
        let changed = |page: PageNumber| {
            (full && self.pages[page].state == PageState::Dirty && !self.pins.contains(page)).then_some(())
        };
        let stay = runs(range.clone(), changed);
        stay.iter().for_each(|(run, ())| self.defer(run, part));
        !stay.is_empty()
    }

    /// How a page left, if it did.
    pub(crate) fn back(&self, page: PageNumber) -> Option<(Protection, u32)> {
        self.pages[page].last_eviction()
    }

    /// Where it was when its turn came.
    pub(crate) fn part(&self, page: PageNumber) -> Protection {
        self.pages[page].part()
    }

    /// So many pages came that left in this way.
    pub(crate) fn refaulted(&mut self, pages: usize, back: Option<(Protection, u32)>) {
        let away = back.map_or(u32::MAX, |(_, left)| self.queue.clock().wrapping_sub(left));
        self.eviction_cost.refaulted(pages, away, self.local);
    }

    /// So many pages came together.
    pub(crate) fn filled(&mut self, pages: usize) {
        self.together += (pages as f64 - self.together) * LATELY;
        // As long as there is room nothing leaves, in either way.
        if self.pages.resident() + self.high_watermark() > self.local {
            self.reclaim_mode.filled(pages, Instant::now());
        }
    }

    /// Many pages come together, so that somebody else should let others leave for them.
    pub(crate) fn fills_many(&self) -> bool {
        self.together >= LARGE_UNIT as f64
    }

    /// Pages that are kept free, so that a fault need not wait for room: twice what comes, and little
    /// enough that the budget is used.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
    pub(crate) fn high_watermark(&self) -> usize {
        ((self.together * 2.0) as usize).clamp(16, 512).min(self.local / 16)
    }

    /// Free pages below which the evictor works. Where few come at once, who serves faults lets pages leave, before and
    /// between them: each time that pages are unmapped interrupts every processor on which a thread of the program or
    /// of ours runs, so that two who serve at once hold each other up. Then the evictor sees to the limit alone.
    pub(crate) fn low_watermark(&self) -> usize {
        if self.fills_many() && self.reclaim_mode.in_background() { self.high_watermark() } else { 0 }
    }

    /// Returns whether waiting for room is in vain: since `stuck` the evicting thread found nothing that it could evict, again
    /// and again, or once if most of local memory is pinned.
    pub(crate) fn nothing_can_leave(&self, stuck: u64) -> bool {
        const PATIENCE: u64 = 200;
        let patience = if self.pins.pages() * 2 > self.local { 1 } else { PATIENCE };
        self.stuck_since_full && self.store_is_full() || self.stuck - stuck >= patience
    }

    /// Notes that there was no room for `pages` pages. More free pages would not help while the store is full.
    pub(crate) fn found_no_room(&mut self, pages: usize) {
        if !self.store_is_full() {
            self.free_reserve.found_no_room(pages);
        }
    }

    /// Notes whether the evicting thread found pages that it could evict.
    pub(crate) fn note_victims(&mut self, any: bool) {
        let stuck = !any && self.leaving == 0;
        self.stuck += u64::from(stuck);
        self.stuck_since_full = stuck && self.store_is_full();
    }

    /// Returns the number of pages that are to be evicted by asynchronous writes, in addition to those that are leaving.
    pub(crate) fn wanted_evictions(&self) -> usize {
        // Of the few pages that can leave while the store is full, none should leave before it was used.
        let reserve = if self.store_is_full() { 1 } else { self.free_reserve.pages(self.local) };
        let reserve = reserve.max(self.room_wanted);
        (self.pages.resident() + reserve).saturating_sub(self.local + self.leaving)
    }

    /// The set of a page belongs to the working set of the compute core that runs.
    pub(crate) fn note_refault_of_unit(&mut self, page: PageNumber) {
        let set = self.units.in_force(page, Access::Dense);
        let (core, count) = &mut self.core;
        if *core != 0 && self.pages.swap_in_during(page / set * set, *core) {
            *count += 1;
        }
    }

    /// Forgets runs of which no page is resident any more, when there are too many of them.
    pub(crate) fn tidy(&mut self) {
        if self.queue.runs() > 2 * self.pages.resident() + 1024 {
            let pages = &self.pages;
            self.queue.retain(|run| run.range().any(|page| pages[page].state.is_resident()));
        }
    }
}
