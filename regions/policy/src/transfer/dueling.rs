//! Set dueling (Qureshi et al., ISCA 2007) for the size of transfer units: sizes are compared in space, not in time.
//!
//! A program without marks gives no measure of progress, so that times at one size and later at another cannot be
//! compared. But a program treats most of its blocks alike. A few leader blocks, chosen by their numbers, use smaller
//! units than those in force, a few others units of twice the size, and the costs of these classes of blocks are
//! compared:
//!
//! ```text
//!   blocks  | = | = | < | = | = | = | 2 | = | = | < | …     cost < less than cost = ?  then smaller units
//! ```
//!
//! Below 32 pages the smaller size is half of the size in force, from 32 pages on an eighth, but at least 8 pages. With
//! half, random accesses hardly show that a large unit is too large: a unit that was evicted is soon used again, be it
//! whole or half, so that blocks of both sizes fill nearly the same number of pages.
//!
//! Programs have phases which want different sizes. Time is therefore counted in epochs: one ends when as many pages
//! were filled as the program has. A gain within an epoch must be large to count; a gain that lasts for a *tuning
//! window* of eight epochs may be small. Each epoch has other leader blocks.
//!
//! The cost of a fill is the time that the thread waited, plus the cost of the evictions that its pages cause. Each
//! filled page makes another page be evicted earlier, which may therefore refault: the more often, the shorter refault
//! distances are. The price of such a refault is that of a page in units of the size in force, or of the average page
//! if there are several regions. A filled page is charged this price once it is evicted, since until then the program
//! may still use it. In addition, each filled unit is evicted once more, which has a cost per unit and one per page.
//! The cost per unit charges small units. If blocks are used whole, other sizes fill the same pages, and costs are
//! compared per page. That shows differences of a tenth, and a comparison per block only those of a third, because
//! blocks differ more in how many of their pages are still resident.

use super::blocks::{BlockCosts, EvictionPrice};
use super::gains::{DOUBLE, Gains, SMALLER};
use super::leaders::{LeaderBlocks, LeaderClass, REDUCTION, block};
use super::parts::{MIN_EPOCHS, RegionPart, RegionParts};
use crate::{MAX_TRANSFER, SIGNIFICANT};
use core::ops::Range;

/// Number of fills between two comparisons of the sizes, and number of fills in leader blocks of a smaller size before
/// the first comparison.
const CHECK_INTERVAL: u64 = 128;
/// Smallest number of fills after which other leader blocks are chosen without reduced sampling, if no comparison was
/// possible for [`WINDOW`] epochs, because too few of the fills were in leader blocks.
const MAX_EPOCH_FILLS: u64 = 8192;
/// Required gain at the end of a tuning window: the share of the waiting time that a change of the size must save.
const GAIN: f64 = 0.05;
/// Required gain of smaller (`[0]`) and of doubled (`[1]`) units after one epoch, as a share of the waiting time.
/// After *n* epochs it is divided by the square root of *n*, because a short observation may cover only one phase of
/// the program. Doubling must gain more: units that are too large can cost hundreds of times as much as the best size,
/// and units that are too small only a few times as much.
const GAIN_EARLY: [f64; 2] = [0.25, 0.4];
/// Required gain of smaller (`[0]`) and of doubled (`[1]`) units within the first epoch, as a share of the waiting
/// time, in place of [`GAIN_EARLY`]. A size that has lasted for a tuning window changes before the end of the next one
/// only if some consecutive epochs gain the larger of the two shares.
const GAIN_AT_ONCE: [f64; 2] = [0.3, 0.4];
/// Required gain of doubling the size, as a share of the waiting time, if the program uses all pages of each block. It
/// holds once as many epochs as the backoff have passed. Since larger units then fill no pages in vain, a wrong change
/// costs little.
const GAIN_WHOLE: f64 = 0.1;
/// Smallest size in pages of a large unit, which is compared with an eighth of its size, but at least 8 pages.
const LARGE: usize = 32;
/// Divisor of the size of large units.
const LARGE_STEP: usize = 8;
/// Factor on the required gain of a second change of the size in the same direction, in the first epoch after the first
/// change.
const SAME_WAY: f64 = 0.25;
/// Number of epochs in a tuning window while a size is new. Once a size has lasted for one, fewer leader blocks are
/// sampled, and tuning windows are longer by the same factor.
const WINDOW: f64 = 8.0;
/// Largest backoff, the factor by which a tuning window is longer than usual. It doubles whenever the size changes
/// back, so that a program whose phases need different sizes gets one that is good for all of them.
const MAX_BACKOFF: f64 = 8.0;

