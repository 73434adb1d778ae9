//! The kept part of memory, and what of it gives way.
//!
//! Nothing tells whether a page that is kept is used. But of its neighbours some left and came back: those of an array that is
//! passed over often soon, those of another one late. So the program is divided into areas, and what gives way is the oldest
//! page of one whose pages stay away for long.

use super::{Absence, Run};
use std::collections::VecDeque;

/// No more areas than this: when there would be, each becomes twice as large.
const MOST: usize = 128;
/// So many leave one area before all are looked at again.
const IN_A_ROW: u32 = 8;

/// Runs that stay through a loop.
#[derive(Debug)]
pub(super) struct Kept {
    /// In the order of their numbers.
    areas: Vec<Area>,
    /// An area has 2^`shift` pages.
    shift: u32,
    pages: usize,
    runs: usize,
    /// Runs that were kept, ever.
    turn: u32,
    /// The area that gave way last, and how often it may until all are looked at.
    gives_way: (usize, u32),
}

#[derive(Debug, Default)]
struct Area {
    number: u32,
    /// The oldest first, each with its turn.
    runs: VecDeque<(Run, u32)>,
    /// The turn of the oldest, if there are any: looked at often, and this is at hand.
    since: Option<u32>,
    /// Of all its pages, from whichever part they left.
    absence: Absence,
}

impl Area {
    fn take(&mut self) -> Option<Run> {
        let (run, _) = self.runs.pop_front()?;
        self.look();
        Some(run)
    }

    fn look(&mut self) {
        self.since = self.runs.front().map(|(_, turn)| *turn);
    }
}

impl Kept {
    pub(super) fn new() -> Kept {
        let areas = Vec::with_capacity(MOST);
        Kept { areas, shift: 0, pages: 0, runs: 0, turn: 0, gives_way: (0, 0) }
    }

    pub(super) const fn pages(&self) -> usize {
        self.pages
    }

    pub(super) const fn runs(&self) -> usize {
        self.runs
    }

    pub(super) fn push(&mut self, run: Run) {
        self.pages += run.pages as usize;
        self.runs += 1;
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let area = self.area_of(run);
        area.runs.push_back((run, turn));
        area.since.get_or_insert(turn);
    }

    /// Takes the run that was kept first.
    pub(super) fn oldest(&mut self) -> Option<Run> {
        let age = |area: &Area| area.since.map(|since| self.turn.wrapping_sub(since));
        let oldest = self.areas.iter().enumerate().max_by_key(|(_, area)| age(area))?;
        self.take_from(oldest.0)
    }

    /// Takes the oldest run of an area whose pages stay away for long, and were kept long ago: the product decides. So pages
    /// that are passed over often stay, and of a window that moves on the last ones.
    pub(super) fn least_needed(&mut self, now: u32, local: usize) -> Option<Run> {
        let (at, left) = self.gives_way;
        let again = left > 0 && self.areas.get(at).is_some_and(|area| area.since.is_some());
        self.gives_way = if again { (at, left - 1) } else { (self.rated_lowest(now, local)?, IN_A_ROW - 1) };
        self.take_from(self.gives_way.0)
    }

    fn rated_lowest(&mut self, now: u32, local: usize) -> Option<usize> {
        // When all were replaced once since, it was long ago.
        let most = u32::try_from(self.runs).unwrap_or(u32::MAX).max(1);
        let (mut lowest, mut long) = (None, 0.0);
        for (at, area) in self.areas.iter_mut().enumerate() {
            let Some(since) = area.since else { continue };
            area.absence.pass(now, local);
            let age = self.turn.wrapping_sub(since).clamp(1, most);
            let rate = f64::from(age) * area.absence.mean(local);
            if rate > long {
                (lowest, long) = (Some(at), rate);
            }
        }
        lowest
    }

    /// A run left, from whichever part.
    pub(super) fn left(&mut self, run: Run, now: u32, local: usize) {
        let absence = &mut self.area_of(run).absence;
        absence.pass(now, local);
        absence.leave(run.pages);
    }

    /// It did not, after all.
    pub(super) fn stayed(&mut self, run: Run) {
        self.area_of(run).absence.stay(run.pages);
    }

    /// And came back.
    pub(super) fn came_back(&mut self, run: Run, now: u32, local: usize) {
        let absence = &mut self.area_of(run).absence;
        absence.pass(now, local);
        absence.come_back(run.pages);
    }

    pub(super) fn retain(&mut self, mut alive: impl FnMut(Run) -> bool) {
        (self.pages, self.runs) = (0, 0);
        for area in &mut self.areas {
            area.runs.retain(|(run, _)| alive(*run));
            area.look();
            self.pages += area.runs.iter().map(|(run, _)| run.pages as usize).sum::<usize>();
            self.runs += area.runs.len();
        }
    }

    fn take_from(&mut self, at: usize) -> Option<Run> {
        let run = self.areas[at].take()?;
        self.pages -= run.pages as usize;
        self.runs -= 1;
        Some(run)
    }

    fn area_of(&mut self, run: Run) -> &mut Area {
        loop {
            let number = run.first >> self.shift;
            match self.areas.binary_search_by_key(&number, |area| area.number) {
                Ok(at) => return &mut self.areas[at],
                Err(at) if self.areas.len() < MOST => {
                    self.areas.insert(at, Area { number, ..Area::default() });
                    self.gives_way = (0, 0); // others are at these places now
                }
                Err(_) => self.double(),
            }
        }
    }

    /// Each area becomes twice as large.
    fn double(&mut self) {
        self.shift += 1;
        self.areas.iter_mut().for_each(|area| area.number /= 2);
        self.areas.dedup_by(|next, area| {
            let one = next.number == area.number;
            if one {
                area.runs.append(&mut next.runs);
                area.runs.make_contiguous().sort_unstable_by_key(|(_, turn)| *turn);
                area.look();
                area.absence.add(next.absence);
            }
            one
        });
        self.gives_way = (0, 0);
    }
}

#[cfg(test)]
mod tests;
