//! Holds the protected part of local memory, and chooses its victims.
//!
//! The use of a resident page causes no fault, so that the pager does not notice it. But some neighbours of the page
//! were evicted and have refaulted: at short distances if they belong to an array that is traversed often, otherwise at
//! long distances. The program's pages are therefore divided into *areas*, aligned ranges of equal size, and the victim
//! is the oldest page of an area with long refault distances.

use super::page_run::PageRun;
use super::refault_distance::RefaultDistance;
use std::collections::VecDeque;

/// Largest number of areas. If there would be more, the size of all areas is doubled.
const MAX_AREAS: usize = 128;
/// Number of runs that are evicted from one area before all areas are compared again.
const IN_A_ROW: u32 = 8;

/// The protected part of local memory: its runs, by the area of pages that they are in.
#[derive(Debug)]
pub(super) struct ProtectedPages {
    /// The areas, in the order of their numbers.
    areas: Vec<Area>,
    /// Logarithm to base 2 of the number of pages in an area.
    shift: u32,
    pages: usize,
    runs: usize,
    /// Number of runs that were protected since the start. It is the clock by which the age of protected runs is
    /// measured.
    turn: u32,
    /// Index of the area from which the last run was evicted, and the number of further runs to evict from it before
    /// all areas are compared.
    victim_area: (usize, u32),
}

#[derive(Debug, Default)]
struct Area {
    number: u32,
    /// The protected runs of the area, oldest first, each with the value of `turn` at which it was protected.
    runs: VecDeque<(PageRun, u32)>,
    /// Value of `turn` at which the oldest run was protected, if there is a run. It is cached because it is read often.
    since: Option<u32>,
    /// Mean refault distance of all pages of the area, including those that were evicted from the probationary part.
    refault_distance: RefaultDistance,
}

impl Area {
    fn take(&mut self) -> Option<PageRun> {
        let (run, _) = self.runs.pop_front()?;
        self.update_oldest();
        Some(run)
    }

    fn update_oldest(&mut self) {
        self.since = self.runs.front().map(|(_, turn)| *turn);
    }
}

impl ProtectedPages {
    pub(super) fn new() -> ProtectedPages {
        let areas = Vec::with_capacity(MAX_AREAS);
        ProtectedPages { areas, shift: 0, pages: 0, runs: 0, turn: 0, victim_area: (0, 0) }
    }

    pub(super) const fn pages(&self) -> usize {
        self.pages
    }

    pub(super) const fn runs(&self) -> usize {
        self.runs
    }

    pub(super) fn push(&mut self, run: PageRun) {
        self.pages += run.pages as usize;
        self.runs += 1;
        self.turn = self.turn.wrapping_add(1);
        let turn = self.turn;
        let area = self.area_of(run);
        area.runs.push_back((run, turn));
        area.since.get_or_insert(turn);
    }

    /// Removes and returns the run that has been protected for longest.
    pub(super) fn oldest(&mut self) -> Option<PageRun> {
        let age = |area: &Area| area.since.map(|since| self.turn.wrapping_sub(since));
        let oldest = self.areas.iter().enumerate().max_by_key(|(_, area)| age(area))?;
        self.take_from(oldest.0)
    }

    /// Removes and returns the oldest run of the area with the largest product of two numbers: the age of that run, and
    /// the mean refault distance of the area. So pages of arrays that are traversed often remain protected, and so do
    /// the pages that a loop has come to most recently.
    pub(super) fn take_victim(&mut self, now: u32, local: usize) -> Option<PageRun> {
        let (at, left) = self.victim_area;
        let again = left > 0 && self.areas.get(at).is_some_and(|area| area.since.is_some());
        self.victim_area =
            if again { (at, left - 1) } else { (self.lowest_rated(now, local)?, IN_A_ROW - 1) };
        self.take_from(self.victim_area.0)
    }

    fn lowest_rated(&mut self, now: u32, local: usize) -> Option<usize> {
        // Ages are bounded by the time in which all runs are replaced once.
        let most = u32::try_from(self.runs).unwrap_or(u32::MAX).max(1);
        let (mut lowest, mut long) = (None, 0.0);
        for (at, area) in self.areas.iter_mut().enumerate() {
            let Some(since) = area.since else { continue };
            area.refault_distance.advance(now, local);
            let age = self.turn.wrapping_sub(since).clamp(1, most);
            let rate = f64::from(age) * area.refault_distance.mean(local);
            if rate > long {
                (lowest, long) = (Some(at), rate);
            }
        }
        lowest
    }

    /// Records the eviction of a run from either part of local memory.
    pub(super) fn evicted(&mut self, run: PageRun, now: u32, local: usize) {
        let refault_distance = &mut self.area_of(run).refault_distance;
        refault_distance.advance(now, local);
        refault_distance.evicted(run.pages);
    }

    /// Uncounts the eviction of a run that could not be evicted after all.
    pub(super) fn not_evicted(&mut self, run: PageRun) {
        self.area_of(run).refault_distance.not_evicted(run.pages);
    }

    /// Records the refault of a run.
    pub(super) fn refaulted(&mut self, run: PageRun, now: u32, local: usize) {
        let refault_distance = &mut self.area_of(run).refault_distance;
        refault_distance.advance(now, local);
        refault_distance.refaulted(run.pages);
    }

    pub(super) fn retain(&mut self, mut alive: impl FnMut(PageRun) -> bool) {
        (self.pages, self.runs) = (0, 0);
        for area in &mut self.areas {
            area.runs.retain(|(run, _)| alive(*run));
            area.update_oldest();
            self.pages += area.runs.iter().map(|(run, _)| run.pages as usize).sum::<usize>();
            self.runs += area.runs.len();
        }
    }

    fn take_from(&mut self, at: usize) -> Option<PageRun> {
        let run = self.areas[at].take()?;
        self.pages -= run.pages as usize;
        self.runs -= 1;
        Some(run)
    }

    fn area_of(&mut self, run: PageRun) -> &mut Area {
        loop {
            let number = run.first >> self.shift;
            match self.areas.binary_search_by_key(&number, |area| area.number) {
                Ok(at) => return &mut self.areas[at],
                Err(at) if self.areas.len() < MAX_AREAS => {
                    self.areas.insert(at, Area { number, ..Area::default() });
                    self.victim_area = (0, 0); // others are at these places now
                }
                Err(_) => self.double(),
            }
        }
    }

    /// Doubles the size of all areas, merging neighbours.
    fn double(&mut self) {
        self.shift += 1;
        self.areas.iter_mut().for_each(|area| area.number /= 2);
        self.areas.dedup_by(|next, area| {
            let one = next.number == area.number;
            if one {
                area.runs.append(&mut next.runs);
                area.runs.make_contiguous().sort_unstable_by_key(|(_, turn)| *turn);
                area.update_oldest();
                area.refault_distance.add(next.refault_distance);
            }
            one
        });
        self.victim_area = (0, 0);
    }
}

#[cfg(test)]
mod tests;
