//! Decides which pages are evicted next and which of them must be written, and ends their eviction.
//!
//! The order is that of [`ReplacementQueue`](largesse_policy::replacement::ReplacementQueue): a segmented LRU (Karedla,
//! Love and Wherry 1994) that is driven by refault distances, which `replacement.rs` of `largesse_policy` explains.
//! This file leaves out the pages that cannot be evicted now: pinned ones, those with a write in flight (`refill.rs`),
//! and changed ones while the store is full. They are *deferred*, which means that they can be victims again after
//! `RETRY_AFTER`. If they were tried again at once, they would hold up the pages that can be evicted.

use crate::page::{PageState, checksum, is_zero, number, runs};
use crate::page_table::Contents;
use crate::pager::Pager;
use crate::state::{PagerState, RETRY_AFTER};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::replacement::{PageRun, Protection};
use largesse_policy::streams::Access;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_store::PageStore;
use std::time::Instant;

/// Number of attempts in vain after which an eviction gives up: runs of the replacement queue without a page that can
/// be evicted, and write-backs that took no page out of the program.
pub(crate) const TRIES: usize = 32;

/// Pages that were chosen for eviction and made `Leaving`.
#[derive(Debug, Default)]
pub(crate) struct Victims {
    /// Runs of neighbouring pages in one state, in the order of page numbers, each with the state before.
    pub(crate) runs: Vec<(Range<PageNumber>, PageState)>,
    /// Number of runs of the replacement queue, which are pages that were filled together, with pages among the
    /// victims.
    pub(crate) units: usize,
}

impl PagerState {
    /// Chooses at least `wanted` pages for eviction, as far as there are any, and makes them `Leaving`. Subtracts 1
    /// from `tries` for each run of the replacement queue of which no page can be evicted, and stops at 0.
    pub(crate) fn select_victims(&mut self, wanted: usize, tries: &mut usize, now: Instant) -> Victims {
        let (mut victims, mut pages) = (Victims::default(), 0);
        if self.deferred_since.is_some_and(|since| now.saturating_duration_since(since) >= RETRY_AFTER) {
            self.retry_all_deferred();
        }
        while pages < wanted && *tries > 0 {
            let Some((run, part)) = self.next_victim() else { break };
            let (parts, some_stay) = self.evictable(run, part, now);
            // A run without resident pages was evicted in another way, and counts as no try.
            *tries -= usize::from(some_stay && parts.is_empty());
            victims.units += usize::from(!parts.is_empty());
            for (range, state) in parts {
                if state == PageState::Clean {
                    self.pages.note_unchanged(range.clone());
                }
                self.pages.begin_evict(range.clone(), part);
                pages += range.len();
                victims.runs.push((range, state));
            }
        }
        join_neighbours(&mut victims.runs);
        victims
    }

    /// Returns the parts of a run that can be evicted, each with its state, and defers the rest. The flag is true if
    /// any page was deferred.
    fn evictable(
        &mut self,
        run: PageRun,
        part: Protection,
        now: Instant,
    ) -> (Vec<(Range<PageNumber>, PageState)>, bool) {
        let (range, full) = (run.range(), self.store_is_full(now));
        let is_held = |page| self.pins.contains(page) || self.pages[page].in_write;
        let held =
            runs(range.clone(), |page| (is_held(page) && self.pages[page].state.is_resident()).then_some(()));
        let unwritable = runs(range.clone(), |page| {
            let changed = full && self.pages[page].state == PageState::Dirty;
            (changed && !is_held(page)).then_some(())
        });
        let some_stay = !held.is_empty() || !unwritable.is_empty();
        let parts = runs(range, |page| {
            let state = self.pages[page].state;
            let may = !some_stay || !is_held(page);
            let goes = state == PageState::Clean || state == PageState::Dirty && !full;
            (may && goes).then_some(state)
        });
        for (run, ()) in held.iter().chain(&unwritable) {
            self.defer(run, part, now);
        }
        (parts, some_stay)
    }

    /// Removes the next run from the replacement queue, and returns it with its part of the queue. If the queue is
    /// empty, first adds the speculative pages that were not checked yet, and after these the deferred pages.
    fn next_victim(&mut self) -> Option<(PageRun, Protection)> {
        while self.queue.is_empty()
            && let Some(pages) = self.speculative.pop()
        {
            self.enqueue_resident(&pages);
        }
        if self.queue.is_empty() {
            self.retry_all_deferred();
        }
        self.queue.select_victim(self.local)
    }

