//! What moves together: sets of pages, by where they are and how they are used, and what is fetched ahead of need.

use crate::page::{State, run_around};
use crate::pager::Touch;
use crate::state::Inner;
use core::ops::Range;
use largesse_policy::streams::{Access, Fault};
use largesse_policy::transfer::Regions;
use largesse_policy::{MOST_SET, PageNumber};
use std::collections::VecDeque;

/// Pages that are fetched ahead of need at once, at most.
pub(crate) const MOST_AHEAD: usize = 256;

/// Pages that are fetched ahead of need at once where `local` pages may be here. Frames of as many that left wait for them: with
/// fewer, the kernel would free the frames that are missing and make them anew.
pub(crate) fn most_ahead(local: usize) -> usize {
    (local / 16).min(MOST_AHEAD)
}

/// A page that is foreseen, and how it will be used.
pub(crate) type Ahead = (PageNumber, Access);

/// Base pages that move together, a power of two.
#[derive(Debug)]
pub(crate) enum Sets {
    /// As somebody said.
    Fixed(usize),
    /// Being tried, in each region by itself.
    Auto(Regions),
}

impl Sets {
    /// Where most pages of `within` came lately, the least size there, and the largest.
    pub(crate) fn of(&self, within: &Range<PageNumber>) -> [usize; 3] {
        match self {
            Sets::Fixed(set) => [*set; 3],
            Sets::Auto(regions) => regions.sizes(within),
        }
    }

    /// Where most pages came lately.
    pub(crate) fn now(&self) -> usize {
        self.of(&(0..usize::MAX))[0]
    }

    /// The size in force at a page that is used in some way, also where another one is tried.
    pub(crate) fn in_force(&self, page: PageNumber, access: Access) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(regions) => regions.at(page, access).set(),
        }
    }

    /// The size there, or the one that is tried.
    pub(crate) fn at(&self, page: PageNumber, access: Access) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(regions) => regions.at(page, access).set_at(page),
        }
    }

    /// Pages left that came to be used in some way.
    pub(crate) fn left(&mut self, pages: &Range<PageNumber>, access: Access) {
        if let Sets::Auto(regions) = self {
            regions.left(pages, access);
        }
    }
}

impl Inner {
    /// Base pages that move together at `page`: never more than an eighth of what may be here. With new pages nothing is
    /// tried.
    pub(crate) fn set_at(&self, page: PageNumber, access: Access) -> usize {
        let new = self.pages[page].state == State::Zero;
        let set = if new { self.sets.in_force(page, Access::Dense) } else { self.sets.at(page, access) };
        set.min(self.largest_set())
    }

    /// An eighth of what may be here.
    fn largest_set(&self) -> usize {
        1 << (self.local / 8).max(1).ilog2()
    }

    /// The set of a page.
    fn set_of(&self, page: PageNumber, access: Access) -> Range<PageNumber> {
        let set = self.set_at(page, access);
        let first = page / set * set;
        first..first + set
    }

    /// What comes of new pages at once: the set, and more of them as long as there is much room, or room for all. They are
    /// fetched from nowhere, and what the program does not use of them leaves unwritten.
    fn step_of_new(&self, page: PageNumber) -> Range<PageNumber> {
        let room = self.local.saturating_sub(self.resident);
        let all_fit = (1..=self.local + self.local / 64).contains(&self.mapped);
        let at_once = if all_fit { room } else { room / 8 };
        let step = match self.sets {
            Sets::Auto(_) if all_fit || room > self.local / 8 => {
                self.set_at(page, Access::Dense).max(1 << at_once.max(1).ilog2()).min(MOST_SET)
            }
            _ => self.set_at(page, Access::Dense),
        };
        let first = page / step * step;
        first..first + step
    }

    /// The pages that come with `page`: those of its set, and of what follows it `upto` there, that are in the same
    /// place.
    pub(crate) fn set_around(
        &self,
        page: PageNumber,
        access: Access,
        upto: PageNumber,
        bounds: &Range<PageNumber>,
    ) -> Range<PageNumber> {
        let state = self.pages[page].state;
        let set = if state == State::Zero { self.step_of_new(page) } else { self.set_of(page, access) };
        let end = set.end.max(upto).min(set.start + MOST_SET);
        let within = set.start.max(bounds.start)..end.min(bounds.end);
        run_around(page, within, |other| self.pages[other].state == state)
    }

    /// Takes from `ahead` the sets that follow the one of `page`, up to the first with a page that is not in the same place: no
    /// transfer goes beyond it. Returns where they end. A gap is none that a set in force would fill: a trial has smaller sets
    /// here and there, and larger ones.
    pub(crate) fn stretch(
        &self,
        page: PageNumber,
        access: Access,
        ahead: &mut VecDeque<Ahead>,
    ) -> PageNumber {
        let state = self.pages[page].state;
        // All from `page` to `alike` is in the same place; the set of `page` itself may end in another.
        let (mut end, mut alike) = (self.set_of(page, access).end, page);
        while let Some(next) = ahead.front().map(|&(next, access)| self.set_of(next, access))
            && next.start < end + self.sets.in_force(page, access)
            && (page + 1..=page + MOST_AHEAD).contains(&next.end)
        {
            let between = self.pages.get(alike..next.end);
            if !between.is_some_and(|pages| pages.iter().all(|page| page.state == state)) {
                break;
            }
            (end, alike) = (end.max(next.end), alike.max(next.end));
            ahead.pop_front();
        }
        end
    }

    /// Cuts pages that come together into sets.
    pub(crate) fn sets_in(&self, pages: &Range<PageNumber>, access: Access) -> Vec<Range<PageNumber>> {
        let mut sets = Vec::with_capacity(1);
        let mut first = pages.start;
        while first < pages.end {
            let end = self.set_of(first, access).end.min(pages.end);
            sets.push(first..end);
            first = end;
        }
        sets
    }

    /// What a fault says about the next ones. Returns how it is used, and how many pages that were
    /// fetched ahead the program went past.
    pub(crate) fn look_ahead(
        &mut self,
        touch: Touch,
        bounds: &Range<PageNumber>,
        ahead: &mut VecDeque<Ahead>,
    ) -> (Access, usize) {
        let Touch { page, .. } = touch;
        // The size in force, also where another one is tried: a stream goes on through both.
        let in_force = |access| self.sets.in_force(page, access).min(self.largest_set());
        let sets = Access::ALL.map(in_force);
        let here = |page: PageNumber| self.pages[page].state.is_resident();
        let fault = Fault::new(page, sets, bounds, here);
        let most = most_ahead(self.local);
        let (Some(streams), pages, sets) = (&mut self.streams, &mut self.pages, &self.sets) else {
            return (Access::Dense, 0);
        };
        let (mut hits, sets_in_force) = (0, fault.sets);
        let passed = |passed: Range<PageNumber>, access: Access| {
            let set = sets_in_force[access as usize];
            let first = (passed.start / set * set).max(bounds.start);
            for page in first..(first + set).max(passed.end).min(bounds.end) {
                hits += usize::from(core::mem::take(&mut pages[page].foreseen));
            }
        };
        let access = streams.fault(&fault, most, passed, |pages, access| {
            // A block of a trial takes several of its sets for one in force.
            let mut page = pages.start;
            while page < pages.end.min(bounds.end) {
                if page >= bounds.start {
                    ahead.push_back((page, access));
                }
                page = (page / sets.at(page, access) + 1) * sets.at(page, access);
            }
        });
        (access, hits)
    }
}
