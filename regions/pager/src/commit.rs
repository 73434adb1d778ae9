//! Paging in, after the transfer: the bytes are checked and put in place, the pages become resident, and the policies
//! learn what the fill cost.

use crate::incoming::{FillPlan, Incoming, PagePlan};
use crate::page::{PageState, checksum, number, runs};
use crate::pager::Pager;
use crate::state::PagerState;
use crate::{Count, FillOrder, Kernel, PagerError};
use core::ops::Range;
use largesse_arena::Reads;
use largesse_policy::PageNumber;
use largesse_policy::replacement::PageRun;
use largesse_policy::transfer::{TransferUnits, first_unit};
use largesse_store::PageStore;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Compares pages that were read from the store with the checksums of what was written. Returns an error that ends
    /// the program if one differs.
    pub(crate) fn check(
        &self,
        range: &Range<PageNumber>,
        plan: &[PagePlan],
        bytes: &[u8],
    ) -> Result<(), PagerError> {
        self.count(range.start, Count::Fills, range.len() as u64);
        self.count(range.start, Count::BytesIn, bytes.len() as u64);
        for ((number, plan), bytes) in range.clone().zip(plan).zip(bytes.chunks_exact(self.kernel.page())) {
            let read = checksum(bytes);
            if read != plan.sum {
                return Err(PagerError::Damaged { page: number, sent: plan.sum, read });
            }
        }
        Ok(())
    }

    /// Fills the pages of `order` with `bytes`, writable or write-protected as `plan` says of each page.
    pub(crate) fn fill_from(
        &self,
        order: &FillOrder,
        plan: &[PagePlan],
        bytes: &[u8],
    ) -> Result<(), PagerError> {
        let (range, page) = (order.range(), self.kernel.page());
        let put = |part: &Range<PageNumber>| {
            for (part, dirty) in runs(part.clone(), |number| Some(plan[number - range.start].dirty)) {
                let at = (part.start - range.start) * page;
                self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
            }
            Ok(())
        };
        Ok(order.each(put, |woken| self.kernel.wake(woken))?)
    }

    /// Fills new pages with zeros. If they are `dirty`, the program may write to them.
    pub(crate) fn fill_zero(&self, order: &FillOrder, dirty: bool, zeros: &[u8]) -> Result<(), PagerError> {
        let put = |part: &Range<PageNumber>| {
            let len = part.len() * self.kernel.page();
            self.kernel.fill(part.start, &zeros[..len], !dirty)
        };
        order.each(put, |woken| self.kernel.wake(woken))?;
        let range = order.range();
        self.count(range.start, Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Makes `Filling` pages resident after their transfer, for which the program waited `ns` nanoseconds. Returns
    /// whether any thread waits for them and must be woken.
    pub(crate) fn commit(&self, incoming: Incoming, ns: u64) -> bool {
        let Incoming { touch, plan, .. } = &incoming;
        let mut inner = self.lock();
        let mut waited = false;
        for (page, plan_of_page) in plan.range.clone().zip(&plan.pages) {
            waited |= inner.pages.end_fill(page, plan_of_page.dirty);
        }
        let new = plan.from == PageState::Zero && plan.evictions.iter().all(Option::is_none);
        if !(new && inner.check_later(plan.range.clone())) {
            self.enqueue(&mut inner, &incoming, ns);
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

    /// Adds the units of a fill to the replacement queue, and records their cost for the choice of the transfer size.
    fn enqueue(&self, inner: &mut PagerState, incoming: &Incoming, ns: u64) {
        let Incoming { touch, access, plan: FillPlan { range, from, units, evictions, .. } } = incoming;
        let costs = inner.eviction_cost.costs(self.epoch(touch.page));
        let (local, mapped) = (inner.local, inner.mapped);
        for (unit, eviction) in units.iter().zip(evictions) {
            let run = PageRun { first: number(unit.start), pages: number(unit.len()) };
            inner.queue.insert(run, local, *eviction);
            // New pages are filled once, and say nothing about refaults. Units of one page say nothing about other
            // sizes.
            let chosen = *from == PageState::SwappedOut && inner.only_read != Some(Reads::Changed);
            if let (TransferUnits::Auto(regions), true) = (&mut inner.units, chosen) {
                let ns = ns * unit.len() as u64 / range.len() as u64;
                let within = self.bounds.around(unit.start);
                let first = first_unit(local, mapped);
                regions.filled((unit.start, unit.len()), *access, &within, ns, first, costs);
            }
        }
    }

    /// Returns the number of pages with contents, resident or not, in the segment of `page`. That many fills are an
    /// epoch of the set dueling of transfer sizes.
    fn epoch(&self, page: PageNumber) -> usize {
        let counts = self.words_of(page).map_or(&self.counters, |words| &words.counts);
        let bytes = counts.get(Count::StoredBytes) + counts.get(Count::ResidentBytes);
        usize::try_from(bytes).unwrap_or(0) / self.kernel.page()
    }
}
