//! Parts of a region, one of which may want another size than the rest.
//!
//! Nobody says where an array begins. So what a trial sees is also kept by eighths of its region, and neighbours that
//! gain together by another size, where the whole does not, become a region of their own:
//!
//! ```text
//!   lap by lap   | = | = | = | 2 | 2 | = | = | = |      2: twice the size would gain
//!   then         |  region   | region|   region  |
//! ```

use super::blocks::{Blocks, Price};
use super::gains::Gains;
use crate::PageNumber;
use core::ops::Range;

/// Parts of a region.
const PARTS: usize = 8;
/// A part is sure by so many standard errors: there are many to choose from.
const SURE_OF_PARTS: f64 = 4.0;
/// Laps of its own after which a part may go its own way: a phase is shorter.
const LEAST_LAPS: f64 = 3.0;
/// Blocks of a part, about, of each other class, that are compared.
const BLOCKS: usize = 6;
/// What came before counts for as many at most.
const MOST_LAPS: f64 = 64.0;

/// What the parts of a region would gain.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Numbers of the blocks of all.
    blocks: Range<usize>,
    gains: [Gains; PARTS],
    /// Blocks of each class that do not count yet: there are too few of them.
    seen: [Blocks; 3],
}

/// Neighbouring parts of a region, which are to be a region of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Their pages; at an end of the region they reach as far as it does.
    pub pages: Range<PageNumber>,
    /// The share of the region that lies before them.
    pub before: f64,
    /// Their share of the region.
    pub share: f64,
}

impl Parts {
    /// Another lap is over: its blocks of half the size, of the size in force and of twice the size; they say where the
    /// region lies. A part has laps of its own: `laps_of` says how many of the region's it is when so many pages came in
    /// its blocks of the size in force.
    pub(super) fn add(
        &mut self,
        lap: &[Blocks; 3],
        laps_of: impl Fn(f64) -> f64,
        prices: [Price; 2],
        evict_ns: f64,
    ) {
        let blocks = lap[1].numbers();
        let new = blocks.start.min(self.blocks.start)..blocks.end.max(self.blocks.end);
        if self.blocks.len() < new.len() - new.len() / PARTS {
            *self = Parts { blocks, ..Parts::default() };
        }
        self.seen.iter_mut().zip(lap).for_each(|(seen, lap)| seen.append(lap));
        if self.seen[0].len().min(self.seen[2].len()) < PARTS * BLOCKS {
            return;
        }
        for part in 0..PARTS {
            let within = self.range(&(part..part + 1));
            let samples = self.seen.each_ref().map(|blocks| blocks.within(&within));
            if let Some(gains) = Gains::seen(samples, 1.0, prices, evict_ns) {
                let laps = laps_of(gains.pages) * PARTS as f64;
                let before = self.gains[part];
                let before = before.in_laps(before.laps.min(MOST_LAPS));
                self.gains[part] = before.and(gains.in_laps(laps));
            }
        }
        self.seen = Default::default();
    }

    /// The neighbours, not all, that gain most in one way, by at least the share of their wait that `least` says,
    /// and clearly more than the others; a block has so many pages.
    pub(super) fn best(&self, block: usize, least: impl Fn(Gains) -> [f64; 2]) -> Option<(Part, usize)> {
        let neighbours = (0..PARTS).flat_map(|first| (first + 1..=PARTS).map(move |end| first..end));
        let some = neighbours.filter(|parts| parts.len() < PARTS);
        let gaining = some.filter_map(|parts| {
            let of = |inside: bool| {
                let some = (0..PARTS).filter(|part| parts.contains(part) == inside);
                some.map(|part| self.gains[part]).reduce(Gains::beside)
            };
            let (gains, others) = (of(true)?, of(false)?);
            let way = gains.best(least(gains), SURE_OF_PARTS)?;
            let lasts = gains.laps > LEAST_LAPS && others.laps > 0.0 && gains.more_than(others, way);
            lasts.then_some((gains.less[way].0 * gains.pages, parts, way))
        });
        let (_, parts, way) = gaining.max_by(|one, other| one.0.total_cmp(&other.0))?;
        let blocks = self.range(&parts);
        let [start, end] = [parts.start == 0, parts.end == PARTS];
        let pages =
            if start { 0 } else { blocks.start * block }..if end { usize::MAX } else { blocks.end * block };
        let share = |parts: usize| parts as f64 / PARTS as f64;
        Some((Part { pages, before: share(parts.start), share: share(parts.len()) }, way))
    }

    /// Numbers of the blocks of some parts.
    fn range(&self, parts: &Range<usize>) -> Range<usize> {
        let at = |part: usize| self.blocks.start + self.blocks.len() * part / PARTS;
        at(parts.start)..at(parts.end)
    }
}
