//! Finds parts of a region that need another size than the rest.
//!
//! The pager does not know where an array begins. The costs of a duel are therefore also recorded for each eighth of
//! its region. Neighbouring parts that gain by another size while the whole region does not become a region of their
//! own:
//!
//! ```text
//!   by epoch     | = | = | = | 2 | 2 | = | = | = |      2: doubling would gain
//!   afterwards   |  region   | region|   region  |
//! ```

use super::blocks::{BlockCosts, EvictionPrice};
use super::gains::Gains;
use crate::PageNumber;
use core::ops::Range;

/// Number of parts into which a region is divided.
const PARTS: usize = 8;
/// Number of standard errors at which the gain of a part is significant. It is larger than for a whole region, because
/// the best of many parts is chosen.
const SIGNIFICANT_PART: f64 = 4.0;
/// Smallest number of epochs after which a part may be split off, or a size that has lasted for a tuning window may
/// change: enough for more than one phase of the program.
pub(super) const MIN_EPOCHS: f64 = 3.0;
/// Approximate number of leader blocks of a smaller size, and of twice the size, that are compared in one part.
const BLOCKS: usize = 6;
/// Largest weight of the gains of earlier epochs, as a number of epochs.
const MAX_EPOCHS: f64 = 64.0;

/// The gains of other sizes in each part of a region.
#[derive(Debug, Default)]
pub(super) struct RegionParts {
    /// The range of block numbers of the region.
    blocks: Range<usize>,
    gains: [Gains; PARTS],
    /// The costs of leader blocks, by class, that are collected until there are enough for a comparison.
    seen: [BlockCosts; 3],
}

/// Neighbouring parts of a region that become a region of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionPart {
    /// The pages of the parts together. At either end of the region, the range is open, because later blocks may extend
    /// the region.
    pub pages: Range<PageNumber>,
    /// Share of the region that lies before the parts.
    pub before: f64,
    /// Share of the region that the parts have together.
    pub share: f64,
}

impl RegionParts {
    /// Adds the leader blocks of an epoch, by class (a smaller size, the size in force, twice the size). They also show
    /// the extent of the region. `epochs_of` converts a number of pages that were filled in leaders of the size in
    /// force to epochs of the region, from which the epochs of each part follow.
    pub(super) fn add(
        &mut self,
        epoch: &[BlockCosts; 3],
        epochs_of: impl Fn(f64) -> f64,
        prices: [EvictionPrice; 2],
        evict_ns: f64,
    ) {
        let blocks = epoch[1].numbers();
        let new = blocks.start.min(self.blocks.start)..blocks.end.max(self.blocks.end);
        if self.blocks.len() < new.len() - new.len() / PARTS {
            *self = RegionParts { blocks, ..RegionParts::default() };
        }
        self.seen.iter_mut().zip(epoch).for_each(|(seen, epoch)| seen.append(epoch));
        if self.seen[0].len().min(self.seen[2].len()) < PARTS * BLOCKS {
            return;
        }
        for part in 0..PARTS {
            let within = self.range(&(part..part + 1));
            let samples = self.seen.each_ref().map(|blocks| blocks.within(&within));
            if let Some(gains) = Gains::seen(samples, 1.0, prices, evict_ns) {
                let epochs = epochs_of(gains.pages) * PARTS as f64;
                let before = self.gains[part];
                let before = before.in_epochs(before.epochs.min(MAX_EPOCHS));
                self.gains[part] = before.and(gains.in_epochs(epochs));
            }
        }
        self.seen = Default::default();
    }

    /// Returns the neighbouring parts that gain most in one direction, and that direction. The parts are not the whole
    /// region, gain at least the share of their waiting time that `least` returns, and gain significantly more than the
    /// other parts. A block has `block` pages.
    pub(super) fn best(
        &self,
        block: usize,
        least: impl Fn(Gains) -> [f64; 2],
    ) -> Option<(RegionPart, usize)> {
        let neighbours = (0..PARTS).flat_map(|first| (first + 1..=PARTS).map(move |end| first..end));
        let some = neighbours.filter(|parts| parts.len() < PARTS);
        let gaining = some.filter_map(|parts| {
            let of = |inside: bool| {
                let some = (0..PARTS).filter(|part| parts.contains(part) == inside);
                some.map(|part| self.gains[part]).reduce(Gains::combined)
            };
            let (gains, others) = (of(true)?, of(false)?);
            let way = gains.best(least(gains), SIGNIFICANT_PART)?;
            let lasts = gains.epochs > MIN_EPOCHS && others.epochs > 0.0 && gains.more_than(others, way);
            lasts.then_some((gains.less[way].0 * gains.pages, parts, way))
        });
        let (_, parts, way) = gaining.max_by(|one, other| one.0.total_cmp(&other.0))?;
        let blocks = self.range(&parts);
        let [start, end] = [parts.start == 0, parts.end == PARTS];
        let pages =
            if start { 0 } else { blocks.start * block }..if end { usize::MAX } else { blocks.end * block };
        let share = |parts: usize| parts as f64 / PARTS as f64;
        Some((RegionPart { pages, before: share(parts.start), share: share(parts.len()) }, way))
    }

    /// Returns the block numbers of a range of parts.
    fn range(&self, parts: &Range<usize>) -> Range<usize> {
        let at = |part: usize| self.blocks.start + self.blocks.len() * part / PARTS;
        at(parts.start)..at(parts.end)
    }
}
