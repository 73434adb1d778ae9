//! What the pager knows under its lock.

use crate::leaving::Leaving;
use crate::page::{Page, State, run_around, runs};
use crate::pager::{Touch, number};
use crate::pin::Pins;
use crate::replace::{Part, Queue, Run};
use crate::streams::Streams;
use crate::tune::{Regions, Timing};
use crate::untouched::Steps;
use crate::{MOST_SET, PageNumber};
use core::ops::Range;
use largesse_pages::Table;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Pages made writable at once, from the one that is written on: a loop writes the next ones too.
pub(crate) const WRITE_AHEAD: usize = 16;
/// Pages that are fetched ahead of need at once.
pub(crate) const MOST_AHEAD: usize = 256;
/// Pages of small sets that leave at once, and of large ones.
const TOGETHER: [usize; 2] = [16, 128];
/// From here on, letting a set leave takes longer than waking the thread that does it.
pub(crate) const LARGE_SET: usize = 8;
/// A store that had no room is asked again after so long.
const FULL: Duration = Duration::from_millis(100);
/// Of what is known of pages that come together, the last ones count for so much.
const LATELY: f64 = 1.0 / 32.0;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) pages: Table<Page>,
    pub(crate) queue: Queue,
    pub(crate) pins: Pins,
    /// Pages that take local memory.
    pub(crate) resident: usize,
    /// Pages that may.
    pub(crate) local: usize,
    /// All that the program has, as far as anybody knows; 0: nobody does.
    pub(crate) mapped: usize,
    pub(crate) sets: Sets,
    /// Sequences of faults, unless nothing is to be fetched ahead.
    pub(crate) streams: Option<Streams>,
    /// Pages that come together, lately.
    pub(crate) together: f64,
    /// New pages that may be here for nothing.
    pub(crate) steps: Steps,
    /// When the store last had no room.
    pub(crate) full: Option<Instant>,
    /// When pages leave.
    pub(crate) timing: Timing,
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

    /// The size in force at a page, also where another one is tried.
    pub(crate) fn in_force(&self, page: PageNumber) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(regions) => regions.at(page).set(),
        }
    }

    pub(crate) fn at(&self, page: PageNumber) -> usize {
        match self {
            Sets::Fixed(set) => *set,
            Sets::Auto(regions) => regions.at(page).set_at(page),
        }
    }

    /// Pages left.
    pub(crate) fn left(&mut self, pages: &Range<PageNumber>) {
        if let Sets::Auto(regions) = self {
            regions.left(pages);
        }
    }
}

impl Inner {
    /// Base pages that move together at `page`: never more than an eighth of what may be here. With new pages nothing is
    /// tried.
    pub(crate) fn set_at(&self, page: PageNumber) -> usize {
        let new = self.pages[page].state == State::Zero;
        let set = if new { self.sets.in_force(page) } else { self.sets.at(page) };
        set.min(1 << (self.local / 8).max(1).ilog2())
    }

