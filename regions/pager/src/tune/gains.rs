//! What a trial has seen: what blocks cost, and what other sizes of sets would gain.

use core::ops::Range;

/// The two ways from the size in force.
pub(super) const HALF: usize = 0;
pub(super) const DOUBLE: usize = 1;
/// A gain is so many standard errors: blocks are not all alike, and one looks often.
pub(super) const SURE: f64 = 3.0;

/// A block is compared with so many on each side.
const NEAR: usize = 2;

/// What one block cost.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: usize,
    fills: u64,
    pages: u64,
    /// Of these, so many left again.
    left: u64,
    ns: f64,
}

impl Block {
    fn filled(&mut self, pages: usize, ns: f64) {
        self.fills += 1;
        self.pages += pages as u64;
        self.ns += ns;
    }
}

/// Blocks of one class that saw a fill, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    pub(super) fn filled(&mut self, number: usize, pages: usize, ns: u64) {
        let at = match self.0.binary_search_by_key(&number, |block| block.number) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Block { number, fills: 0, pages: 0, left: 0, ns: 0.0 });
                at
            }
        };
        self.0[at].filled(pages, ns as f64);
    }

    /// A block had a fill of another kind, where it saw one before.
    pub(super) fn beside(&mut self, number: usize, pages: usize, ns: f64) {
        if let Some(block) = self.seen(number) {
            block.filled(pages, ns);
        }
    }

    /// Pages of a block left, where it saw a fill; those that came earlier do not count.
    pub(super) fn left(&mut self, number: usize, pages: usize) {
        if let Some(block) = self.seen(number) {
            block.left = (block.left + pages as u64).min(block.pages);
        }
    }

    /// A block that saw a fill.
    fn seen(&mut self, number: usize) -> Option<&mut Block> {
        let at = self.0.binary_search_by_key(&number, |block| block.number).ok()?;
        Some(&mut self.0[at])
    }

    pub(super) fn fills(&self) -> u64 {
        self.0.iter().map(|block| block.fills).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// These, and those of another lap; a block may be there twice.
    pub(super) fn append(&mut self, other: &Blocks) {
        self.0.extend(&other.0);
        self.0.sort_by_key(|block| block.number);
    }

    /// The numbers of blocks, from the first to the last.
    pub(super) fn numbers(&self) -> Range<usize> {
        self.0.first().map_or(0, |it| it.number)..self.0.last().map_or(0, |it| it.number + 1)
    }

    pub(super) fn all(&self) -> Sample<'_> {
        Sample(&self.0)
    }

    /// The blocks with such numbers.
    pub(super) fn within(&self, numbers: &Range<usize>) -> Sample<'_> {
        let [first, end] = [numbers.start, numbers.end].map(|it| self.0.partition_point(|b| b.number < it));
        Sample(&self.0[first..end])
    }
}

/// What a fill costs beside the time it took, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    /// Its set leaves once more,
    pub(super) set: f64,
    /// and so does each of its pages,
    pub(super) page: f64,
    /// which took room from others until then.
    pub(super) room: f64,
}

/// Some blocks of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a>(&'a [Block]);

impl Sample<'_> {
    /// Pages and nanoseconds of a block, on average.
    fn of_one(self) -> (f64, f64) {
        let count = self.0.len().max(1) as f64;
        let sum = |of: fn(&Block) -> f64| self.0.iter().map(of).sum::<f64>() / count;
        (sum(|block| block.pages as f64), sum(|block| block.ns))
    }

    /// What the program waits for a page, on average.
    pub(super) fn page_ns(self) -> f64 {
        let (pages, ns) = self.of_one();
        ns / pages.max(1.0)
    }

    /// What blocks of `others` cost less than these, on average, and the square of how far that may be off. Each is compared
    /// with its neighbours: blocks are not alike, but those of one array are. Of at least three blocks.
    fn less(self, others: Sample<'_>, price: Price) -> Option<(f64, f64)> {
        if self.0.len().min(others.0.len()) < 3 {
            return None;
        }
        let cost = |it: &Block| {
            let leaving = it.fills as f64 * price.set + it.pages as f64 * price.page;
            it.ns + leaving + it.left as f64 * price.room
        };
        let less = |other: &Block| {
            let at = self.0.partition_point(|block| block.number < other.number);
            let near = &self.0[at.saturating_sub(NEAR)..(at + NEAR).min(self.0.len())];
            near.iter().map(cost).sum::<f64>() / near.len() as f64 - cost(other)
        };
        let count = others.0.len() as f64;
        let mean = others.0.iter().map(less).sum::<f64>() / count;
        let variance = others.0.iter().map(|it| (less(it) - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Some((mean, variance / count))
    }
}

/// What each way would gain, by page that came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gains {
    pub(super) laps: f64,
    /// Pages that came in sets of the size in force.
    pub(super) pages: f64,
    /// Nanoseconds that the program waits.
    pub(super) waits: f64,
    /// Nanoseconds less with sets of half the size and of twice the size, with the squares of their errors.
    pub(super) less: [(f64, f64); 2],
    /// How much laps differ in that: squares of what each is off the mean, added up.
    apart: [f64; 2],
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
        let less = |other: Sample<'_>, price| {
            let (less, square) = same.less(other, price)?;
            Some((less / pages, square / pages / pages))
        };
        let less = [less(half, prices[HALF])?, less(double, prices[DOUBLE])?];
        // What is gained is a share of what the program waits, not of prices for what may come.
        let waits = ns / pages.max(1.0) + evict_ns;
        Some(Gains { laps, pages: pages * same.0.len() as f64, waits, less, apart: [0.0; 2] })
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
        let apart = [HALF, DOUBLE].map(|way| {
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
        let less = [HALF, DOUBLE].map(|way| {
            let ((less, square), (next_less, next_square)) = (self.less[way], next.less[way]);
            (less * mine + next_less * others, square * mine * mine + next_square * others * others)
        });
        let mean = |of: fn(&Gains) -> f64| of(&self) * mine + of(&next) * others;
        let apart = [mean(|it| it.apart[HALF]), mean(|it| it.apart[DOUBLE])];
        Gains {
            laps: mean(|it| it.laps),
            pages: mean(|it| it.pages),
            waits: mean(|it| it.waits),
            less,
            apart,
        }
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
            let less = self.less[way].0 * sign;
            less > errors * self.error(way).sqrt() && less > self.waits * least[way]
        })
    }

    /// The better way, if one is better by at least such shares of the wait, and by so many errors.
    pub(super) fn best(self, least: [f64; 2], errors: f64) -> Option<usize> {
        match self.sure(least, errors, 1.0) {
            [true, true] if self.less[HALF].0 > self.less[DOUBLE].0 => Some(HALF),
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
