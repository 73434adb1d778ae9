//! Computes the gains of other sizes of transfer units, and whether they are significant.

use super::blocks::{EvictionPrice, Sample};
use crate::SIGNIFICANT;

/// Indices of the two directions of a change of the size in force: smaller, and doubled (`DOUBLE`).
pub(super) const SMALLER: usize = 0;
pub(super) const DOUBLE: usize = 1;
/// Index of the comparison of doubling that is made per page instead of per block.
const BY_PAGE: usize = 2;
/// Largest change of the number of filled pages, as a share, by which blocks are still considered used whole at other
/// sizes.
const WHOLE: f64 = 0.1;

/// The gains per filled page by smaller and by doubled transfer units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gains {
    pub(super) epochs: f64,
    /// Number of pages that were filled in units of the size in force.
    pub(super) pages: f64,
    /// Mean time in nanoseconds for which the program waits for a page.
    pub(super) waits: f64,
    /// Nanoseconds per page that a change saves, each with the square of its standard error: smaller units and doubled
    /// ones by a comparison of blocks, and doubled ones by a comparison of pages.
    pub(super) less: [(f64, f64); 3],
    /// The variation of `less` between epochs: sums of squared differences from the mean.
    spread: [f64; 3],
    /// Share of the filled pages that smaller units and doubled ones save.
    pub(super) fewer: [f64; 2],
}

impl Gains {
    /// Compares leader blocks of a smaller size, the size in force and twice the size. `prices` are those of evictions
    /// for smaller units and doubled ones, and `evict_ns` nanoseconds per page are added to the waiting time for them.
    /// Returns `None` if there are too few blocks of a class.
    pub(super) fn seen(
        samples: [Sample<'_>; 3],
        epochs: f64,
        prices: [EvictionPrice; 2],
        evict_ns: f64,
    ) -> Option<Gains> {
        let [smaller, same, double] = samples;
        let (pages, ns) = same.of_one();
        let by_block = |other: Sample<'_>, price: EvictionPrice| {
            let (less, square) = same.less(other, price)?;
            Some((less / pages, square / pages / pages))
        };
        // Blocks that are used whole fill the same pages at each size, so that these occupy the same memory. Larger
        // units only make fewer evictions.
        let by_unit = EvictionPrice { room: 0.0, ..prices[SMALLER] };
        let [(mine, my_square), (others, square)] = [same, double].map(|it| it.of_page(by_unit));
        let by_page = (mine - others, my_square + square);
        let less = [by_block(smaller, prices[SMALLER])?, by_block(double, prices[DOUBLE])?, by_page];
        let fewer = [smaller, double].map(|it| same.fewer(it));
        // A gain is a share of the time that the program waits, which does not include the price of later refaults.
        let waits = ns / pages.max(1.0) + evict_ns;
        Some(Gains { epochs, pages: pages * same.len() as f64, waits, less, spread: [0.0; 3], fewer })
    }

    /// Returns the same gains, with the weight of `epochs` epochs.
    pub(super) fn in_epochs(self, epochs: f64) -> Gains {
        let share = if self.epochs > 0.0 { epochs / self.epochs } else { 0.0 };
        Gains { epochs, spread: self.spread.map(|it| it * share), ..self }
    }

    /// Combines these gains with those of later epochs, weighted by the numbers of epochs.
    pub(super) fn and(self, next: Gains) -> Gains {
        let epochs = self.epochs + next.epochs;
        if epochs <= 0.0 {
            return next;
        }
        let mean = self.mean(next, [self.epochs / epochs, next.epochs / epochs]);
        let both = self.epochs * next.epochs / epochs;
        let spread = [SMALLER, DOUBLE, BY_PAGE].map(|way| {
            let step = next.less[way].0 - self.less[way].0;
            self.spread[way] + next.spread[way] + step * step * both
        });
        Gains { epochs, spread, ..mean }
    }