    /// The set of a page.
    fn set_of(&self, page: PageNumber) -> Range<PageNumber> {
        let set = self.set_at(page);
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
                self.set_at(page).max(1 << at_once.max(1).ilog2()).min(MOST_SET)
            }
            _ => self.set_at(page),
        };
        let first = page / step * step;
        first..first + step
    }

    /// The pages that come with `page`: those of its set, and of what follows it `upto` there, that are in the same
    /// place.
    pub(crate) fn set_around(
        &self,
        page: PageNumber,
        upto: PageNumber,
        bounds: &Range<PageNumber>,
    ) -> Range<PageNumber> {
        let state = self.pages[page].state;
        let set = if state == State::Zero { self.step_of_new(page) } else { self.set_of(page) };
        let end = set.end.max(upto).min(set.start + MOST_SET);
        let within = set.start.max(bounds.start)..end.min(bounds.end);
        run_around(page, within, |other| self.pages[other].state == state)
    }

    /// Takes from `ahead` the sets that follow the one of `page`; returns where they end. A gap is none that a set in
    /// force would fill: a trial has smaller sets here and there, and larger ones.
    pub(crate) fn stretch(&self, page: PageNumber, ahead: &mut VecDeque<PageNumber>) -> PageNumber {
        let mut end = self.set_of(page).end;
        while let Some(next) = ahead.front().map(|&next| self.set_of(next))
            && next.start < end + self.sets.in_force(page)
            && (page + 1..=page + MOST_AHEAD).contains(&next.end)
        {
            end = end.max(next.end);
            ahead.pop_front();
        }
        end
    }

    /// Cuts pages that come together into sets.
    pub(crate) fn sets_in(&self, pages: &Range<PageNumber>) -> Vec<Range<PageNumber>> {
        let mut sets = Vec::with_capacity(1);
        let mut first = pages.start;
        while first < pages.end {
            let end = self.set_of(first).end.min(pages.end);
            sets.push(first..end);
            first = end;
        }
        sets
    }

    /// What a fault says about the next ones. Returns how many pages that were
    /// fetched ahead the program went past.
    pub(crate) fn look_ahead(
        &mut self,
        touch: Touch,
        bounds: &Range<PageNumber>,
        ahead: &mut VecDeque<PageNumber>,
    ) -> usize {
        // The size in force, also where another one is tried: a stream goes on through both.
        let set = self.sets.in_force(touch.page).min(1 << (self.local / 8).max(1).ilog2());
        let most = (self.local / 16).min(MOST_AHEAD);
        let (Some(streams), pages, sets) = (&mut self.streams, &mut self.pages, &self.sets) else { return 0 };
        let mut hits = 0;
        let passed = |page: PageNumber| {
            let first = (page / set * set).max(bounds.start);
            for page in first..(first + set).min(bounds.end) {
                hits += usize::from(core::mem::take(&mut pages[page].foreseen));
            }
        };
        streams.fault(touch.page, set, most, passed, |pages| {
            // A block of a trial takes several of its sets for one in force.
            let mut page = pages.start;
            while page < pages.end.min(bounds.end) {
                if page >= bounds.start {
                    ahead.push_back(page);
                }
                page = (page / sets.at(page) + 1) * sets.at(page);
            }
        });
        hits
    }

    /// How a page comes: writable at once if it was changed lately, since a loop changes what it changed
    /// before, or if it lies at or right after one that is written now. Each is spared a second fault;
    /// what turns out the same when it leaves is not sent.
    pub(crate) fn coming(&self, number: PageNumber, touch: Touch, reuses: bool) -> Coming {
        let page = self.pages[number];
        let near = touch.write && (touch.page..touch.page + WRITE_AHEAD).contains(&number);
        Coming { sum: page.sum, dirty: reuses || near || page.changed > 0 }
    }

    /// Pages that were to leave stay after all, and have their turn again when the others had theirs.
    pub(crate) fn stay(&mut self, range: &Range<PageNumber>) {
        for page in &mut self.pages[range.clone()] {
            page.state = State::Dirty;
        }
        let run = Run { first: number(range.start), pages: number(range.len()) };
        self.queue.arrive(run, self.local, None);
    }

    /// How many pages leave at once where `missing` more are to fit: some sets leave together, since each step of the
    /// kernel's costs as much as several pages.
    pub(crate) fn leave_together(&self, missing: usize) -> usize {
        let together = TOGETHER[usize::from(self.sets.now() >= LARGE_SET)];
        missing.max(together.min(self.local / 64))
    }

    /// Takes runs of at least `wanted` pages from those that are here: from now on they are `Leaving`. Gives up after
    /// so many `tries` at runs of which all pages stay. Returns how many runs these are, too: neighbours go as one.
    pub(crate) fn send_off(
        &mut self,
        wanted: usize,
        tries: &mut usize,
    ) -> (Vec<(Range<PageNumber>, State)>, usize) {
        let (mut going, mut pages, mut sets) = (Vec::new(), 0, 0);
        let full = self.store_is_full();
        while pages < wanted && *tries > 0 {
            let Some((run, part)) = self.next_to_leave() else { break };
            let range = run.first as usize..(run.first + run.pages) as usize;
            let some_stay = self.keep_pinned(&range) | self.keep_changed(full, &range);
            let parts = runs(range, |number| {
                let page = self.pages[number];
                let may = !some_stay || !self.pins.hold(number);
                let goes = page.state == State::Clean || page.state == State::Dirty && !full;
                (may && goes).then_some(page.state)
            });
            // Without any they left another way, or are pinned; when all that is here is, nothing can leave.
            *tries -= usize::from(some_stay && parts.is_empty());
            sets += usize::from(!parts.is_empty());
            for (range, state) in parts {
                for page in &mut self.pages[range.clone()] {
                    if state == State::Clean {
                        page.changed = page.changed.saturating_sub(1);
                    }
                    page.state = State::Leaving;
                    page.from_kept = part == Part::Kept;
                }
                pages += range.len();
                going.push((range, state));
            }
        }
        going.sort_unstable_by_key(|(range, _)| range.start);
        going.dedup_by(|next, before| {
            let one = before.0.len() + next.0.len() <= MOST_SET;
            let follows = one && before.0.end == next.0.start && before.1 == next.1;
            if follows {
                before.0.end = next.0.end;
            }
            follows
        });
        (going, sets)
    }

    /// The store had no room a moment ago: what was changed stays, so that nobody waits for it in vain.
    pub(crate) fn store_is_full(&self) -> bool {
        self.full.is_some_and(|since| since.elapsed() < FULL)
    }

    /// Where the store is `full`, pages of a run whose turn it is that were changed have their turn again later. Returns
    /// whether there are any.
    fn keep_changed(&mut self, full: bool, range: &Range<PageNumber>) -> bool {
        let changed = |page: PageNumber| {
            (full && self.pages[page].state == State::Dirty && !self.pins.hold(page)).then_some(())
        };
        let stay = runs(range.clone(), changed);
        stay.iter().for_each(|(run, ())| self.stay(run));
        !stay.is_empty()
    }

    /// How a page left, if it did.
    pub(crate) fn back(&self, page: PageNumber) -> Option<(Part, u32)> {
        let page = self.pages[page];
        let part = if page.from_kept { Part::Kept } else { Part::Passing };
        (page.left != 0).then_some((part, page.left))
    }

    /// So many pages came that left in this way.
    pub(crate) fn came_back(&mut self, pages: usize, back: Option<(Part, u32)>) {
        let away = back.map_or(u32::MAX, |(_, left)| self.queue.clock().wrapping_sub(left));
        self.leaving.came_back(pages, away, self.local);
    }

    /// So many pages came together.
    pub(crate) fn came(&mut self, pages: usize) {
        self.together += (pages as f64 - self.together) * LATELY;
        // As long as there is room nothing leaves, in either way.
        if self.resident + self.ahead() > self.local {
            self.timing.came(pages, Instant::now());
        }
    }

    /// Many pages come together, so that somebody else should let others leave for them.
    pub(crate) fn moves_much(&self) -> bool {
        self.together >= LARGE_SET as f64
    }

    /// Pages that are kept free, so that a fault need not wait for room: twice what comes, and little
    /// enough that the budget is used.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
    pub(crate) fn ahead(&self) -> usize {
        ((self.together * 2.0) as usize).clamp(16, 512).min(self.local / 16)
    }

    /// Free pages below which the evictor works. Where few come at once, who serves faults lets pages leave, before and
    /// between them: each time that pages are unmapped interrupts every processor on which a thread of the program or
    /// of ours runs, so that two who serve at once hold each other up. Then the evictor sees to the limit alone.
    pub(crate) fn evictor_starts(&self) -> usize {
        if self.moves_much() && self.timing.ahead() { self.ahead() } else { 0 }
    }

    /// The set of a page belongs to the working set of the compute core that runs.
    pub(crate) fn swapped_in(&mut self, page: PageNumber) {
        let set = self.sets.in_force(page);
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
