//! Paging in, after the transfer: the pages become resident, and the policies learn what their fill cost.

use crate::incoming::{FillPlan, Incoming};
use crate::page::{PageState, number};
use crate::pager::Pager;
use crate::state::PagerState;
use crate::{Count, Kernel};
use largesse_policy::PageNumber;
use largesse_policy::replacement::PageRun;
use largesse_policy::transfer::{TransferUnits, first_unit};
use largesse_store::PageStore;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Makes pages resident whose transfer has ended, and for which the program waited `ns` nanoseconds. Returns
    /// whether threads wait for them that must be woken.
    pub(crate) fn commit(&self, incoming: Incoming, ns: u64) -> bool {
        let Incoming { touch, plan, .. } = &incoming;
        let mut inner = self.lock();
        let mut waited = false;
        for (page, plan_of_page) in plan.range.clone().zip(&plan.pages) {
            // The store has nothing of a new page: a write to one makes all of them writable.
            let dirty = if plan.from == PageState::Zero { touch.write } else { plan_of_page.dirty };
            waited |= inner.pages.end_fill(page, dirty);
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
            // New pages are filled once, and say nothing about refaults.
            if let (TransferUnits::Auto(regions), PageState::SwappedOut) = (&mut inner.units, *from) {
                let ns = ns * unit.len() as u64 / range.len() as u64;
                let within = self.bounds.around(unit.start);
                let first = first_unit(local, mapped);
                regions.filled((unit.start, unit.len()), *access, &within, ns, first, costs);
            }
        }
    }

    /// Returns the number of pages with contents in the segment of a page, resident or not: the length of an epoch of
    /// the transfer sizes' duel.
    fn epoch(&self, page: PageNumber) -> usize {
        let counts = self.words_of(page).map_or(&self.counters, |words| &words.counts);
        let bytes = counts.get(Count::StoredBytes) + counts.get(Count::ResidentBytes);
        usize::try_from(bytes).unwrap_or(0) / self.kernel.page()
    }
}
