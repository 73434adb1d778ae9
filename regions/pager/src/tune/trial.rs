//! Sizes tried beside each other: in space, not in time.
//!
//! A program without annotation gives no measure of progress, so that times at one size and at
//! another later cannot be compared. But a program treats most of its blocks alike. So a few blocks
//! of some sets each, chosen by their number, use sets of half the size, a few others of twice the size,
//! and the costs of the classes, by block, are compared:
//!
//! ```text
//!   blocks  | = | = | ½ | = | = | = | 2 | = | = | ½ | …     cost ½ < cost = ?  then halve
//! ```
//!
//! The cost of a fill is the time that the thread waited, plus what its pages push out: each page
//! that comes makes another one leave, which comes back with some probability, at the price of a page
//! in sets of the size in force. That is how pages nobody needs are charged.

use crate::MOST_SET;

/// What a block does in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Sets of half the size.
    Half = 0,
    /// The size in force.
    Same = 1,
    /// Sets of twice the size.
    Double = 2,
}

/// The two ways from the size in force.
const HALF: usize = 0;
const DOUBLE: usize = 1;
/// One block in so many is of each other class, at least where memory is small,
const SHARE: usize = 12;
/// and three times as many of those with the size in force are looked at.
const SAME: usize = 3;
/// Blocks of the other classes in a window, about, at most.
const MOST_BLOCKS: usize = 4096;
/// Sets in a block: few, so that a small array has blocks of each class.
const SETS: usize = 8;
/// Pages in a block, at least.
const LEAST_BLOCK: usize = 16;
/// Fills in the class of half the size before anything is decided.
const ENOUGH: u64 = 128;
/// A change must gain so much at the end of a window,
const GAIN: f64 = 0.05;
/// and so much, by the square root of laps, before: what is seen in a short time may be a phase, and the next one may want
/// the opposite.
const GAIN_EARLY: f64 = 0.5;
/// Of that, this share for one more step the same way.
const ON: f64 = 0.5;
/// Laps after which a window ends, decided or not.
const LONGEST: f64 = 8.0;
/// Each time that the size turns back the next decision takes twice as long: a program whose phases want different
/// sizes gets the one that is good for all of them. At most so many times as long as the first.
const MOST_DOUBT: f64 = 8.0;
/// And a change must gain so many standard errors: blocks are not all alike, and one looks often.
const SURE: f64 = 3.0;
/// Laps to rest after nothing was to be gained, at first and at most.
const REST: [f64; 2] = [8.0, 32.0];

/// What a page costs that others push out.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Nanoseconds to let a page leave.
    pub evict_ns: f64,
    /// The share of pages that come back after they left.
    pub come_back: f64,
    /// Pages that hold something, here or away. When so many came, that is a lap.
    pub lap: usize,
}

/// What one block cost in this window.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: usize,
    fills: u64,
    pages: u64,
    ns: f64,
}

/// Mean cost of the blocks of a class, and how far the mean may be off.
#[derive(Clone, Copy, Debug)]
struct Mean {
    cost: f64,
    error: f64,
}

impl Mean {
    /// Of at least three blocks.
    fn of(costs: &[f64]) -> Option<Mean> {
        let count = costs.len() as f64;
        if costs.len() < 3 {
            return None;
        }
        let cost = costs.iter().sum::<f64>() / count;
        let variance = costs.iter().map(|it| (it - cost).powi(2)).sum::<f64>() / (count - 1.0);
        Some(Mean { cost, error: (variance / count).sqrt() })
    }
}

/// What the other classes would gain, by page that came.
#[derive(Clone, Copy, Debug, Default)]
struct Gains {
    laps: f64,
    /// Nanoseconds that the program waits.
    waits: f64,
    /// Nanoseconds less with sets of half the size, and of twice the size, with the squares of their errors.
    less: [(f64, f64); 2],
}

