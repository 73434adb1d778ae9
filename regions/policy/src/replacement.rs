//! Which pages leave when others need their place.
//!
//! The pager never learns that a resident page was read: there is no bit to look at. First in, first
//! out is then the usual answer, and the worst one for numerical programs: a loop over slightly
//! more than fits misses every time, because each page leaves just before its turn. So most of
//! the memory holds a part that is *kept*, and the rest lets pages *pass*:
//!
//! ```text
//!   fill ──► passing (1/4) ──► leaves                     a loop over N > local: the kept part hits
//!               │  ▲
//!   promotion   ▼  │ a probe now and then
//!            kept (3/4) ──► leaves
//! ```
//!
//! Is the kept part still worth keeping? That is measured: of the pages that left from either part,
//! how many came back soon. Probes (one page in [`PROBE`] leaves from the kept part) keep the
//! measure alive. When pages come back more often to the passing part, the program has moved on:
//! the oldest kept pages leave and the passing ones stay.
//!
//! Some loops stay in one place for a while, in a window larger than the passing part. Its pages come
//! back long before a kept page would, were it to leave: probes tell how long those stay away. So a
//! page that comes back sooner than that is kept in place of another one (`replace/kept.rs`).

mod protected;
mod refault_distance;
mod refaults;

use crate::PageNumber;
use core::ops::Range;
use protected::Kept;
use refault_distance::Absence;
use std::collections::VecDeque;

pub use refaults::Refaults;

/// Pages that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first page.
    pub first: u32,
    /// How many.
    pub pages: u32,
}

impl Run {
    /// Its pages.
    #[must_use]
    pub const fn range(&self) -> Range<PageNumber> {
        self.first as usize..(self.first + self.pages) as usize
    }
}

/// Which part a run left from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The part that stays through a loop.
    Kept,
    /// The part that lets pages through.
    Passing,
}

/// One page in so many leaves from the kept part,
const PROBE: u32 = 64;
/// so many in a row, or this share of what may be here: each probe makes a hole in what is kept and keeps a piece elsewhere,
/// and no transfer goes over a piece that is here.
const PROBE_PAGES: usize = 128;
const PROBE_SHARE: usize = 64;
/// The share of memory for pages that pass.
const PASSING_SHARE: usize = 4;
/// And for pages that are kept.
pub const KEPT_SHARE: f64 = 1.0 - 1.0 / PASSING_SHARE as f64;
/// Counts are halved when they reach this: the past fades.
const FADE: u32 = 4096;
/// The kept part goes first when so many times fewer of its pages come back, in 1/16.
const MARGIN: u64 = 8;
/// Pages that come back count up to loops over so many times what may be here. Of larger ones next to nothing can be kept.
const LARGEST_LOOP: usize = 8;
/// A page that stayed away for less than this share of a kept page's absence is kept, and another one gives way.
const SOONER: f64 = 0.65;

/// How many left, and how many of them came back soon.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    left: u32,
    back: u32,
}

impl Fate {
    fn leave(&mut self, pages: u32) {
        self.left += pages;
        if self.left >= FADE {
            self.left /= 2;
            self.back /= 2;
        }
    }

    /// Some did not leave after all.
    fn stay(&mut self, pages: u32) {
        self.left = self.left.saturating_sub(pages);
    }

    /// Of 65536 that left.
    fn share(self) -> u64 {
        u64::from(self.back.min(self.left)) * 65536 / u64::from(self.left.max(1))
    }
}

/// The order of leaving.
#[derive(Debug)]
pub struct Queue {
    kept: Kept,
    passing: VecDeque<Run>,
    /// Those whose turn it was, and that could not leave.
    aside: Vec<Run>,
    fates: [Fate; 2],
    absence: Absence,
    refaults: Refaults,
    /// Pages that are to leave until the next probe, and that left in this one.
    until_probe: u32,
    probed: u32,
    /// Pages that left, ever: the clock of re-use.
    clock: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        // What was kept first is believed to be in use until probes say otherwise.
        let fates = [Fate { left: PROBE, back: PROBE }, Fate::default()];
        Queue {
            kept: Kept::new(),
            passing: VecDeque::new(),
            aside: Vec::new(),
            fates,
            absence: Absence::default(),
            refaults: Refaults::default(),
            until_probe: PROBE - 1,
            probed: 0,
            clock: 0,
        }
    }
}

impl Queue {
    /// Nothing is here.
    #[must_use]
    pub fn new() -> Queue {
        Queue::default()
    }

    /// The clock: pages that left so far.
    #[must_use]
    pub const fn clock(&self) -> u32 {
        self.clock
    }

