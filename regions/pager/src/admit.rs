//! Paging in, before the transfer: plans which pages are filled, and admits the fill if local memory has room for them.

use crate::incoming::{Admission, FillPlan, FillReason, FillRequest, FrameSource, Incoming, PagePlan};
use crate::page::{PageState, Touch, runs};
use crate::pager::Pager;
use crate::state::{PagerState, WRITE_AHEAD};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::time::Instant;

impl PagerState {
    /// Plans the fill of `range`, whose pages are all missing and in one state.
    fn plan(&self, request: &FillRequest, range: Range<PageNumber>, now: Instant) -> FillPlan {
        let (touch, full) = (request.touch, self.store_is_full(now));
        let units = self.units_in(&range, request.access);
        let last_eviction =
            |unit: &Range<PageNumber>| self.pages[touch.page.clamp(unit.start, unit.end - 1)].last_eviction();
        let evictions = units.iter().map(last_eviction).collect();
        let pages = range.clone().map(|page| self.plan_page(page, request, full)).collect();
        FillPlan { range, from: self.pages[touch.page].state, pages, units, evictions }
    }

    /// Plans the fill of one page. It may be written to at once if it is new, was changed during one of its last two
    /// residencies, or lies less than `WRITE_AHEAD` pages after the page whose write faulted: this spares a second
    /// fault. Former changes do not count while the program only reads. If the page turns out unchanged, its eviction
    /// needs no write. While the store is `full`, only pages that are known to be unchanged can be evicted. A new page
    /// that was only read is therefore write-protected then, so that a write to it is a second fault.
    fn plan_page(&self, number: PageNumber, request: &FillRequest, full: bool) -> PagePlan {
        let (page, touch) = (&self.pages[number], request.touch);
        let dirty = if page.state == PageState::Zero {
            touch.write || !full
        } else {
            let near = touch.write && (touch.page..touch.page + WRITE_AHEAD).contains(&number);
            request.frames == FrameSource::Evicted || near || page.changed > 0 && self.only_read.is_none()
        };
        PagePlan { sum: page.sum, dirty }
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Begins the fill of the pages that a request asks for, if local memory has room for them at the time `now`.
    pub(crate) fn admit(
        &self,
        inner: &mut PagerState,
        request: &FillRequest,
        now: Instant,
    ) -> Result<Admission, PagerError> {
        let (touch, access) = (request.touch, request.access);
        let mapped = usize::try_from(self.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
        inner.mapped = mapped / self.kernel.page();
        if inner.near.contains(&touch.page) {
            return Ok(Admission::Resident);
        }
        match inner.pages[touch.page].state {
            PageState::Filling | PageState::Leaving => {
                inner.pages.wait_for(touch.page);
                return Ok(Admission::InFlight);
            }
            PageState::Dirty | PageState::Outside => return Ok(Admission::Resident),
            PageState::Clean => {
                self.touch_clean(inner, touch)?;
                return Ok(Admission::Resident);
            }
            PageState::Zero | PageState::SwappedOut => {}
        }
        let range = inner.fill_range(touch.page, access, request.upto, &self.bounds.around(touch.page));
        if inner.occupied() + range.len() > inner.local {
            return Ok(Admission::NoRoom(range.len()));
        }
        Ok(Admission::Begun(self.begin_fill(inner, request, range, now)))
    }

    /// Begins the fill of one page although local memory is full and nothing can be evicted, because all other pages
    /// are in flight or pinned. Returns `None` if the page is no longer missing.
    pub(crate) fn admit_over_limit(
        &self,
        inner: &mut PagerState,
        request: &FillRequest,
        now: Instant,
    ) -> Option<Incoming> {
        let page = request.touch.page;
        let request = FillRequest { reason: FillReason::Fault, ..*request };
        inner.pages[page].state.is_missing().then(|| {
            self.count(page, Count::OverLimit, 1);
            self.begin_fill(inner, &request, page..page + 1, now)
        })
    }

    /// Makes missing pages `Filling`, and notes that they are refaults if they were evicted before.
    fn begin_fill(
        &self,
        inner: &mut PagerState,
        request: &FillRequest,
        range: Range<PageNumber>,
        now: Instant,
    ) -> Incoming {
        let &FillRequest { touch, access, reason, mut frames, .. } = request;
        // If the store is full, only pages that are known to be unchanged can be evicted: these must be protected.
        if !self.kernel.reuses(range.len()) || inner.store_is_full(now) || inner.only_read.is_some() {
            frames = FrameSource::Allocated;
        }
        let mut plan = inner.plan(&FillRequest { frames, ..*request }, range, now);
        if reason == FillReason::Recall {
            // Pages that no thread needs yet say nothing about refaults.
            plan.evictions.fill(None);
        }
        let first = plan.range.start;
        let bytes = (plan.range.len() * self.kernel.page()) as u64;
        let stored = plan.from == PageState::SwappedOut;
        if stored {
            let used = if reason == FillReason::Recall { 0 } else { plan.units.len() };
            for (unit, eviction) in plan.units[..used].iter().zip(&plan.evictions) {
                inner.note_swap_in(unit.start);
                inner.note_refault(unit.len(), *eviction);
            }
            self.uncount(first, Count::StoredBytes, bytes);
        }
        for unit in &plan.units {
            let prefetched = match reason {
                FillReason::Fault => stored && !unit.contains(&touch.page),
                FillReason::Prefetch => stored,
                FillReason::Recall => false,
            };
            inner.pages.begin_fill(unit.clone(), access, prefetched);
            if prefetched {
                self.count(unit.start, Count::Prefetched, unit.len() as u64);
            }
        }
        inner.note_fill(plan.range.len(), now);
        self.kernel.serve_on_cpu(inner.reclaim_mode.on_cpu());
        self.count(first, Count::ResidentBytes, bytes);
        Incoming { touch, access, plan }
    }

    /// Handles a touch of a `Clean` page. A write makes it `Dirty`, together with near pages that will probably be
    /// written to, too. A read needs nothing: the page was filled after the fault had been reported.
    fn touch_clean(&self, inner: &mut PagerState, touch: Touch) -> Result<(), PagerError> {
        if !touch.write {
            return Ok(());
        }
        self.count(touch.page, Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let unit = inner.units.at(touch.page, Access::Dense);
        let first = (touch.page / unit * unit).max(bounds.start);
        let end = (first + unit).min(bounds.end);
        let near = touch.page..touch.page + WRITE_AHEAD;
        let written = runs(first..end, |number| {
            let page = &inner.pages[number];
            (page.state == PageState::Clean && (near.contains(&number) || page.changed > 0)).then_some(())
        });
        for (range, ()) in written {
            // Both under the lock, so that no eviction takes the pages for unchanged ones in between.
            inner.pages.allow_writes(range.clone());
            self.kernel.protect(range, false)?;
        }
        Ok(())
    }
}
