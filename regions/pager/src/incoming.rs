//! Pages on their way in: admitted, transferred, and resident.
//!
//! ```text
//!   admit ──room──► begin_fill: Filling ──► the transfer, outside of the lock ──► end_fill: Clean or Dirty
//!     ├── no room: the caller evicts, and asks again
//!     └── settled: the page is resident, or on its way
//! ```
//! The caller makes the transfer: at once (`page_in.rs`), or while it serves other faults (`async_fill.rs`).

use crate::page::{PageState, Touch, number, runs};
use crate::pager::Pager;
use crate::state::{FillPlan, PagerState, WRITE_AHEAD};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::{PageRun, Protection};
use largesse_policy::streams::Access;
use largesse_policy::transfer::{TransferUnits, first_unit};
use largesse_store::PageStore;

/// Pages that are `Filling`, with what is needed when the transfer has ended.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) range: Range<PageNumber>,
    /// The state of all pages before: `Zero` or `SwappedOut`.
    pub(crate) from: PageState,
    pub(crate) touch: Touch,
    pub(crate) plan: Vec<FillPlan>,
    access: Access,
    /// The transfer units of `range`.
    units: Vec<Range<PageNumber>>,
    /// How each unit was evicted, if it was.
    evicted: Vec<Option<(Protection, u32)>>,
}