    /// Returns the counts of refaulted pages by refault distance, since the start.
    #[must_use]
    pub const fn refaults(&self) -> &Refaults {
        &self.refaults
    }

    /// Runs that are known; some of their pages may be gone already.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.kept.runs() + self.passing.len() + self.aside.len()
    }

    /// Whether none is left but those that were set aside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.runs() + self.passing.len() == 0
    }

    /// A run arrived, of which `local` pages fit. `back`: it was here before, left from that part, at
    /// that time.
    pub fn arrive(&mut self, run: Run, local: usize, back: Option<(Part, u32)>) {
        let pages = run.pages as usize;
        let mut keep = self.kept.pages() + pages <= local - local / PASSING_SHARE;
        if let Some((part, left)) = back {
            let distance = self.clock.wrapping_sub(left);
            self.refaults.add(run.pages, distance);
            let age = distance as usize;
            if age <= local * LARGEST_LOOP {
                let fate = &mut self.fates[part as usize];
                fate.back = fate.back.saturating_add(run.pages);
            }
            self.kept.came_back(run, self.clock, local);
            match part {
                Part::Kept => self.absence.come_back(run.pages),
                Part::Passing => keep |= (age as f64) < self.absence.mean(local) * SOONER,
            }
        }
        if keep {
            self.kept.push(run);
        } else {
            self.passing.push_back(run);
        }
    }

    /// The run that leaves next, with the part it was in.
    pub fn leave(&mut self, local: usize) -> Option<(Run, Part)> {
        let too_much_kept = self.kept.pages() > local - local / PASSING_SHARE;
        let probe = self.until_probe == 0;
        let goes = if too_much_kept && !probe {
            self.kept.least_needed(self.clock, local)
        } else if probe || self.passing.is_empty() || self.moved_on() {
            self.kept.oldest()
        } else {
            None
        };
        if let Some(run) = goes {
            self.absence.leave(run.pages);
            self.gone(run, Part::Kept, local);
            if !too_much_kept && let Some(stays) = self.passing.pop_front() {
                self.kept.push(stays);
            }
            return Some((run, Part::Kept));
        }
        let run = self.passing.pop_front()?;
        self.gone(run, Part::Passing, local);
        Some((run, Part::Passing))
    }

    /// A run that was to leave from that part cannot: it is in nobody's way until [`try_again`](Queue::try_again).
    pub fn set_aside(&mut self, run: Run, part: Part) {
        self.fates[part as usize].stay(run.pages);
        if part == Part::Kept {
            self.absence.stay(run.pages);
        }
        self.kept.stayed(run);
        self.aside.push(run);
    }

    /// What was set aside of these pages has its turn again, after the others.
    pub fn try_again(&mut self, pages: &Range<PageNumber>, local: usize) {
        let touches =
            |run: &Run| (run.first as usize) < pages.end && pages.start < (run.first + run.pages) as usize;
        let again: Vec<Run>;
        (again, self.aside) = core::mem::take(&mut self.aside).into_iter().partition(touches);
        again.into_iter().for_each(|run| self.arrive(run, local, None));
    }

    /// So many pages left that were never written to, whatever part they were in.
    pub fn left_untouched(&mut self, pages: usize) {
        self.fates[Part::Passing as usize].leave(u32::try_from(pages).unwrap_or(u32::MAX));
    }

    /// Drops the runs for which `alive` is false: their pages are gone.
    pub fn retain(&mut self, mut alive: impl FnMut(Run) -> bool) {
        self.kept.retain(&mut alive);
        self.passing.retain(|run| alive(*run));
        self.aside.retain(|run| alive(*run));
    }

    fn gone(&mut self, run: Run, part: Part, local: usize) {
        self.probes(run.pages, local);
        self.clock = self.clock.wrapping_add(run.pages);
        self.absence.pass(self.clock, local);
        self.kept.left(run, self.clock, local);
        self.fates[part as usize].leave(run.pages);
    }

    /// So many pages leave: a probe comes nearer, or is over.
    fn probes(&mut self, pages: u32, local: usize) {
        if self.until_probe > 0 {
            self.until_probe = self.until_probe.saturating_sub(pages);
            return;
        }
        self.probed += pages;
        if self.probed as usize >= (local / PROBE_SHARE).min(PROBE_PAGES) {
            (self.until_probe, self.probed) = (self.probed * (PROBE - 1), 0);
        }
    }

    /// Whether pages come back to the passing part clearly more often than to the kept one.
    fn moved_on(&self) -> bool {
        let [kept, passing] = [self.fates[0].share(), self.fates[1].share()];
        kept * 16 < passing * MARGIN && passing > 65536 / 16
    }
}

#[cfg(test)]
mod tests;
