//! New pages that came along with others, and that nobody wrote to: they leave before any that are in use.
//!
//! New pages come in large steps while there is much room, since they are fetched from nowhere. What the program does not use
//! of them (the edge of a grid, the end of a buffer) takes local memory all the same, until it happens to leave; where all
//! that is used just fits, used pages leave for it in each loop. Nothing tells which pages were written, but those that
//! never were are still zero. So once others had to leave, the thread that lets pages leave looks at what came in large
//! steps, the oldest first, once. It is no more than a hint: what turns out to be written when it leaves is sent like
//! any other page.

use crate::page::{State, runs};
use crate::pager::{Pager, number};
use crate::state::Inner;
use crate::{Kernel, Trouble};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::{Part, Run};
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::collections::VecDeque;
use std::sync::MutexGuard;

/// Of what came together, steps of so many pages and more are worth a look.
const STEP: usize = 64;
/// Pages that are looked at together.
const LOOK: usize = 64;
/// A step is looked at when the program should have come to its pages: as many pages have left since as there is no room
/// for, which a loop takes at least, or this share of local memory.
const SETTLE: usize = 3;

/// Steps that were not looked at, the oldest first, each with the pages that had left when it came.
#[derive(Debug, Default)]
pub(crate) struct Steps(VecDeque<(Range<PageNumber>, u32)>);

impl Steps {
    fn came(&mut self, pages: Range<PageNumber>, clock: u32) -> bool {
        let many = pages.len() >= STEP;
        if many {
            self.0.push_back((pages, clock));
        }
        many
    }

    /// The pages of all steps.
    pub(crate) fn pages(&self) -> impl Iterator<Item = Range<PageNumber>> {
        self.0.iter().map(|(pages, _)| pages.clone())
    }

    /// Whether there is one to be looked at.
    fn due(&self, clock: u32, after: usize) -> bool {
        self.0.front().is_some_and(|(_, came)| clock.wrapping_sub(*came) as usize > after)
    }

    /// Some pages of the oldest.
    fn next(&mut self) -> Option<Range<PageNumber>> {
        let (pages, _) = self.0.front_mut()?;
        let next = pages.start..pages.end.min(pages.start + LOOK);
        pages.start = next.end;
        if pages.start == pages.end {
            self.0.pop_front();
        }
        Some(next)
    }
}

impl Inner {
    /// New pages came, of which many were asked for by nobody: they have a place in the order of leaving when they were
    /// looked at. `false`: they are few.
    pub(crate) fn looked_at_later(&mut self, pages: Range<PageNumber>) -> bool {
        self.steps.came(pages, self.queue.clock())
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
            && let Some(pages) = self.steps.next()
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
        // What is mapped is less, or unknown: it is the share that counts.
        let (share, no_room_for) = (self.local / SETTLE, self.mapped.wrapping_sub(self.local));
        self.steps.due(self.queue.clock(), share.min(no_room_for))
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Looks at some pages, and lets those go that are still as they came.
    pub(crate) fn let_untouched_go<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> Result<MutexGuard<'a, Inner>, Trouble> {
        let Some(pages) = inner.steps.next() else { return Ok(inner) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_looked_at_once_and_in_parts_when_much_has_left_since() {
        let mut steps = Steps::default();
        let came = [(0..STEP - 1, 0), (1000..1000 + LOOK + 10, 5), (2000..2000 + LOOK, 90)];
        assert_eq!(came.map(|(pages, clock)| steps.came(pages, clock)), [false, true, true]);
        assert!(!steps.due(105, 100) && steps.due(106, 100));
        assert_eq!(steps.next(), Some(1000..1000 + LOOK));
        assert_eq!(steps.next(), Some(1000 + LOOK..1000 + LOOK + 10));
        assert!(!steps.due(190, 100) && steps.due(191, 100));
        assert_eq!(steps.next(), Some(2000..2000 + LOOK));
        assert_eq!((steps.next(), steps.due(u32::MAX, 100)), (None, false));
    }
}
