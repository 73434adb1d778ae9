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
//! how many came back soon. Probes (one eviction in [`PROBE`] is from the kept part) keep the
//! measure alive. When pages come back more often to the passing part, the program has moved on:
//! the oldest kept pages leave and the passing ones stay.
//!
//! Some loops stay in one place for a while, in a window larger than the passing part. Its pages come
//! back long before a kept page would, were it to leave: probes tell how long those stay away. So a
//! page that comes back sooner than that is kept in place of another one (`replace/kept.rs`).

mod kept;

use kept::Kept;
use std::collections::VecDeque;

/// Pages that arrived together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first page.
    pub first: u32,
    /// How many.
    pub pages: u32,
}

/// Which part a run left from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The part that stays through a loop.
    Kept,
    /// The part that lets pages through.
    Passing,
}

/// One eviction in so many is from the kept part.
const PROBE: u32 = 64;
/// The share of memory for pages that pass.
const PASSING_SHARE: usize = 4;
/// And for pages that are kept.
pub(crate) const KEPT_SHARE: f64 = 1.0 - 1.0 / PASSING_SHARE as f64;
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

    /// Of 65536 that left.
    fn share(self) -> u64 {
        u64::from(self.back.min(self.left)) * 65536 / u64::from(self.left.max(1))
    }
}

/// How long pages stay away, by the clock, those that are away still among them.
#[derive(Clone, Copy, Debug, Default)]
struct Absence {
    /// Pages that are away.
    away: f64,
    /// Their time away, of all of them.
    time: f64,
    /// Those that came back.
    back: f64,
    /// That is so far.
    now: u32,
    /// When the past last faded.
    faded: u32,
}

impl Absence {
    fn leave(&mut self, pages: u32) {
        self.away += f64::from(pages);
    }

    fn come_back(&mut self, pages: u32) {
        self.away = (self.away - f64::from(pages)).max(0.0);
        self.back += f64::from(pages);
    }

    fn pass(&mut self, now: u32, local: usize) {
        self.time += self.away * f64::from(now.wrapping_sub(self.now));
        self.now = now;
        if now.wrapping_sub(self.faded) as usize > 2 * local {
            let half = |it: f64| it / 2.0;
            // Some of those that are away never come back: their part fades too.
            (self.time, self.back, self.faded) = (half(self.time), half(self.back), now);
            self.away *= 0.75;
        }
    }

    /// On average; as long as it takes to replace half of memory while little is known.
    fn mean(&self, local: usize) -> f64 {
        const LITTLE: f64 = 32.0;
        (self.time + LITTLE * local as f64 / 2.0) / (self.back + LITTLE)
    }

    /// Those of others too.
    fn add(&mut self, others: Absence) {
        self.away += others.away;
        self.time += others.time;
        self.back += others.back;
    }
}

/// The order of leaving.
#[derive(Debug)]
pub struct Queue {
    kept: Kept,
    passing: VecDeque<Run>,
    passing_pages: usize,
    fates: [Fate; 2],
    absence: Absence,
    evictions: u32,
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
            passing_pages: 0,
            fates,
            absence: Absence::default(),
            evictions: 0,
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