/// The answer to a request for a page.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The page is resident, so that threads that wait for these pages can be woken; or it is in flight, and they will be.
    Settled(Range<PageNumber>),
    /// The page and others are to be transferred.
    Begun(Incoming),
    /// Local memory has no room for this number of pages.
    NoRoom(usize),
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Admits the unit of a page, and the units that follow it up to the page `upto`, if there is room. `prefetch`: no thread
    /// waits for any of them. `reuses`: the pages may get frames of evicted pages.
    pub(crate) fn admit(
        &self,
        inner: &mut PagerState,
        (touch, access): (Touch, Access),
        upto: PageNumber,
        prefetch: bool,
        reuses: bool,
    ) -> Result<Admission, PagerError> {
        let mapped = usize::try_from(self.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
        inner.mapped = mapped / self.kernel.page();
        match inner.pages[touch.page].state {
            PageState::Filling | PageState::Leaving => {
                inner.pages.wait_for(touch.page);
                return Ok(Admission::Settled(0..0));
            }
            PageState::Dirty | PageState::Outside => {
                return Ok(Admission::Settled(touch.page..touch.page + 1));
            }
            PageState::Clean => {
                self.touch_clean(inner, touch)?;
                return Ok(Admission::Settled(touch.page..touch.page + 1));
            }
            PageState::Zero | PageState::SwappedOut => {}
        }
        let range = inner.fill_range(touch.page, access, upto, &self.bounds.around(touch.page));
        if inner.pages.resident() + range.len() > inner.local {
            return Ok(Admission::NoRoom(range.len()));
        }
        Ok(Admission::Begun(self.begin_fill(inner, range, (touch, access), prefetch, reuses)))
    }

    /// Admits a page alone although local memory is full, because nothing can be evicted: everything is in flight or pinned.
    /// `None` if the page is no longer missing.
    pub(crate) fn admit_over_limit(
        &self,
        inner: &mut PagerState,
        (touch, access): (Touch, Access),
        reuses: bool,
    ) -> Option<Incoming> {
        self.count(touch.page, Count::OverLimit, 1);
        let missing = inner.pages[touch.page].state.is_missing();
        let page = touch.page..touch.page + 1;
        missing.then(|| self.begin_fill(inner, page, (touch, access), false, reuses))
    }

    /// Makes pages `Filling`: from now on they take room, and threads that touch them wait.
    fn begin_fill(
        &self,
        inner: &mut PagerState,
        range: Range<PageNumber>,
        (touch, access): (Touch, Access),
        prefetch: bool,
        reuses: bool,
    ) -> Incoming {
        let from = inner.pages[touch.page].state;
        let bytes = (range.len() * self.kernel.page()) as u64;
        let units = inner.units_in(&range, access);
        let evicted: Vec<_> =
            units.iter().map(|unit| inner.back(touch.page.clamp(unit.start, unit.end - 1))).collect();
        // If the store is full, only pages that are known to be unchanged can be evicted.
        let reuses = reuses && self.kernel.reuses(range.len()) && !inner.store_is_full();
        let plan = range.clone().map(|page| inner.plan(page, touch, reuses)).collect();
        if from == PageState::SwappedOut {
            for (unit, back) in units.iter().zip(&evicted) {
                inner.note_refault_of_unit(unit.start);
                inner.refaulted(unit.len(), *back);
            }
            self.uncount(range.start, Count::StoredBytes, bytes);
        }
        for unit in &units {
            let prefetched = from == PageState::SwappedOut && (prefetch || !unit.contains(&touch.page));
            inner.pages.begin_fill(unit.clone(), access, prefetched);
            if prefetched {
                self.count(unit.start, Count::Prefetched, unit.len() as u64);
            }
        }
        inner.filled(range.len());
        self.kernel.serve_on_cpu(inner.reclaim_mode.on_cpu());
        self.count(range.start, Count::ResidentBytes, bytes);
        Incoming { range, from, touch, plan, access, units, evicted }
    }

    /// Notes that pages were filled, and that the program waited `ns` nanoseconds for them. Returns whether threads wait for
    /// them that must be woken.
    pub(crate) fn end_fill(&self, incoming: Incoming, ns: u64) -> bool {
        let Incoming { range, from, touch, plan, access, units, evicted } = incoming;
        let mut inner = self.lock();
        let mut waited = false;
        for number in range.clone() {
            let dirty = if from == PageState::Zero { touch.write } else { plan[number - range.start].dirty };
            waited |= inner.pages.end_fill(number, dirty);
        }
        let costs = inner.eviction_cost.costs(self.lap(touch.page));
        let (local, mapped) = (inner.local, inner.mapped);
        let unseen = from == PageState::Zero && evicted.iter().all(Option::is_none);
        let later = unseen && inner.check_later(range.clone());
        for (unit, back) in units.iter().zip(evicted).filter(|_| !later) {
            inner.queue.insert(PageRun { first: number(unit.start), pages: number(unit.len()) }, local, back);
            // New pages are filled once, and say nothing about refaults.
            if let (TransferUnits::Auto(regions), PageState::SwappedOut) = (&mut inner.units, from) {
                let ns = ns * unit.len() as u64 / range.len() as u64;
                let within = self.bounds.around(unit.start);
                regions.filled(
                    (unit.start, unit.len()),
                    access,
                    &within,
                    ns,
                    first_unit(local, mapped),
                    costs,
                );
            }
        }
        inner.tidy();
        self.tell(&inner);
        if let Some(words) = self.words_of(touch.page) {
            self.publish_units(&words.counts, &inner, &self.bounds.around(touch.page));
        }
        drop(inner);
        self.io_done.notify_all();
        waited
    }

    /// Returns the number of pages with contents in the segment of a page, resident or not: the length of an epoch of the
    /// transfer sizes' duel.
    fn lap(&self, page: PageNumber) -> usize {
        let counts = self.words_of(page).map_or(&self.counters, |words| &words.counts);
        let bytes = counts.get(Count::StoredBytes) + counts.get(Count::ResidentBytes);
        usize::try_from(bytes).unwrap_or(0) / self.kernel.page()
    }

    /// Handles a touch of a resident, clean page: a write makes it and its next neighbours dirty; a read was only late.
    fn touch_clean(&self, inner: &mut PagerState, touch: Touch) -> Result<(), PagerError> {
        if !touch.write {
            return Ok(());
        }
        self.count(touch.page, Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let set = inner.units.at(touch.page, Access::Dense);
        let first = (touch.page / set * set).max(bounds.start);
        let end = (first + set).min(bounds.end);
        let near = touch.page..touch.page + WRITE_AHEAD;
        let written = runs(first..end, |number| {
            let page = &inner.pages[number];
            (page.state == PageState::Clean && (near.contains(&number) || page.changed > 0)).then_some(())
        });
        for (range, ()) in written {
            // Under the lock: nobody may take the pages for clean ones in between.
            inner.pages.allow_writes(range.clone());
            self.kernel.protect(range, false)?;
        }
        Ok(())
    }
}