impl Gains {
    /// This and what followed, which is worth as many laps as it took.
    fn and(self, next: Gains) -> Gains {
        let (one, two) = (self.laps, next.laps);
        let sum = |a: f64, b: f64| (a * one + b * two) / (one + two);
        let square = |a: f64, b: f64| (a * one * one + b * two * two) / (one + two).powi(2);
        let less = [0, 1].map(|at| {
            let (mine, others) = (self.less[at], next.less[at]);
            (sum(mine.0, others.0), square(mine.1, others.1))
        });
        Gains { laps: one + two, waits: sum(self.waits, next.waits), less }
    }

    /// A way that is surely better by at least these shares of the wait, or worse (-1).
    fn sure(self, least: [f64; 2], sign: f64) -> [bool; 2] {
        [HALF, DOUBLE].map(|way| {
            let (less, square) = self.less[way];
            less * sign > SURE * square.sqrt() && less * sign > self.waits * least[way]
        })
    }

    /// The better way that is sure.
    fn best(self, least: [f64; 2]) -> Option<usize> {
        match self.sure(least, 1.0) {
            [true, true] if self.less[HALF].0 > self.less[DOUBLE].0 => Some(HALF),
            [_, true] => Some(DOUBLE),
            [true, false] => Some(HALF),
            [false, false] => None,
        }
    }
}

/// A running trial.
#[derive(Debug)]
pub struct Trial {
    set: usize,
    /// Blocks of each class that saw a fill in this lap, by number.
    blocks: [Vec<Block>; 3],
    /// One block in so many is of each other class.
    share: usize,
    /// Chooses other blocks in each lap.
    salt: usize,
    /// Laps to rest, and how many next time.
    rest: (f64, f64),
    /// Since other blocks were chosen, or of this rest.
    fills: u64,
    laps: f64,
    /// What this window has seen before.
    gains: Gains,
    /// How much evidence it takes.
    doubt: f64,
    /// The first fill was seen, or is to come.
    begun: bool,
    /// The way of the last change.
    went: Option<usize>,
}

impl Trial {
    /// Starts with sets of `set` pages.
    #[must_use]
    pub fn new(set: usize) -> Trial {
        Trial {
            set,
            blocks: Default::default(),
            share: SHARE,
            salt: 1,
            rest: (0.0, REST[0]),
            fills: 0,
            laps: 0.0,
            gains: Gains::default(),
            doubt: 1.0,
            begun: false,
            went: None,
        }
    }

    /// The first fill was seen, or is to come.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// The first fill is to come, in a set of `set` pages.
    pub fn begin(&mut self, set: usize, costs: Costs) {
        (self.set, self.begun) = (set, true);
        self.next_lap(Gains::default(), 0.0, costs);
    }

    /// The set for a fault at `page`.
    #[must_use]
    pub fn set_at(&self, page: usize) -> usize {
        match self.class(page / self.block()) {
            Some(Class::Half) => (self.set / 2).max(1),
            Some(Class::Double) => (self.set * 2).min(MOST_SET),
            Some(Class::Same) | None => self.set,
        }
    }

    /// The size in force.
    #[must_use]
    pub const fn set(&self) -> usize {
        self.set
    }