/// The costs of evictions, which set dueling adds to the time of fills.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Nanoseconds per evicted page, in total.
    pub evict_ns: f64,
    /// The part of `evict_ns` that each transfer unit costs, in nanoseconds per unit.
    pub evict_unit_ns: f64,
    /// The part of `evict_ns` that each page costs, in nanoseconds per page.
    pub evict_page_ns: f64,
    /// Number of refaults of other pages that one filled page causes by using local memory.
    pub refaults_per_fill: f64,
    /// Mean time in nanoseconds for which the program waits for a page, over all regions; `None` if there is a single
    /// region.
    pub page_ns: Option<f64>,
    /// Number of pages with contents, resident or not. An epoch ends when as many pages were filled.
    pub epoch_pages: usize,
}

/// The fills of the current epoch, and their costs.
#[derive(Debug, Default)]
struct Epoch {
    /// The costs of the leader blocks, by class.
    blocks: [BlockCosts; 3],
    fills: u64,
    pages: u64,
}

/// A change of the size of transfer units.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeChange {
    /// New size, in pages.
    pub unit: usize,
    /// The part of the region to which the change applies; `None` for all of the region.
    pub part: Option<RegionPart>,
}

/// Compares sizes of transfer units in one region, for one kind of access, and chooses the best.
#[derive(Debug)]
pub struct SetDuel {
    unit: usize,
    epoch: Epoch,
    /// The gains of other sizes in the earlier epochs of the tuning window.
    gains: Gains,
    /// The gains in each part of the region, over all epochs at this size. They cover more than one tuning window,
    /// because differences between parts last longer than phases.
    parts: RegionParts,
    /// The leader blocks of the current epoch.
    leaders: LeaderBlocks,
    /// Whether the size has lasted for a tuning window.
    settled: bool,
    /// Whether sampling is reduced to a few leader blocks.
    reduced: bool,
    /// Factor on the evidence that a change of the size needs.
    backoff: f64,
    /// Whether this duel has the size for a fill: since [`begin`](SetDuel::begin), or since it was split off from a
    /// duel that had.
    begun: bool,
    /// The direction of the last change of the size, smaller or doubled; `None` before the first one.
    last_way: Option<usize>,
    /// Whether evidence from at least one whole epoch is needed for a change of the size.
    whole_epochs: bool,
    /// Whether smaller units and doubled ones were significantly worse at the end of the last epoch.
    worse: [bool; 2],
}

impl SetDuel {
    /// Makes a duel that starts with units of `unit` pages.
    #[must_use]
    pub fn new(unit: usize) -> SetDuel {
        SetDuel {
            unit,
            epoch: Epoch::default(),
            gains: Gains::default(),
            parts: RegionParts::default(),
            leaders: LeaderBlocks::new(),
            settled: false,
            reduced: false,
            backoff: 1.0,
            begun: false,
            last_way: None,
            whole_epochs: false,
            worse: [false; 2],
        }
    }

    /// Requires evidence from whole epochs for a change of the size. This is for strided access, where half a unit
    /// always costs less until the program uses the other half, which it does late.
    #[must_use]
    pub fn with_whole_epochs(self) -> SetDuel {
        SetDuel { whole_epochs: true, ..self }
    }

    /// Returns whether [`begin`](SetDuel::begin) was called, on this duel or on one from which it was split off.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Records that the first fill is about to happen, with units of `unit` pages.
    pub fn begin(&mut self, unit: usize, costs: Costs) {
        (self.unit, self.begun) = (unit, true);
        self.next_window(costs);
    }

    /// Returns the size of the transfer unit for a fault at `page`, in pages.
    #[must_use]
    pub fn unit_at(&self, page: usize) -> usize {
        match self.leaders.class(page / block(self.unit)) {
            Some(LeaderClass::Smaller) => self.size(SMALLER),
            Some(LeaderClass::Double) => self.size(DOUBLE),
            Some(LeaderClass::Same) | None => self.unit,
        }
    }

    /// Returns the size in force, in pages.
    #[must_use]
    pub const fn unit(&self) -> usize {
        self.unit
    }

