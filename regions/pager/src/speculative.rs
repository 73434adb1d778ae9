//! Checks zero pages that were filled along with others, and evicts those that were never written
//! ([`SpeculativePages`](largesse_policy::SpeculativePages)).

use crate::page::{PageState, number, runs};
use crate::pager::Pager;
use crate::state::PagerState;
use crate::{Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::{PageRun, Protection};
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::sync::MutexGuard;

impl PagerState {
    /// New pages came, of which many were asked for by nobody: they have a place in the order of leaving when they were
    /// looked at. `false`: they are few.
    pub(crate) fn check_later(&mut self, pages: Range<PageNumber>) -> bool {
        self.speculative.add(pages, self.queue.clock())
    }

    /// Those of a step that are here get their place, a set at a time.
    fn enqueue(&mut self, pages: &Range<PageNumber>) {
        for set in self.units_in(pages, Access::Dense) {
            let here = runs(set, |page| self.pages[page].state.is_resident().then_some(()));
            for (run, ()) in here {
                self.queue.insert(
                    PageRun { first: number(run.start), pages: number(run.len()) },
                    self.local,
                    None,
                );
            }
        }
    }

    /// The run that leaves next, with the part it was in. Without any, what was not looked at must do, and then what was set
    /// aside.
    pub(crate) fn next_victim(&mut self) -> Option<(PageRun, Protection)> {
        while self.queue.is_empty()
            && let Some(pages) = self.speculative.pop()
        {
            self.enqueue(&pages);
        }
        if self.queue.is_empty() {
            self.retry_all_deferred();
        }
        self.queue.select_victim(self.local)
    }

    /// Others have left for pages that may be here for nothing.
    pub(crate) fn has_untouched_to_check(&self) -> bool {
        self.speculative.is_due(self.queue.clock(), self.local, self.mapped)
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Looks at some pages, and lets those go that are still as they came.
    pub(crate) fn evict_untouched<'a>(
        &'a self,
        mut inner: MutexGuard<'a, PagerState>,
    ) -> Result<MutexGuard<'a, PagerState>, PagerError> {
        let Some(pages) = inner.speculative.pop() else { return Ok(inner) };
        let looked_at = runs(pages.clone(), |number| {
            let page = &inner.pages[number];
            let may = !page.stored && !inner.pins.contains(number);
            (may && matches!(page.state, PageState::Clean | PageState::Dirty)).then_some(page.state)
        });
        // In flight: nobody else lets them leave, or drops them, while they are looked at.
        for (range, _) in &looked_at {
            inner.pages.begin_evict(range.clone(), Protection::Probationary);
        }
        drop(inner);
        let mut going = Vec::new();
        for (range, state) in &looked_at {
            let zero = self.kernel.zeros(range.clone());
            let parts = runs(range.clone(), |page| zero[page - range.start].then_some(*state));
            going.extend(parts);
        }
        let gone = self.write_back(&going)?.gone;
        let mut inner = self.lock();
        self.finish_eviction(&mut inner, &gone);
        inner.queue.evicted_speculative(gone.iter().map(Range::len).sum());
        for (range, state) in &looked_at {
            let leaving = |page: PageNumber| (inner.pages[page].state == PageState::Leaving).then_some(());
            for (run, ()) in runs(range.clone(), leaving) {
                inner.pages.cancel_evict(run, *state);
            }
        }
        inner.enqueue(&pages);
        self.tell(&inner);
        self.io_done.notify_all();
        self.wake_waiting(&mut inner, pages);
        Ok(inner)
    }
}