    /// A fill of `pages` pages at `page` that took `ns`. Returns the new size when it changes.
    pub fn filled(&mut self, page: usize, pages: usize, ns: u64, costs: Costs) -> Option<usize> {
        self.fills += 1;
        self.laps += pages as f64 / costs.lap.max(1) as f64;
        if self.rest.0 > 0.0 {
            if self.laps >= self.rest.0 {
                self.next_lap(Gains::default(), 0.0, costs);
            }
            return None;
        }
        let number = page / self.block();
        if let Some(class) = self.class(number) {
            let blocks = &mut self.blocks[class as usize];
            let at = match blocks.binary_search_by_key(&number, |block| block.number) {
                Ok(at) => at,
                Err(at) => {
                    blocks.insert(at, Block { number, fills: 0, pages: 0, ns: 0.0 });
                    at
                }
            };
            blocks[at].fills += 1;
            blocks[at].pages += pages as u64;
            blocks[at].ns += ns as f64;
        }
        // Looking costs time: not at every fill.
        if !self.fills.is_multiple_of(ENOUGH) {
            return None;
        }
        let halved: u64 = self.blocks[Class::Half as usize].iter().map(|block| block.fills).sum();
        let Some(lap) = self.seen(costs).filter(|_| halved >= ENOUGH) else {
            if self.laps >= LONGEST && self.fills >= ENOUGH * 64 {
                self.next_lap(self.gains, 0.0, costs); // too few blocks of a class: perhaps there are more among others
            }
            return None;
        };
        let all = if self.gains.laps > 0.0 { self.gains.and(lap) } else { lap };
        let early = |laps: f64| {
            let least = GAIN_EARLY * (self.doubt / laps).sqrt();
            [HALF, DOUBLE].map(|way| if self.went == Some(way) { least * ON } else { least })
        };
        let sizes = [(self.set / 2).max(1), (self.set * 2).min(MOST_SET)];
        // A lap by itself, and all of the window together where a lap ends.
        let lap_ends = self.laps >= 1.0;
        let longest = all.laps >= LONGEST * self.doubt;
        let least = if longest { [GAIN; 2] } else { early(all.laps) };
        let better = lap.best(early(lap.laps)).or_else(|| all.best(least).filter(|_| lap_ends || longest));
        if let Some(way) = better
            && sizes[way] != self.set
        {
            if self.went.replace(way).is_some_and(|before| before != way) {
                self.doubt = (self.doubt * 2.0).min(MOST_DOUBT);
            }
            self.set = sizes[way];
            self.rest.1 = REST[0];
            self.next_lap(Gains::default(), 0.0, costs);
            return Some(self.set);
        }
        // Neither way is open, or each is worse by as much as it would have to be better.
        let worse = all.sure(early(all.laps), -1.0);
        let ends = longest || lap_ends && [HALF, DOUBLE].iter().all(|&way| worse[way] || sizes[way] == self.set);
        if ends {
            let rest = self.rest.1;
            self.rest.1 = (rest * 2.0).min(REST[1]);
            self.next_lap(Gains::default(), rest, costs);
        } else if lap_ends {
            self.next_lap(all, 0.0, costs);
        }
        None
    }

    /// What this lap says, once there are blocks of each class.
    fn seen(&self, costs: Costs) -> Option<Gains> {
        // What is pushed out belongs to all, and comes back at one price: with prices of their own, large
        // sets would seem cheap because they take the room of the others.
        let all = &self.blocks[Class::Same as usize];
        let (pages, ns) = all.iter().fold((0, 0.0), |(pages, ns), it| (pages + it.pages, ns + it.ns));
        let pages = pages.max(1) as f64;
        let (page_ns, pages) = (ns / pages, pages / all.len().max(1) as f64);
        let pushed_out = costs.evict_ns + costs.come_back * (page_ns + costs.evict_ns);
        let mean = |class: Class| {
            let blocks = &self.blocks[class as usize];
            let costs = blocks.iter().map(|it| (it.ns + it.pages as f64 * pushed_out) / pages);
            Mean::of(&costs.collect::<Vec<_>>())
        };
        let same = mean(Class::Same)?;
        let less = |it: Mean| (same.cost - it.cost, same.error.powi(2) + it.error.powi(2));
        // What is gained is a share of what the program waits, not of prices for what may come.
        let waits = page_ns + costs.evict_ns;
        Some(Gains { laps: self.laps, waits, less: [less(mean(Class::Half)?), less(mean(Class::Double)?)] })
    }

    /// Chooses other blocks, after what the window has seen; or rests for so many laps.
    fn next_lap(&mut self, gains: Gains, rest: f64, costs: Costs) {
        self.blocks = Default::default();
        (self.fills, self.laps, self.gains, self.rest.0) = (0, 0.0, gains, rest);
        self.salt = self.salt.wrapping_add(1);
        self.share = SHARE.max(costs.lap / self.block() / MOST_BLOCKS);
    }

    /// Pages in a block; sets of twice the size fit.
    fn block(&self) -> usize {
        (self.set * SETS).clamp(LEAST_BLOCK, MOST_SET)
    }

