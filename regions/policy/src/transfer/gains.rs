//! What other sizes of sets would gain.

use super::blocks::{Price, Sample};

/// The two ways from the size in force.
pub(super) const HALF: usize = 0;
pub(super) const DOUBLE: usize = 1;
/// The second of them, by page.
const BY_PAGE: usize = 2;
/// A gain is so many standard errors: blocks are not all alike, and one looks often.
pub(super) const SURE: f64 = 3.0;
/// Blocks are used whole where other sizes bring at most this share of pages less or more.
const WHOLE: f64 = 0.1;

/// What each way would gain, by page that came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gains {
    pub(super) laps: f64,
    /// Pages that came in sets of the size in force.
    pub(super) pages: f64,
    /// Nanoseconds that the program waits.
    pub(super) waits: f64,
    /// Nanoseconds less with sets of half the size and of twice the size, with the squares of their errors; and of twice the
    /// size where it brings no other pages.
    pub(super) less: [(f64, f64); 3],
    /// How much laps differ in that: squares of what each is off the mean, added up.
    apart: [f64; 3],
    /// The share of pages that half the size and twice the size bring less.
    pub(super) fewer: [f64; 2],
}

impl Gains {
    /// What blocks of half the size, of the size in force and of twice the size say, once there are enough of each, at the
    /// prices of each way. What leaving costs belongs to the wait: `evict_ns` a page on average.
    pub(super) fn seen(
        samples: [Sample<'_>; 3],
        laps: f64,
        prices: [Price; 2],
        evict_ns: f64,
    ) -> Option<Gains> {
        let [half, same, double] = samples;
        let (pages, ns) = same.of_one();
        let by_block = |other: Sample<'_>, price: Price| {
            let (less, square) = same.less(other, price)?;
            Some((less / pages, square / pages / pages))
        };
        // As many pages come, so that they take as much room; and they leave in fewer sets.
        let by_set = Price { room: 0.0, ..prices[HALF] };
        let [(mine, my_square), (others, square)] = [same, double].map(|it| it.of_page(by_set));
        let by_page = (mine - others, my_square + square);
        let less = [by_block(half, prices[HALF])?, by_block(double, prices[DOUBLE])?, by_page];
        let fewer = [half, double].map(|it| same.fewer(it));
        // What is gained is a share of what the program waits, not of prices for what may come.
        let waits = ns / pages.max(1.0) + evict_ns;
        Some(Gains { laps, pages: pages * same.len() as f64, waits, less, apart: [0.0; 3], fewer })
    }

    /// The same, seen in so many laps.
    pub(super) fn in_laps(self, laps: f64) -> Gains {
        let share = if self.laps > 0.0 { laps / self.laps } else { 0.0 };
        Gains { laps, apart: self.apart.map(|it| it * share), ..self }
    }

    /// This and what followed, each worth as many laps as it took.
    pub(super) fn and(self, next: Gains) -> Gains {
        let laps = self.laps + next.laps;
        if laps <= 0.0 {
            return next;
        }
        let mean = self.mean(next, [self.laps / laps, next.laps / laps]);
        let both = self.laps * next.laps / laps;
        let apart = [HALF, DOUBLE, BY_PAGE].map(|way| {
            let step = next.less[way].0 - self.less[way].0;
            self.apart[way] + next.apart[way] + step * step * both
        });
        Gains { laps, apart, ..mean }
    }

    /// This and what another place says, each worth as many pages as came there.
    pub(super) fn beside(self, other: Gains) -> Gains {
        let pages = self.pages + other.pages;
        if pages <= 0.0 {
            return other;
        }
        let mean = self.mean(other, [self.pages / pages, other.pages / pages]);
        Gains { pages, ..mean }
    }

    /// The mean, with such shares.
    fn mean(self, next: Gains, [mine, others]: [f64; 2]) -> Gains {
        let less = [HALF, DOUBLE, BY_PAGE].map(|way| {
            let ((less, square), (next_less, next_square)) = (self.less[way], next.less[way]);
            (less * mine + next_less * others, square * mine * mine + next_square * others * others)
        });
        let mean = |of: &dyn Fn(&Gains) -> f64| of(&self) * mine + of(&next) * others;
        Gains {
            laps: mean(&|it| it.laps),
            pages: mean(&|it| it.pages),
            waits: mean(&|it| it.waits),
            less,
            apart: [HALF, DOUBLE, BY_PAGE].map(|way| mean(&|it| it.apart[way])),
            fewer: [HALF, DOUBLE].map(|way| mean(&|it| it.fewer[way])),
        }
    }

    /// Blocks are used whole: sets of half the size and of twice the size bring the same pages.
    pub(super) fn whole(self) -> bool {
        self.fewer[HALF] < WHOLE && -self.fewer[DOUBLE] < WHOLE
    }

    /// What a way gains, and how far that may be off. Where blocks are used whole, twice the size is often known better by page.
    fn gain(self, way: usize) -> (f64, f64) {
        let by_page = way == DOUBLE && self.whole() && self.error(BY_PAGE) < self.error(DOUBLE);
        let at = if by_page { BY_PAGE } else { way };
        (self.less[at].0, self.error(at).sqrt())
    }

    /// The square of how far a gain may be off: because blocks are not alike, and because laps are not. What is seen in one
    /// phase of a program is no evidence for the next.
    fn error(self, way: usize) -> f64 {
        let laps = if self.laps > 1.5 { self.apart[way] / self.laps / (self.laps - 1.0) } else { 0.0 };
        self.less[way].1.max(laps)
    }

    /// The ways that are better by at least such shares of the wait, and by so many errors; with `sign` -1, worse.
    fn sure(self, least: [f64; 2], errors: f64, sign: f64) -> [bool; 2] {
        [HALF, DOUBLE].map(|way| {
            let (less, error) = self.gain(way);
            less * sign > errors * error && less * sign > self.waits * least[way]
        })
    }

    /// The better way, if one is better by at least such shares of the wait, and by so many errors.
    pub(super) fn best(self, least: [f64; 2], errors: f64) -> Option<usize> {
        match self.sure(least, errors, 1.0) {
            [true, true] if self.less[HALF].0 > self.gain(DOUBLE).0 => Some(HALF),
            [_, true] => Some(DOUBLE),
            [true, false] => Some(HALF),
            [false, false] => None,
        }
    }

    /// One way gains more here than there, for sure.
    pub(super) fn more_than(self, other: Gains, way: usize) -> bool {
        let more = self.less[way].0 - other.less[way].0;
        more > SURE * (self.error(way) + other.error(way)).sqrt()
    }

    /// The ways that are worse by at least such shares of the wait.
    pub(super) fn worse(self, least: [f64; 2]) -> [bool; 2] {
        self.sure(least, SURE, -1.0)
    }
}

#[cfg(test)]
mod tests;