    /// Adds the resident ones of the new pages `pages` to the replacement queue, as one run for each transfer unit.
    pub(crate) fn enqueue_resident(&mut self, pages: &Range<PageNumber>) {
        for unit in self.units_in(pages, Access::Dense) {
            let resident = runs(unit, |page| self.pages[page].state.is_resident().then_some(()));
            for (run, ()) in resident {
                let run = PageRun { first: number(run.start), pages: number(run.len()) };
                self.queue.insert(run, self.local, None);
            }
        }
    }

    /// Makes `Leaving` pages that cannot be evicted now resident again, and defers them.
    pub(crate) fn stay(&mut self, range: &Range<PageNumber>, part: Protection, now: Instant) {
        self.pages.cancel_evict(range.clone(), PageState::Dirty);
        self.defer(range, part, now);
    }

    fn defer(&mut self, range: &Range<PageNumber>, part: Protection, now: Instant) {
        self.queue.defer(PageRun { first: number(range.start), pages: number(range.len()) }, part);
        self.deferred_since.get_or_insert(now);
    }

    fn retry_all_deferred(&mut self) {
        self.queue.retry_deferred(&(0..PageNumber::MAX), self.local);
        self.deferred_since = None;
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Takes the `Clean` ones of the `victims` from the program, which need no write. Returns their runs.
    pub(crate) fn forget_clean(
        &self,
        victims: &[(Range<PageNumber>, PageState)],
    ) -> Result<Vec<Range<PageNumber>>, PagerError> {
        let clean = victims.iter().filter(|(_, state)| *state == PageState::Clean);
        let clean: Vec<_> = clean.map(|(range, _)| range.clone()).collect();
        self.kernel.forget(&clean)?;
        Ok(clean)
    }

    /// Returns for pages that were taken from the program, from `first` on, their checksums, and whether these differ
    /// from the checksums of the store's contents.
    pub(crate) fn contents_of(&self, first: PageNumber, bytes: &[u8]) -> Vec<Contents> {
        let size = self.kernel.page();
        let range = first..first + bytes.len() / size;
        let before: Vec<_> = {
            let inner = self.lock();
            let stored = inner.pages[range].iter();
            stored.map(|page| (page.unwanted, page.stored.then_some(page.sum))).collect()
        };
        let page = |(bytes, &(unwanted, stored)): (&[u8], &(bool, Option<u64>))| {
            let sum = (!unwanted && !is_zero(bytes)).then(|| checksum(bytes));
            Contents { sum, changed: sum.is_some() && sum != stored }
        };
        bytes.chunks_exact(size).zip(&before).map(page).collect()
    }

    /// Makes the `Leaving` pages `gone` missing, and counts them.
    pub(crate) fn finish_eviction(&self, inner: &mut PagerState, gone: &[Range<PageNumber>]) {
        let clock = inner.queue.clock();
        let size = self.kernel.page() as u64;
        for range in gone {
            let stored = inner.pages.end_evict(range.clone(), clock) as u64;
            for (range, access) in runs(range.clone(), |page| Some(inner.pages[page].access)) {
                inner.units.evicted(&range, access);
            }
            let gone = range.len() as u64;
            self.uncount(range.start, Count::ResidentBytes, gone * size);
            self.count(range.start, Count::StoredBytes, stored * size);
            self.count(range.start, Count::Evictions, gone);
        }
    }

    /// Wakes the threads that touched these pages while they were in flight.
    pub(crate) fn wake_waiting(&self, inner: &mut PagerState, pages: Range<PageNumber>) {
        for number in pages {
            if inner.pages.take_waiting(number) {
                self.kernel.wake(number..number + 1);
            }
        }
    }
}

/// Sorts runs by their pages, and joins neighbours in one state, up to the largest transfer.
fn join_neighbours(runs: &mut Vec<(Range<PageNumber>, PageState)>) {
    runs.sort_unstable_by_key(|(range, _)| range.start);
    runs.dedup_by(|next, before| {
        let fits = before.0.len() + next.0.len() <= MAX_TRANSFER;
        let follows = fits && before.0.end == next.0.start && before.1 == next.1;
        if follows {
            before.0.end = next.0.end;
        }
        follows
    });
}
