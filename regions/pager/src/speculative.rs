//! Checks zero pages that were filled along with others, and evicts those that were never written
//! ([`SpeculativePages`](largesse_policy::SpeculativePages)).

use crate::page::{State, runs};
use crate::pager::{Pager, number};
use crate::state::Inner;
use crate::{Kernel, Trouble};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::{Part, Run};
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::sync::MutexGuard;

impl Inner {
    /// New pages came, of which many were asked for by nobody: they have a place in the order of leaving when they were
    /// looked at. `false`: they are few.
    pub(crate) fn looked_at_later(&mut self, pages: Range<PageNumber>) -> bool {
        self.speculative.add(pages, self.queue.clock())
    }

    /// Those of a step that are here get their place, a set at a time.
    fn sort_in(&mut self, pages: &Range<PageNumber>) {
        for set in self.sets_in(pages, Access::Dense) {
            let here = runs(set, |page| self.pages[page].state.is_resident().then_some(()));
            for (run, ()) in here {
                self.queue.arrive(
                    Run { first: number(run.start), pages: number(run.len()) },
                    self.local,
                    None,
                );
            }
        }
    }

    /// The run that leaves next, with the part it was in. Without any, what was not looked at must do, and then what was set
    /// aside.
    pub(crate) fn next_to_leave(&mut self) -> Option<(Run, Part)> {
        while self.queue.is_empty()
            && let Some(pages) = self.speculative.pop()
        {
            self.sort_in(&pages);
        }
        if self.queue.is_empty() {
            self.try_all_again();
        }
        self.queue.leave(self.local)
    }

    /// Others have left for pages that may be here for nothing.
    pub(crate) fn looks_for_untouched(&self) -> bool {
        self.speculative.is_due(self.queue.clock(), self.local, self.mapped)
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Looks at some pages, and lets those go that are still as they came.
    pub(crate) fn let_untouched_go<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> Result<MutexGuard<'a, Inner>, Trouble> {
        let Some(pages) = inner.speculative.pop() else { return Ok(inner) };
        let looked_at = runs(pages.clone(), |number| {
            let page = &inner.pages[number];
            let may = !page.stored && !inner.pins.hold(number);
            (may && matches!(page.state, State::Clean | State::Dirty)).then_some(page.state)
        });
        // In flight: nobody else lets them leave, or drops them, while they are looked at.
        for (range, _) in &looked_at {
            for page in &mut inner.pages[range.clone()] {
                (page.state, page.from_kept) = (State::Leaving, false);
            }
        }
        drop(inner);
        let mut going = Vec::new();
        for (range, state) in &looked_at {
            let zero = self.kernel.zeros(range.clone());
            let parts = runs(range.clone(), |page| zero[page - range.start].then_some(*state));
            going.extend(parts);
        }
        let gone = self.carry_out(&going)?.gone;
        let mut inner = self.lock();
        self.have_left(&mut inner, &gone);
        inner.queue.left_untouched(gone.iter().map(Range::len).sum());
        for (range, state) in &looked_at {
            for page in &mut inner.pages[range.clone()] {
                if page.state == State::Leaving {
                    page.state = *state;
                }
            }
        }
        inner.sort_in(&pages);
        self.tell(&inner);
        self.landed.tell_all();
        self.wake_waiting(&mut inner, pages);
        Ok(inner)
    }
}
