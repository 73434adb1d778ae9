//! Evicts pages by transfers that end at once: at need, inside a fault, or ahead of need, in a thread of its own.
//!
//! ```text
//!   select_victims: Leaving ──► write_back, outside the lock ──► finish_eviction: SwappedOut or Zero
//!     (victims.rs)                Clean: forgotten      └──► stay: resident again, and deferred
//!                                 Dirty: taken from the program; written if changed
//! ```
//! `async_evict.rs` does the same with several writes in flight.

use crate::page::{PageState, runs};
use crate::pager::{Pager, between};
use crate::state::{IDLE_SLEEP, PagerState, ROOM_WAIT, StateGuard};
use crate::victims::{TRIES, Victims};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::eviction_cost::WriteCosts;
use largesse_store::PageStore;
use std::time::Instant;

/// Largest number of pages of small units that the evicting thread evicts together.
const AHEAD: usize = 64;

/// The outcome of a write-back: which pages it took from the program, and its cost.
pub(crate) struct EvictionResult {
    /// The pages that were taken from the program.
    pub(crate) gone: Vec<Range<PageNumber>>,
    writes: WriteCosts,
    /// Whether some pages stay because the store had no room for them.
    pub(crate) full: bool,
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Evicts pages until local memory has room for `wanted` more. Returns `false` if no page can be evicted. Sets
    /// `now` to the time after the last eviction.
    pub(crate) fn make_room<'a>(
        &'a self,
        mut inner: StateGuard<'a>,
        wanted: usize,
        now: &mut Instant,
    ) -> Result<(StateGuard<'a>, bool), PagerError> {
        let mut patience = inner.patience();
        while inner.pages.resident() + wanted > inner.local {
            let evicted;
            let missing = inner.pages.resident() + wanted - inner.local;
            let together = inner.batch(missing);
            (inner, evicted) = self.evict(inner, together, now)?;
            if evicted {
                continue;
            }
            // Other threads may be evicting pages. If none are, nothing will ever change.
            if patience == 0 || inner.store_is_full(*now) {
                return Ok((inner, false));
            }
            patience -= 1;
            inner = self.io_done.wait_at_most(inner, ROOM_WAIT);
            *now = Instant::now();
        }
        Ok((inner, true))
    }

    /// Evicts at least `wanted` pages together. Returns `false` if no page could be evicted. Sets `now` to the time of
    /// the end.
    fn evict<'a>(
        &'a self,
        mut inner: StateGuard<'a>,
        wanted: usize,
        now: &mut Instant,
    ) -> Result<(StateGuard<'a>, bool), PagerError> {
        let mut tries = TRIES;
        loop {
            let victims = inner.select_victims(wanted, &mut tries, *now);
            if victims.runs.is_empty() {
                return Ok((inner, false));
            }
            drop(inner);
            let began = Instant::now();
            // An error ends the program: no thread reads pages that did not reach the store.
            let result = self.write_back(&victims.runs)?;
            inner = self.lock();
            *now = Instant::now();
            self.commit_eviction(&mut inner, &victims, &result, (began, *now));
            if !result.gone.is_empty() {
                return Ok((inner, true));
            }
            tries = tries.saturating_sub(1);
        }
    }

    /// Ends the transitions of all victims: those that were taken from the program are missing, the others are resident
    /// again.
    fn commit_eviction(
        &self,
        inner: &mut PagerState,
        victims: &Victims,
        EvictionResult { gone, writes, full }: &EvictionResult,
        (began, now): (Instant, Instant),
    ) {
        let pages = gone.iter().map(Range::len).sum();
        inner.eviction_cost.evicted(victims.units, pages, between(began, now), *writes);
        self.finish_eviction(inner, gone);
        self.defer_left(inner, &victims.runs, *full, now);
        self.tell(inner);
        self.io_done.notify_all();
        victims.runs.iter().for_each(|(range, _)| self.wake_waiting(inner, range.clone()));
    }

    /// Makes those of the `victims` resident again that a write-back left in the program, defers and counts them. The
    /// reason is that the store is `full`, or that a device may be writing to them. Returns their runs.
    pub(crate) fn defer_left(
        &self,
        inner: &mut PagerState,
        victims: &[(Range<PageNumber>, PageState)],
        full: bool,
        now: Instant,
    ) -> Vec<Range<PageNumber>> {
        inner.full = full.then_some(now).or(inner.full);
        let why = if full { Count::NoRoom } else { Count::Pinned };
        let mut left = Vec::new();
        for (range, _) in victims {
            let leaving = |page: PageNumber| inner.pages[page].state == PageState::Leaving;
            for (run, part) in runs(range.clone(), |page| leaving(page).then(|| inner.pages[page].part())) {
                inner.stay(&run, part, now);
                self.count(run.start, why, run.len() as u64);
                left.push(run);
            }
        }
        left
    }

    /// Takes `Leaving` pages from the program, and writes the changed ones to the store. Pages stay if a device may be
    /// writing to them, or if the store has no room for them.
    pub(crate) fn write_back(
        &self,
        victims: &[(Range<PageNumber>, PageState)],
    ) -> Result<EvictionResult, PagerError> {
        let mut gone = self.forget_clean(victims)?;
        let (mut writes, mut full) = (WriteCosts::default(), false);
        for (range, _) in victims.iter().filter(|(_, state)| *state != PageState::Clean) {
            let began = Instant::now();
            self.kernel.take(range.clone(), &mut |first, bytes| {
                let part = first..first + bytes.len() / self.kernel.page();
                match self.write_changed(&part, bytes) {
                    Err(PagerError::Store(error)) if error.is_full() => {
                        full = true;
                        self.kernel.fill(part.start, bytes, false)?;
                    }
                    written => {
                        written?;
                        gone.push(part);
                    }
                }
                Ok(())
            })?;
            writes.add_write(range.len(), between(began, Instant::now()));
        }
        Ok(EvictionResult { gone, writes, full })
    }

    /// Writes pages that were taken from the program to the store, if they were changed. Pages that are zero, unchanged
    /// or unwanted need no write.
    fn write_changed(&self, range: &Range<PageNumber>, bytes: &[u8]) -> Result<(), PagerError> {
        let size = self.kernel.page();
        let contents = self.contents_of(range.start, bytes);
        let changed = runs(range.clone(), |page| contents[page - range.start].changed.then_some(()));
        for (run, ()) in &changed {
            let bytes = &bytes[(run.start - range.start) * size..(run.end - range.start) * size];
            let written =
                self.write_times.timed(&self.counters, || self.store.write((run.start * size) as u64, bytes));
            if let Err(error) = written {
                let mut inner = self.lock();
                changed.iter().for_each(|(run, ())| inner.pages.forget_stored(run.clone()));
                return Err(error.into());
            }
            self.count(run.start, Count::WriteBacks, run.len() as u64);
            self.count(run.start, Count::BytesOut, bytes.len() as u64);
        }
        self.lock().pages.note_contents(range.start, &contents);
        Ok(())
    }

    /// Evicts one run of pages if there is little free room. It is for the handler thread, while no fault waits.
    /// Returns `false` if there was nothing to do.
    pub(crate) fn reclaim(&self) -> Result<bool, PagerError> {
        let inner = self.lock();
        if !inner.reclaim_mode.in_background()
            || inner.fills_are_large()
            || inner.pages.resident() + inner.high_watermark() <= inner.local
        {
            return Ok(false);
        }
        // One run: the next fault should not wait for more.
        Ok(self.evict(inner, 1, &mut Instant::now())?.1)
    }

    /// Keeps some pages free ahead of need, until `stop` returns true. The evicting thread runs this.
    pub fn reclaim_in_background(&self, stop: impl Fn() -> bool) -> Result<(), PagerError> {
        let mut inner = self.lock();
        while !stop() {
            if inner.has_untouched_to_check() {
                inner = self.evict_untouched(inner)?;
                continue;
            }
            if inner.pages.resident() + inner.low_watermark() <= inner.local {
                inner = self.reclaim_needed.wait_at_most(inner, IDLE_SLEEP.into());
                continue;
            }
            let evicted;
            let together = inner.batch(AHEAD);
            (inner, evicted) = self.evict(inner, together, &mut Instant::now())?;
            if !evicted {
                inner = self.io_done.wait_at_most(inner, 1);
            }
        }
        Ok(())
    }
}
