//! Checks zero pages that were filled along with others, and evicts those that were never written
//! ([`SpeculativePages`](largesse_policy::SpeculativePages)).

use crate::page::{PageState, runs};
use crate::pager::Pager;
use crate::state::{PagerState, StateGuard};
use crate::{Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;
use largesse_store::PageStore;
use std::time::Instant;

impl PagerState {
    /// Schedules a later check of new pages of which most were not touched by a thread. They are added to the
    /// replacement queue after the check. Returns `false` if they are too few to be worth a check.
    pub(crate) fn check_later(&mut self, pages: Range<PageNumber>) -> bool {
        self.speculative.add(pages, self.queue.clock())
    }

    /// Returns whether the oldest unchecked new pages are due for their check, since enough pages were evicted after
    /// their fill ([`is_due`](largesse_policy::SpeculativePages::is_due)).
    pub(crate) fn has_untouched_to_check(&self) -> bool {
        self.speculative.is_due(self.queue.clock(), self.local, self.mapped)
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Checks the next batch of new pages if that is due; returns whether it was. The evicting thread does this, and so
    /// must whoever serves faults without one.
    pub fn check_untouched(&self) -> Result<bool, PagerError> {
        let inner = self.lock();
        let is_due = inner.has_untouched_to_check();
        if is_due {
            drop(self.evict_untouched(inner)?);
        }
        Ok(is_due)
    }

    /// Checks a batch of new pages, and evicts those that are still zero.
    pub(crate) fn evict_untouched<'a>(
        &'a self,
        mut inner: StateGuard<'a>,
    ) -> Result<StateGuard<'a>, PagerError> {
        let Some(pages) = inner.speculative.pop() else { return Ok(inner) };
        let checked = runs(pages.clone(), |number| {
            let page = &inner.pages[number];
            let may = !page.stored && !page.in_write && !inner.pins.contains(number);
            (may && matches!(page.state, PageState::Clean | PageState::Dirty)).then_some(page.state)
        });
        // `Leaving` during the check, so that no other thread evicts or drops them.
        for (range, _) in &checked {
            inner.pages.begin_evict(range.clone(), Protection::Probationary);
        }
        drop(inner);
        let mut untouched = Vec::new();
        for (range, state) in &checked {
            let zero = self.kernel.zeros(range.clone());
            untouched.extend(runs(range.clone(), |page| zero[page - range.start].then_some(*state)));
        }
        let result = self.write_back(&untouched)?;
        let mut inner = self.lock();
        self.finish_eviction(&mut inner, &result.gone);
        inner.queue.evicted_speculative(result.gone.iter().map(Range::len).sum());
        let deferred = self.defer_left(&mut inner, &untouched, result.full, Instant::now());
        for (range, state) in &checked {
            let stay =
                runs(range.clone(), |page| (inner.pages[page].state == PageState::Leaving).then_some(()));
            stay.into_iter().for_each(|(run, ())| inner.pages.cancel_evict(run, *state));
        }
        let is_deferred = |page| deferred.iter().any(|run| run.contains(&page));
        for (rest, ()) in runs(pages.clone(), |page| (!is_deferred(page)).then_some(())) {
            inner.enqueue_resident(&rest);
        }
        self.tell(&inner);
        self.io_done.notify_all();
        self.wake_waiting(&mut inner, pages);
        Ok(inner)
    }
}