    /// What a block does, if it is looked at.
    fn class(&self, block: usize) -> Option<Class> {
        if self.rest.0 > 0.0 {
            return None;
        }
        // Knuth's multiplicative hash: neighbours fall into different classes.
        let hash = (block.wrapping_add(self.salt << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40;
        match hash % self.share {
            0 => Some(Class::Half),
            1 => Some(Class::Double),
            it if it < 2 + SAME => Some(Class::Same),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A program that uses `useful` pages in a row of each 512, over and over, in a memory where each
    /// fault costs 10 µs and each page 300 ns. The size the trial ends at.
    fn settles_at(start: usize, useful: usize) -> usize {
        let mut trial = Trial::new(start);
        let costs = Costs { evict_ns: 300.0, come_back: 0.9, lap: 200 * useful };
        for _lap in 0..200 {
            for block in 0..200 {
                let mut page = block * MOST_SET;
                let end = page + useful;
                while page < end {
                    let set = trial.set_at(page);
                    let first = page / set * set;
                    trial.filled(page, set, 11_000 + 300 * set as u64, costs);
                    page = first + set;
                }
            }
        }
        trial.set()
    }

    #[test]
    fn dense_use_ends_in_large_sets_and_sparse_use_in_small_ones() {
        assert!(settles_at(16, 512) >= 128, "{}", settles_at(16, 512));
        assert!(settles_at(512, 1) <= 4, "{}", settles_at(512, 1));
        let middle = settles_at(1, 32);
        assert!((8..=64).contains(&middle), "{middle}");
    }

    #[test]
    fn a_size_that_turns_back_and_back_is_changed_less_and_less() {
        // Phases of 4000 pages that want large sets and small ones in turns.
        let mut trial = Trial::new(4);
        let costs = Costs { evict_ns: 300.0, come_back: 0.9, lap: 4000 };
        let (mut changes, mut at) = (Vec::new(), 0);
        for phase in 0..400 {
            let useful = if phase % 2 == 0 { MOST_SET } else { 1 };
            let mut changed = 0;
            for _ in 0..4000 {
                let set = trial.set_at(at);
                let fill = trial.filled(at, set, 11_000 + 300 * set as u64, costs);
                changed += u32::from(fill.is_some());
                let next = at / set * set + set;
                let skipped = (next / MOST_SET + 1) * MOST_SET;
                at = if next % MOST_SET < useful { next } else { skipped } % (200 * MOST_SET);
            }
            changes.push(changed);
        }
        let [early, late] = [&changes[..40], &changes[360..]].map(|part| part.iter().sum::<u32>());
        assert!(early >= 4 && late * 4 < early, "{early} changes, then {late}");
    }

    #[test]
    fn random_use_ends_in_small_sets_though_large_ones_take_the_room_of_others() {
        // Pages at random of 16384, half of which fit; the oldest set leaves.
        let mut trial = Trial::new(16);
        let costs = Costs { evict_ns: 300.0, come_back: 0.9, lap: 16_384 };
        let (mut here, mut order, mut count) = (vec![false; 16_384], VecDeque::new(), 0);
        let mut random = 12345_usize;
        for _ in 0..600_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let page = (random >> 40) % here.len();
            if here[page] {
                continue;
            }
            let set = trial.set_at(page);
            let first = page / set * set;
            let come: Vec<_> = (first..first + set).filter(|&page| !here[page]).collect();
            for &page in &come {
                here[page] = true;
                order.push_back(page);
            }
            count += come.len();
            while count > here.len() / 2 {
                here[order.pop_front().unwrap()] = false;
                count -= 1;
            }
            trial.filled(page, come.len(), 11_000 + 300 * come.len() as u64, costs);
        }
        assert!(trial.set() <= 2, "{}", trial.set());
    }

    #[test]
    fn sizes_stay_powers_of_two_within_bounds() {
        for start in [1, 16, 512] {
            for useful in [1, 7, 100, 512] {
                let set = settles_at(start, useful);
                assert!(set.is_power_of_two() && set <= MOST_SET);
            }
        }
    }
}