    /// Makes the duel for a part of the region that becomes a region of its own, with units of `unit` pages.
    #[must_use]
    pub fn split_off(&self, unit: usize) -> SetDuel {
        let last_way = (unit != self.unit).then_some(if unit < self.unit { SMALLER } else { DOUBLE });
        let backoff = (self.backoff * 2.0).min(MAX_BACKOFF);
        let SetDuel { leaders, begun, whole_epochs, .. } = *self;
        SetDuel { backoff, last_way, leaders, begun, whole_epochs, ..SetDuel::new(unit) }
    }

    /// Records a fill of `pages` pages from `page` on that took `ns` nanoseconds. Returns a change of the size, if
    /// there is one. If it applies to a part of the region, the caller gives that part a duel of its own.
    pub fn filled(&mut self, page: usize, pages: usize, ns: u64, costs: Costs) -> Option<SizeChange> {
        let number = page / block(self.unit);
        if let Some(class) = self.leaders.class(number) {
            self.epoch.blocks[class as usize].filled(number, pages, ns);
        }
        let epoch = &mut self.epoch;
        epoch.fills += 1;
        epoch.pages += pages as u64;
        // A comparison takes time, so that not every fill makes one.
        if !epoch.fills.is_multiple_of(CHECK_INTERVAL) {
            return None;
        }
        let (part, way) = self.better_way(costs)?;
        let unit = self.size(way);
        if part.is_none() {
            if self.last_way.replace(way).is_some_and(|before| before != way) {
                self.backoff = (self.backoff * 2.0).min(MAX_BACKOFF);
            }
            (self.unit, self.settled) = (unit, false);
        }
        (self.parts, self.worse, self.reduced) = (RegionParts::default(), [false; 2], false);
        self.next_window(costs);
        Some(SizeChange { unit, part })
    }

    /// Records a fill of `pages` pages from `page` on, which took `ns` nanoseconds, by the other kind of access (dense
    /// or strided), which has a duel of its own. The part of it in the block of `page` adds to the costs of that block
    /// if it is a leader, because small units may leave pages for other accesses to fill.
    pub fn filled_otherwise(&mut self, page: usize, pages: usize, ns: u64) {
        let size = block(self.unit);
        let within = pages.min(size - page % size);
        let ns = ns as f64 * within as f64 / pages.max(1) as f64;
        if let Some(class) = self.leaders.class(page / size) {
            self.epoch.blocks[class as usize].filled_otherwise(page / size, within, ns);
        }
    }

    /// Records the eviction of pages that were filled for this duel's kind of access. The leader blocks among theirs
    /// are charged for the refaults of other pages that those fills caused by using local memory.
    pub fn evicted(&mut self, pages: Range<usize>) {
        let size = block(self.unit);
        let mut first = pages.start;
        while first < pages.end {
            let number = first / size;
            let end = ((number + 1) * size).min(pages.end);
            if let Some(class) = self.leaders.class(number) {
                self.epoch.blocks[class as usize].evicted(number, end - first);
            }
            first = end;
        }
    }

    /// Returns the direction (smaller or doubled) in which units cost clearly less, for all blocks (`None`) or for a
    /// part of the region. Begins the next epoch or tuning window if one ends.
    fn better_way(&mut self, costs: Costs) -> Option<(Option<RegionPart>, usize)> {
        let epochs = self.epoch.pages as f64 / costs.epoch_pages.max(1) as f64;
        let enough = self.epoch.blocks[LeaderClass::Smaller as usize].fills() >= CHECK_INTERVAL;
        let Some(epoch) = self.seen(epochs, costs).filter(|_| enough) else {
            if epochs >= WINDOW && self.epoch.fills >= MAX_EPOCH_FILLS {
                // Otherwise a small region would have too few leader blocks forever.
                (self.reduced, self.worse) = (false, [false; 2]);
                self.next_epoch(costs);
            }
            return None;
        };
        let all = self.gains.and(epoch);
        let early = self.early(all);
        let epoch_ends = epochs >= if self.settled { MIN_EPOCHS } else { 1.0 };
        let window_ends =
            all.epochs >= self.backoff * if self.reduced { WINDOW * REDUCTION as f64 } else { WINDOW };
        let open = [SMALLER, DOUBLE].map(|way| self.size(way) != self.unit);
        let least = if window_ends { [GAIN; 2] } else { early };
        // One phase does not change a size that lasted: some epochs alone must gain much, and all together count only
        // after the time in which a new size would have been judged.
        let least_of_epoch = if self.settled { [GAIN_AT_ONCE[DOUBLE]; 2] } else { self.early(epoch) };
        let of_epoch = epoch.best(least_of_epoch, SIGNIFICANT).filter(|_| epoch_ends || !self.settled);
        let judged = !self.settled || all.epochs >= WINDOW;
        let of_all = all.best(least, SIGNIFICANT).filter(|_| epoch_ends && judged || window_ends);
        if let Some(way) = of_epoch.or(of_all).filter(|&way| open[way]) {
            return Some((None, way));
        }
        if epoch_ends {
            let epochs_of = |pages: f64| pages * self.leaders.one_in() / costs.epoch_pages.max(1) as f64;
            self.parts.add(&self.epoch.blocks, epochs_of, self.prices(costs), costs.evict_ns);
            let of_part = self.parts.best(block(self.unit), |gains| self.early(gains));
            if let Some((part, way)) = of_part.filter(|&(_, way)| open[way]) {
                return Some((Some(part), way));
            }
            self.worse = all.worse(early);
        }
        let all_worse = [SMALLER, DOUBLE].iter().all(|&way| self.worse[way] || !open[way]);
        if window_ends || epoch_ends && all_worse {
            (self.settled, self.reduced) = (true, true);
            self.next_window(costs);
        } else if epoch_ends {
            self.gains = all;
            self.next_epoch(costs);
        }
        None
    }

