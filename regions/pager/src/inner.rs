//! What the pager knows under its lock.

use crate::PageNumber;
use crate::page::{Page, State, run_around};
use crate::pager::{Touch, number};
use crate::pin::Pins;
use crate::replace::{Part, Queue, Run};
use crate::streams::Streams;
use crate::tune::{Costs, Trial};
use core::ops::Range;
use largesse_pages::Table;
use std::collections::VecDeque;

/// Pages made writable at once, from the one that is written on: a loop writes the next ones too.
pub(crate) const WRITE_AHEAD: usize = 16;
/// Pages that are fetched ahead of need at once.
pub(crate) const MOST_AHEAD: usize = 256;
/// From here on, letting a set leave takes longer than waking the thread that does it.
pub(crate) const LARGE_SET: usize = 8;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pages: Table<Page>,
    pub(crate) queue: Queue,
    pub(crate) pins: Pins,
    /// Pages that take local memory.
    pub(crate) resident: usize,
    /// Pages that may.
    pub(crate) local: usize,
    pub(crate) sets: Sets,
    /// Sequences of faults, unless nothing is to be fetched ahead.
    pub(crate) streams: Option<Streams>,
    /// What leaving costs, for the trial.
    pub(crate) leaving: Leaving,
    /// The number of the compute core that runs, and the sets it swapped in.
    pub(crate) core: (u16, usize),
}

/// A page on its way here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming {
    /// Checksum of what must come.
    pub(crate) sum: u64,
    /// It may be written at once.
    pub(crate) dirty: bool,
}

/// Base pages that move together, a power of two.
#[derive(Debug)]
pub(crate) enum Sets {
    /// As somebody said.
    Fixed(usize),
    /// Being tried.
    Auto(Trial),
}

impl Sets {
    pub(crate) const fn now(&self) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(trial) => trial.set(),
        }
    }

    pub(crate) fn at(&self, page: PageNumber) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(trial) => trial.set_at(page),
        }
    }
}

/// Pages that left lately, what that took, and how many pages came back meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaving {
    pages: f64,
    ns: f64,
    pub(crate) back: f64,
}

impl Leaving {
    pub(crate) fn left(&mut self, pages: usize, ns: u64) {
        if self.pages > 65536.0 {
            *self = Leaving { pages: self.pages / 2.0, ns: self.ns / 2.0, back: self.back / 2.0 };
        }
        self.pages += pages as f64;
        self.ns += ns as f64;
    }

    pub(crate) fn costs(self) -> Costs {
        let pages = self.pages.max(1.0);
        Costs { evict_ns: self.ns / pages, come_back: (self.back / pages).min(1.0) }
    }
}

impl Inner {
    /// Base pages that move together at `page`: never more than an eighth of what may be here.
    fn set_at(&self, page: PageNumber) -> usize {
        self.sets.at(page).min(1 << (self.local / 8).max(1).ilog2())
    }

    /// The pages that come with `page`: those of its set that are in the same place.
    pub(crate) fn set_around(&self, page: PageNumber, bounds: &Range<PageNumber>) -> Range<PageNumber> {
        let set = self.set_at(page);
        let first = page / set * set;
        let within = first.max(bounds.start)..(first + set).min(bounds.end);
        let state = self.pages[page].state;
        run_around(page, within, |other| self.pages[other].state == state)
    }

    /// What a fault says about the next ones. Returns how many pages that were
    /// fetched ahead the program went past.
    pub(crate) fn look_ahead(
        &mut self,
        touch: Touch,
        bounds: &Range<PageNumber>,
        ahead: &mut VecDeque<PageNumber>,
    ) -> usize {
        let set = self.set_at(touch.page);
        let most = (self.local / 16).min(MOST_AHEAD);
        let (Some(streams), pages) = (&mut self.streams, &mut self.pages) else { return 0 };
        let mut hits = 0;
        let passed = |page: PageNumber| {
            let first = (page / set * set).max(bounds.start);
            for page in first..(first + set).min(bounds.end) {
                hits += usize::from(core::mem::take(&mut pages[page].foreseen));
            }
        };
        streams.fault(touch.page, set, most, passed, |page| {
            if bounds.contains(&page) {
                ahead.push_back(page);
            }
        });
        hits
    }

    /// How a page comes: writable at once if it was changed lately, since a loop changes what it changed
    /// before, or if it lies at or right after one that is written now. Each is spared a second fault;
    /// what turns out the same when it leaves is not sent.
    pub(crate) fn coming(&self, number: PageNumber, touch: Touch) -> Coming {
        let page = self.pages[number];
        let near = touch.write && (touch.page..touch.page + WRITE_AHEAD).contains(&number);
        Coming { sum: page.sum, dirty: near || page.changed > 0 }
    }

    /// Pages that were to leave stay after all, and have their turn again when the others had theirs.
    pub(crate) fn stay(&mut self, range: &Range<PageNumber>) {
        for page in &mut self.pages[range.clone()] {
            page.state = State::Dirty;
        }
        let run = Run { first: number(range.start), pages: number(range.len()) };
        self.queue.arrive(run, self.local, None);
    }

    /// How a page left, if it did.
    pub(crate) fn back(&self, page: PageNumber) -> Option<(Part, u32)> {
        let page = self.pages[page];
        let part = if page.from_kept { Part::Kept } else { Part::Passing };
        (page.left != 0).then_some((part, page.left))
    }

    /// Pages that are kept free, so that a fault need not wait for room: two sets, and little
    /// enough that the budget is used.
    pub(crate) fn ahead(&self) -> usize {
        (self.sets.now() * 2).clamp(16, 512).min(self.local / 16)
    }

    /// Free pages below which the evictor works. Waking another thread costs as much as a few pages:
    /// with small sets, who serves faults lets pages leave between them, and the evictor only
    /// helps when that is not enough.
    pub(crate) fn evictor_starts(&self) -> usize {
        if self.sets.now() >= LARGE_SET { self.ahead() } else { self.ahead() / 4 }
    }

    /// The set of a page belongs to the working set of the compute core that runs.
    pub(crate) fn swapped_in(&mut self, page: PageNumber) {
        let set = self.sets.now();
        let (core, count) = &mut self.core;
        let first = &mut self.pages[page / set * set];
        if *core != 0 && first.core != *core {
            first.core = *core;
            *count += 1;
        }
    }

    /// Forgets runs whose pages left another way, when there are too many of them.
    pub(crate) fn tidy(&mut self) {
        if self.queue.runs() > 2 * self.resident + 1024 {
            let pages = &self.pages;
            self.queue.retain(|run| pages[run.first as usize].state.is_resident());
        }
    }
}
