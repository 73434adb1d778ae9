//! The way out: pages leave when others need their place.

use crate::page::{PageState, checksum, is_zero, runs};
use crate::page_table::Contents;
use crate::pager::{Pager, nanoseconds};
use crate::state::PagerState;
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::eviction_cost::WriteCosts;
use largesse_store::PageStore;
use std::sync::MutexGuard;
use std::time::Instant;

/// Pages of small sets that leave at once when it is done ahead of need.
const MANY: usize = 64;
/// Runs that are tried, one after the other, when none of their pages can leave.
const TRIES: usize = 32;

/// What became of pages that were to leave.
pub(crate) struct EvictionResult {
    /// These left.
    pub(crate) gone: Vec<Range<PageNumber>>,
    writes: WriteCosts,
    /// Some stayed because the store had no room.
    full: bool,
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Lets pages leave until `wanted` more fit. `false`: nothing can leave.
    pub(crate) fn make_room<'a>(
        &'a self,
        mut inner: MutexGuard<'a, PagerState>,
        wanted: usize,
    ) -> Result<(MutexGuard<'a, PagerState>, bool), PagerError> {
        // Where much is pinned, waiting for others to carry pages out is likely to be in vain.
        let mut patience = if inner.pins.pages() * 2 > inner.local { 1 } else { 200 };
        while inner.pages.resident() + wanted > inner.local {
            let leaving;
            let missing = inner.pages.resident() + wanted - inner.local;
            let together = inner.batch(missing);
            (inner, leaving) = self.evict(inner, together)?;
            if leaving {
                continue;
            }
            // Others are carrying pages out; if none are, nothing will ever change.
            if patience == 0 || inner.store_is_full() {
                return Ok((inner, false));
            }
            patience -= 1;
            inner = self.io_done.wait_at_most(inner, 1);
        }
        Ok((inner, true))
    }

    /// Lets runs of at least `wanted` pages leave, together. `false`: there are none that could.
    fn evict<'a>(
        &'a self,
        mut inner: MutexGuard<'a, PagerState>,
        wanted: usize,
    ) -> Result<(MutexGuard<'a, PagerState>, bool), PagerError> {
        let mut tries = TRIES;
        loop {
            let (going, units) = inner.select_victims(wanted, &mut tries);
            if going.is_empty() {
                return Ok((inner, false));
            }
            drop(inner);
            let began = Instant::now();
            // A trouble ends the program: until then nobody gets what did not reach the store.
            let EvictionResult { gone, writes, full } = self.write_back(&going)?;
            inner = self.lock();
            inner.full = full.then(Instant::now).or(inner.full);
            inner.eviction_cost.evicted(units, gone.iter().map(Range::len).sum(), nanoseconds(began), writes);
            self.finish_eviction(&mut inner, &gone);
            for (range, _) in &going {
                let still = |page: PageNumber| inner.pages[page].state == PageState::Leaving;
                let stay = runs(range.clone(), |page| still(page).then(|| inner.part(page)));
                for (run, part) in stay {
                    inner.stay(&run, part);
                    let why = if full { Count::NoRoom } else { Count::Pinned };
                    self.count(run.start, why, run.len() as u64);
                }
            }
            self.tell(&inner);
            self.io_done.notify_all();
            going.iter().for_each(|(range, _)| self.wake_waiting(&mut inner, range.clone()));
            if !gone.is_empty() {
                return Ok((inner, true));
            }
            tries = tries.saturating_sub(1);
        }
    }

    /// The flight of these pages is over: who met them in it tries again.
    pub(crate) fn wake_waiting(&self, inner: &mut PagerState, pages: Range<PageNumber>) {
        for number in pages {
            if inner.pages.take_waiting(number) {
                self.kernel.wake(number..number + 1);
            }
        }
    }

    /// Notes that pages are not here any more.
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

    /// Writes what must be written of pages that are leaving. Not all leave: what a device may be writing to stays, and what
    /// the store has no room for.
    pub(crate) fn write_back(
        &self,
        going: &[(Range<PageNumber>, PageState)],
    ) -> Result<EvictionResult, PagerError> {
        let clean = going.iter().filter(|(_, state)| *state == PageState::Clean);
        let mut gone: Vec<_> = clean.map(|(range, _)| range.clone()).collect();
        self.kernel.forget(&gone)?;
        let (mut writes, mut full) = (WriteCosts::default(), false);
        for (range, _) in going.iter().filter(|(_, state)| *state != PageState::Clean) {
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
            writes.add_write(range.len(), nanoseconds(began));
        }
        Ok(EvictionResult { gone, writes, full })
    }

    /// Writes pages that were taken from the program to the store: none that is zero or unchanged, none that nobody wants.
    fn write_changed(&self, range: &Range<PageNumber>, bytes: &[u8]) -> Result<(), PagerError> {
        let size = self.kernel.page();
        let contents = self.contents_of(range.start, bytes);
        for (run, ()) in runs(range.clone(), |page| contents[page - range.start].changed.then_some(())) {
            let bytes = &bytes[(run.start - range.start) * size..(run.end - range.start) * size];
            if let Err(error) = self.store.write((run.start * size) as u64, bytes) {
                let changed = runs(range.clone(), |page| contents[page - range.start].changed.then_some(()));
                changed.iter().for_each(|(run, ())| self.forget_stored(run));
                return Err(error.into());
            }
            self.count(run.start, Count::WriteBacks, run.len() as u64);
            self.count(run.start, Count::BytesOut, bytes.len() as u64);
        }
        self.note_contents(range, &contents);
        Ok(())
    }

    /// Compares pages that were taken from the program, from `first` on, with what the store holds of them.
    pub(crate) fn contents_of(&self, first: PageNumber, bytes: &[u8]) -> Vec<Contents> {
        let size = self.kernel.page();
        let range = first..first + bytes.len() / size;
        let before: Vec<_> = {
            let inner = self.lock();
            inner.pages[range].iter().map(|page| (page.unwanted, page.stored.then_some(page.sum))).collect()
        };
        let page = |(bytes, &(unwanted, stored)): (&[u8], &(bool, Option<u64>))| {
            let sum = (!unwanted && !is_zero(bytes)).then(|| checksum(bytes));
            Contents { sum, changed: sum.is_some() && sum != stored }
        };
        bytes.chunks_exact(size).zip(&before).map(page).collect()
    }

    /// Notes that the store holds these contents, or that zero pages need none.
    pub(crate) fn note_contents(&self, range: &Range<PageNumber>, contents: &[Contents]) {
        debug_assert_eq!(range.len(), contents.len());
        self.lock().pages.note_contents(range.start, contents);
    }

    /// Notes that the contents of these pages in the store are undefined, after a write that failed.
    pub(crate) fn forget_stored(&self, range: &Range<PageNumber>) {
        self.lock().pages.forget_stored(range.clone());
    }

    /// Lets pages leave if there is little room. `false`: there was nothing to do.
    pub(crate) fn reclaim(&self) -> Result<bool, PagerError> {
        let inner = self.lock();
        if !inner.reclaim_mode.in_background()
            || inner.fills_many()
            || inner.pages.resident() + inner.high_watermark() <= inner.local
        {
            return Ok(false);
        }
        // One run: the next fault should not wait for more.
        Ok(self.evict(inner, 1)?.1)
    }

    /// Keeps a little room ahead of need, until `stop` says so. For a thread of its own.
    pub fn reclaim_in_background(&self, stop: impl Fn() -> bool) -> Result<(), PagerError> {
        let mut inner = self.lock();
        while !stop() {
            if inner.has_untouched_to_check() {
                inner = self.evict_untouched(inner)?;
                continue;
            }
            if inner.pages.resident() + inner.low_watermark() <= inner.local {
                inner = self.reclaim_needed.wait_at_most(inner, 500);
                continue;
            }
            let left;
            let together = inner.batch(MANY);
            (inner, left) = self.evict(inner, together)?;
            if !left {
                inner = self.io_done.wait_at_most(inner, 1);
            }
        }
        Ok(())
    }
}
