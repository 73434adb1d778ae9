//! Sizes tried beside each other: in space, not in time.
//!
//! A program without annotation gives no measure of progress, so that times at one size and at
//! another later cannot be compared. But a program treats most of its blocks alike. So a few blocks
//! of 2 MiB, chosen by their number, use sets of half the size, a few others of twice the size, and
//! at the end of a window the cost of each class, by block, is compared:
//!
//! ```text
//!   blocks  | = | = | ½ | = | = | = | 2 | = | = | ½ | …     cost ½ < cost = ?  then halve
//! ```
//!
//! The cost of a fill is the time that the thread waited, plus what its pages push out: each page
//! that comes makes another one leave, which comes back with some probability, at the average
//! price of a page. That is how pages nobody needs are charged.

use crate::MOST_SET;

/// What a block does in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Sets of half the size.
    Half = 0,
    /// The size in force.
    Same = 1,
    /// Sets of twice the size.
    Double = 2,
}

/// One block in so many is of each other class.
const SHARE: usize = 12;
/// Fills in each other class that decide.
const ENOUGH: u64 = 48;
/// A change must gain so much.
const GAIN: f64 = 1.0 / 32.0;
/// Windows to rest after nothing was to be gained, at most.
const MOST_REST: u32 = 8;
/// Fills of a window in which nothing is tried.
const REST_FILLS: u64 = 512;
/// Waiting for the other thread, which no clock here sees: nanoseconds a fault.
const WAKE_NS: f64 = 8_000.0;

/// What a page costs that others push out.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Nanoseconds to let a page leave.
    pub evict_ns: f64,
    /// The share of pages that come back after they left.
    pub come_back: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    fills: u64,
    pages: u64,
    ns: f64,
}

/// A running trial.
#[derive(Debug)]
pub struct Trial {
    set: usize,
    /// Blocks of each class that saw a fill in this window.
    blocks: [Vec<u32>; 3],
    sums: [Sum; 3],
    /// Chooses other blocks in each window.
    salt: usize,
    /// Windows to rest, and how many next time.
    rest: (u32, u32),
    fills: u64,
}

impl Trial {
    /// Starts with sets of `set` pages.
    #[must_use]
    pub fn new(set: usize) -> Trial {
        Trial { set, blocks: Default::default(), sums: Default::default(), salt: 1, rest: (0, 1), fills: 0 }
    }

    /// The set for a fault at `page`, and the class of its block.
    #[must_use]
    pub fn set_at(&self, page: usize) -> (usize, Class) {
        let class = self.class(page / MOST_SET);
        let set = match class {
            Class::Half => (self.set / 2).max(1),
            Class::Same => self.set,
            Class::Double => (self.set * 2).min(MOST_SET),
        };
        (set, class)
    }

    /// The size in force.
    #[must_use]
    pub const fn set(&self) -> usize {
        self.set
    }

    /// A fill of `pages` pages at `page` that took `ns`. Returns the new size when it changes.
    pub fn filled(&mut self, page: usize, pages: usize, ns: u64, costs: Costs) -> Option<usize> {
        self.fills += 1;
        if self.rest.0 > 0 {
            if self.fills >= REST_FILLS {
                self.rest.0 -= 1;
                self.fills = 0;
            }
            return None;
        }
        let block = page / MOST_SET;
        let class = self.class(block) as usize;
        let sum = &mut self.sums[class];
        sum.fills += 1;
        sum.pages += pages as u64;
        sum.ns += ns as f64 + WAKE_NS;
        let number = u32::try_from(block).unwrap_or(u32::MAX);
        if let Err(at) = self.blocks[class].binary_search(&number) {
            self.blocks[class].insert(at, number);
        }
        let other = |class: Class| self.sums[class as usize].fills;
        let enough = other(Class::Half) >= ENOUGH && other(Class::Double) >= ENOUGH / 4;
        if !enough && self.fills < 64 * ENOUGH {
            return None;
        }
        let better = if enough { self.better(costs) } else { None };
        self.next_window(better.is_none());
        if let Some(set) = better {
            self.set = set;
        }
        better
    }

    /// The size that costs clearly less by block.
    fn better(&self, costs: Costs) -> Option<usize> {
        let all = self.sums.iter().fold(Sum::default(), |all, sum| Sum {
            fills: all.fills + sum.fills,
            pages: all.pages + sum.pages,
            ns: all.ns + sum.ns,
        });
        let page_ns = all.ns / all.pages.max(1) as f64;
        let pushed_out = costs.evict_ns + costs.come_back * (page_ns + costs.evict_ns);
        let cost = |class: Class| {
            let sum = self.sums[class as usize];
            let blocks = self.blocks[class as usize].len();
            (blocks > 0).then(|| (sum.ns + sum.pages as f64 * pushed_out) / blocks as f64)
        };
        let same = cost(Class::Same)?;
        let gains = |class| cost(class).filter(|&cost| cost < same * (1.0 - GAIN));
        match (gains(Class::Half), gains(Class::Double)) {
            (Some(half), Some(double)) if half < double => Some((self.set / 2).max(1)),
            (_, Some(_)) => Some((self.set * 2).min(MOST_SET)),
            (Some(_), None) => Some((self.set / 2).max(1)),
            (None, None) => None,
        }
        .filter(|&set| set != self.set)
    }

    fn next_window(&mut self, nothing_gained: bool) {
        self.blocks = Default::default();
        self.sums = Default::default();
        self.fills = 0;
        self.salt = self.salt.wrapping_add(1);
        let next = if nothing_gained { (self.rest.1 * 2).min(MOST_REST) } else { 1 };
        self.rest = (if nothing_gained { self.rest.1 } else { 0 }, next);
    }

    fn class(&self, block: usize) -> Class {
        if self.rest.0 > 0 {
            return Class::Same;
        }
        // Knuth's multiplicative hash: neighbours fall into different classes.
        let hash = (block.wrapping_add(self.salt << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40;
        match hash % SHARE {
            0 => Class::Half,
            1 => Class::Double,
            _ => Class::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that uses `useful` pages in a row of each 512, over and over, in a memory where each
    /// fault costs 10 µs and each page 300 ns. The size the trial ends at.
    fn settles_at(start: usize, useful: usize) -> usize {
        let mut trial = Trial::new(start);
        let costs = Costs { evict_ns: 300.0, come_back: 0.9 };
        for _lap in 0..200 {
            for block in 0..200 {
                let mut page = block * MOST_SET;
                let end = page + useful;
                while page < end {
                    let (set, _) = trial.set_at(page);
                    let first = page / set * set;
                    trial.filled(page, set, 3_000 + 300 * set as u64, costs);
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
    fn sizes_stay_powers_of_two_within_bounds() {
        for start in [1, 16, 512] {
            for useful in [1, 7, 100, 512] {
                let set = settles_at(start, useful);
                assert!(set.is_power_of_two() && set <= MOST_SET);
            }
        }
    }
}