    /// Returns the share of the waiting time that a change must save before the end of a tuning window, for halving and
    /// doubling.
    fn early(&self, gains: Gains) -> [f64; 2] {
        let epochs = gains.epochs;
        let just_changed = !self.settled && self.gains.epochs <= 0.0;
        let mut least = [SMALLER, DOUBLE].map(|way| {
            let gain = match epochs < 1.0 {
                true if self.whole_epochs => [f64::INFINITY; 2],
                true => GAIN_AT_ONCE,
                false => GAIN_EARLY,
            };
            let least = gain[way] * (self.backoff / epochs).sqrt();
            if just_changed && self.last_way == Some(way) { least * SAME_WAY } else { least }
        });
        // Strided access uses units whole only until the program comes to the pages between.
        if !self.whole_epochs && gains.whole() && epochs >= self.backoff {
            least[DOUBLE] = least[DOUBLE].min(GAIN_WHOLE * self.backoff.sqrt());
        }
        least
    }

    /// Returns the gains in the current epoch, once there are leader blocks of each class.
    fn seen(&self, epochs: f64, costs: Costs) -> Option<Gains> {
        let samples = self.epoch.blocks.each_ref().map(BlockCosts::all);
        Gains::seen(samples, epochs, self.prices(costs), costs.evict_ns)
    }

    /// Returns the prices of the evictions that a fill causes, for smaller units and doubled ones.
    ///
    /// The local memory that pages take from others has the same price for all sizes. With a price for each size, large
    /// units would seem cheap, because they take local memory from the others. For the same reason, doubling is not
    /// credited with fewer evictions of units unless blocks are [used whole](Gains::whole): if all units had twice the
    /// size, the pages of a loop might no longer fit.
    fn prices(&self, costs: Costs) -> [EvictionPrice; 2] {
        let here = || self.epoch.blocks[LeaderClass::Same as usize].all().page_ns();
        let page_ns = costs.page_ns.unwrap_or_else(here);
        let back = costs.refaults_per_fill * (page_ns + costs.evict_ns);
        let by_unit = EvictionPrice { unit: costs.evict_unit_ns, page: costs.evict_page_ns, room: back };
        [by_unit, EvictionPrice { unit: 0.0, page: costs.evict_ns, room: back }]
    }

    /// Begins an epoch with other leader blocks.
    fn next_epoch(&mut self, costs: Costs) {
        self.epoch = Epoch::default();
        // A much smaller size is often worse for most of a region, and better for a part that only leaders can find.
        let worse = [self.worse[SMALLER] && self.size(SMALLER) * 2 == self.unit, self.worse[DOUBLE]];
        self.leaders = self.leaders.next(costs.epoch_pages, self.unit, self.reduced, worse);
    }

    /// Begins a tuning window, and drops the observations of the last one.
    fn next_window(&mut self, costs: Costs) {
        self.gains = Gains::default();
        self.next_epoch(costs);
    }

    /// Returns the size after a change in this direction.
    fn size(&self, way: usize) -> usize {
        match (way, self.unit) {
            (SMALLER, unit) if unit >= LARGE => (self.unit / LARGE_STEP).max(LARGE / 4),
            (SMALLER, _) => (self.unit / 2).max(1),
            _ => (self.unit * 2).min(MAX_TRANSFER),
        }
    }
}

#[cfg(test)]
mod tests;