    /// Combines these gains with those of another part of the region, weighted by pages.
    pub(super) fn combined(self, other: Gains) -> Gains {
        let pages = self.pages + other.pages;
        if pages <= 0.0 {
            return other;
        }
        let mean = self.mean(other, [self.pages / pages, other.pages / pages]);
        Gains { pages, ..mean }
    }

    /// Returns the mean of two gains, weighted by `mine` and `others`.
    fn mean(self, next: Gains, [mine, others]: [f64; 2]) -> Gains {
        let less = [SMALLER, DOUBLE, BY_PAGE].map(|way| {
            let ((less, square), (next_less, next_square)) = (self.less[way], next.less[way]);
            (less * mine + next_less * others, square * mine * mine + next_square * others * others)
        });
        let mean = |of: &dyn Fn(&Gains) -> f64| of(&self) * mine + of(&next) * others;
        Gains {
            epochs: mean(&|it| it.epochs),
            pages: mean(&|it| it.pages),
            waits: mean(&|it| it.waits),
            less,
            spread: [SMALLER, DOUBLE, BY_PAGE].map(|way| mean(&|it| it.spread[way])),
            fewer: [SMALLER, DOUBLE].map(|way| mean(&|it| it.fewer[way])),
        }
    }

    /// Returns whether the program uses blocks whole: the smaller and twice the size fill about as many pages.
    pub(super) fn whole(self) -> bool {
        self.fewer[SMALLER] < WHOLE && -self.fewer[DOUBLE] < WHOLE
    }

    /// Returns the gain of a direction, and its standard error. If blocks are used whole, the gain of doubling is often
    /// known more precisely from the comparison per page.
    fn gain(self, way: usize) -> (f64, f64) {
        let by_page = way == DOUBLE && self.whole() && self.error(BY_PAGE) < self.error(DOUBLE);
        let at = if by_page { BY_PAGE } else { way };
        (self.less[at].0, self.error(at).sqrt())
    }

    /// Returns the square of the standard error of a gain. It is computed from the differences between blocks and from
    /// those between epochs, and the larger one counts, because blocks of one epoch say nothing about the program's
    /// next phase.
    fn error(self, way: usize) -> f64 {
        let epochs =
            if self.epochs > 1.5 { self.spread[way] / self.epochs / (self.epochs - 1.0) } else { 0.0 };
        self.less[way].1.max(epochs)
    }

    /// Returns for each direction whether it is better by at least its share in `least` of the waiting time, and by
    /// `errors` standard errors. With a `sign` of -1, returns whether it is worse.
    fn sure(self, least: [f64; 2], errors: f64, sign: f64) -> [bool; 2] {
        [SMALLER, DOUBLE].map(|way| {
            let (less, error) = self.gain(way);
            less * sign > errors * error && less * sign > self.waits * least[way]
        })
    }

    /// Returns the direction that gains most, among those that gain at least their share in `least` of the waiting
    /// time, and `errors` standard errors.
    pub(super) fn best(self, least: [f64; 2], errors: f64) -> Option<usize> {
        match self.sure(least, errors, 1.0) {
            [true, true] if self.less[SMALLER].0 > self.gain(DOUBLE).0 => Some(SMALLER),
            [_, true] => Some(DOUBLE),
            [true, false] => Some(SMALLER),
            [false, false] => None,
        }
    }

    /// Returns whether a direction gains significantly more here than in another part of the region.
    pub(super) fn more_than(self, other: Gains, way: usize) -> bool {
        let more = self.less[way].0 - other.less[way].0;
        more > SIGNIFICANT * (self.error(way) + other.error(way)).sqrt()
    }

    /// Returns for each direction whether it is significantly worse, by at least its share in `least` of the waiting
    /// time.
    pub(super) fn worse(self, least: [f64; 2]) -> [bool; 2] {
        self.sure(least, SIGNIFICANT, -1.0)
    }
}

#[cfg(test)]
mod tests;