    /// Runs that are known; some of their pages may be gone already.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.kept.runs() + self.passing.len()
    }

    /// A run arrived, of which `local` pages fit. `back`: it was here before, left from that part, at
    /// that time.
    pub fn arrive(&mut self, run: Run, local: usize, back: Option<(Part, u32)>) {
        let pages = run.pages as usize;
        let mut keep = self.kept.pages() + pages <= local - local / PASSING_SHARE;
        if let Some((part, left)) = back {
            let age = self.clock.wrapping_sub(left) as usize;
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
            self.passing_pages += pages;
        }
    }

    /// The run that leaves next, with the part it was in.
    pub fn leave(&mut self, local: usize) -> Option<(Run, Part)> {
        self.evictions = self.evictions.wrapping_add(1);
        let too_much_kept = self.kept.pages() > local - local / PASSING_SHARE;
        let probe = self.evictions.is_multiple_of(PROBE);
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
                self.passing_pages -= stays.pages as usize;
                self.kept.push(stays);
            }
            return Some((run, Part::Kept));
        }
        let run = self.passing.pop_front()?;
        self.passing_pages -= run.pages as usize;
        self.gone(run, Part::Passing, local);
        Some((run, Part::Passing))
    }

    /// So many pages left that were never written to, whatever part they were in.
    pub fn left_untouched(&mut self, pages: usize) {
        self.fates[Part::Passing as usize].leave(u32::try_from(pages).unwrap_or(u32::MAX));
    }

    /// Drops the runs for which `alive` is false: their pages are gone.
    pub fn retain(&mut self, mut alive: impl FnMut(Run) -> bool) {
        self.kept.retain(&mut alive);
        self.passing.retain(|run| alive(*run));
        self.passing_pages = self.passing.iter().map(|run| run.pages as usize).sum();
    }

    fn gone(&mut self, run: Run, part: Part, local: usize) {
        self.clock = self.clock.wrapping_add(run.pages);
        self.absence.pass(self.clock, local);
        self.kept.left(run, self.clock, local);
        self.fates[part as usize].leave(run.pages);
    }

    /// Whether pages come back to the passing part clearly more often than to the kept one.
    fn moved_on(&self) -> bool {
        let [kept, passing] = [self.fates[0].share(), self.fates[1].share()];
        kept * 16 < passing * MARGIN && passing > 65536 / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Runs a sequence of pages through a memory of `local` pages; the share that hit.
    fn hits(local: usize, pages: impl Iterator<Item = u32>) -> f64 {
        let mut queue = Queue::new();
        let mut here: HashMap<u32, ()> = HashMap::new();
        let mut left: HashMap<u32, (Part, u32)> = HashMap::new();
        let (mut hits, mut all) = (0_u32, 0_u32);
        for page in pages {
            all += 1;
            if here.contains_key(&page) {
                hits += 1;
                continue;
            }
            while here.len() >= local {
                let (run, part) = queue.leave(local).unwrap();
                here.remove(&run.first);
                left.insert(run.first, (part, queue.clock()));
            }
            queue.arrive(Run { first: page, pages: 1 }, local, left.get(&page).copied());
            here.insert(page, ());
        }
        f64::from(hits) / f64::from(all)
    }

    fn laps(pages: u32, laps: u32) -> impl Iterator<Item = u32> {
        (0..laps).flat_map(move |_| 0..pages)
    }

    #[test]
    fn a_loop_over_more_than_fits_keeps_a_part() {
        // First in, first out would hit nothing. What can be kept is local / pages.
        for (local, pages) in [(750, 1000), (500, 1000), (250, 1000), (100, 1000)] {
            let share = hits(local, laps(pages, 40));
            let best = local as f64 / f64::from(pages);
            assert!(share > 0.7 * best, "{local} of {pages}: {share:.3}, {best:.3} is possible");
        }
    }

    #[test]
    fn a_loop_that_fits_hits_but_for_the_first_lap() {
        assert!(hits(1000, laps(990, 20)) > 0.94);
    }

    #[test]
    fn a_program_that_moves_on_gets_its_new_pages() {
        // Two loops that both fit, one after the other: the second must not starve.
        let pages = laps(800, 20).chain((0..30).flat_map(|_| 5000..5800));
        assert!(hits(1000, pages) > 0.75);
    }

    // Seen to fail (0.005) when only what comes back within two memories counts.
    #[test]
    fn a_part_of_a_large_loop_is_kept_though_another_part_was_kept_before() {
        let (local, times) = (10_000, 10);
        let before = || laps(30_000, 4);
        let after = || (0..times).flat_map(|_| 50_000..90_000);
        let (first, all) = (4.0 * 30_000.0, f64::from(times) * 40_000.0);
        let hit = hits(local, before().chain(after())) * (first + all) - hits(local, before()) * first;
        assert!(hit / all > 0.7 * 0.1875, "{:.3}, 0.188 is possible", hit / all);
    }

    #[test]
    fn pages_used_all_the_time_stay_while_others_stream_by() {
        // Every other access is to one of 200 hot pages, the rest is used once.
        let pages = (0..60_000_u32).map(|i| if i % 2 == 0 { i / 2 % 200 } else { 10_000 + i });
        let share = hits(1000, pages);
        assert!(share > 0.40, "{share} of 0.5 that are possible");
    }

    #[test]
    fn a_window_larger_than_the_passing_part_stays_while_it_is_used() {
        // 4000 pages in a memory of 1000: first in their order, then in windows of 500, 10 times each.
        let windows = (0..8_u32).flat_map(|at| (0..10).flat_map(move |_| at * 500..at * 500 + 500));
        let share = hits(1000, laps(4000, 6).chain((0..8).flat_map(|_| windows.clone())));
        let most = 8.0 * 0.9 * 40_000.0 / (6.0 * 4000.0 + 8.0 * 40_000.0);
        assert!(share > 0.8 * most, "{share:.3}, {most:.3} is possible");
    }

    #[test]
    fn runs_whose_pages_are_gone_are_forgotten() {
        let mut queue = Queue::new();
        for first in 0..10 {
            queue.arrive(Run { first, pages: 1 }, 100, None);
        }
        queue.retain(|run| run.first % 2 == 0);
        assert_eq!(queue.runs(), 5);
        assert_eq!(queue.leave(100).unwrap().0, Run { first: 0, pages: 1 });
    }
}
