//! Which blocks try which size.

use super::gains::{DOUBLE, HALF};
use crate::MAX_TRANSFER;

/// What a block does in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Sets of half the size.
    Half = 0,
    /// The size in force.
    Same = 1,
    /// Sets of twice the size.
    Double = 2,
}

/// One block in so many is of each other class, at least where memory is small,
const SHARE: usize = 12;
/// and so many times as many are looked at with the size in force.
const SAME: usize = 3;
/// Blocks of each other class, about, at most.
const MOST_BLOCKS: usize = 4096;
/// Sets in a block: few, so that a small array has blocks of each class.
const SETS: usize = 8;
/// Pages in a block, at least.
const LEAST_BLOCK: usize = 16;
/// Where few are looked at these are so many times fewer, and so many times fewer try what is surely worse: enough to see when
/// the program does something else.
pub(super) const THIN: usize = 4;

/// Pages in a block where sets of `set` pages are in force; sets of twice the size fit.
pub(super) fn block(set: usize) -> usize {
    (set * SETS).clamp(LEAST_BLOCK, MAX_TRANSFER)
}

/// The blocks of a lap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// Half the size, or twice the size, is surely worse: few blocks go on with it.
    thin: [bool; 2],
    /// One block in so many is of each other class.
    share: usize,
    /// Chooses other blocks in each lap.
    salt: usize,
}

impl Choice {
    pub(super) const fn new() -> Choice {
        Choice { thin: [false; 2], share: SHARE, salt: 1 }
    }

    /// Other blocks, of a region of so many `pages`; where it is to be `few`, fewer of all, and else of the ways that are surely `worse`.
    pub(super) fn next(self, pages: usize, set: usize, few: bool, worse: [bool; 2]) -> Choice {
        let share = SHARE.max(pages / block(set) / MOST_BLOCKS);
        let (share, thin) = if few { (share * THIN, [false; 2]) } else { (share, worse) };
        Choice { thin, share, salt: self.salt.wrapping_add(1) }
    }

    /// What a block does, if it is looked at.
    pub(super) fn class(self, block: usize) -> Option<Class> {
        // Knuth's multiplicative hash: neighbours fall into different classes.
        let hash = (block.wrapping_add(self.salt << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40;
        let tried = |way: usize| !self.thin[way] || (hash / self.share).is_multiple_of(THIN);
        match hash % self.share {
            0 => tried(HALF).then_some(Class::Half),
            1 => tried(DOUBLE).then_some(Class::Double),
            it if it < 2 + SAME => Some(Class::Same),
            _ => None,
        }
    }

    /// Of all blocks, one in so many is looked at with the size in force.
    pub(super) fn one_in(self) -> f64 {
        self.share as f64 / SAME as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_blocks_try_what_is_surely_worse_or_anything_where_few_are_asked_for() {
        let count = |few: bool, worse: [bool; 2]| {
            let choice = Choice::new().next(0, 4, few, worse);
            let of = |class: Class| (0..100_000).filter(|&it| choice.class(it) == Some(class)).count();
            [Class::Half, Class::Same, Class::Double].map(of)
        };
        let near = |got: [usize; 3], wanted: [usize; 3]| {
            got.iter().zip(wanted).all(|(&got, wanted)| got.abs_diff(wanted) * 10 < wanted)
        };
        let one = 100_000 / SHARE;
        for (few, worse, wanted) in [
            (false, [false, false], [one, one * SAME, one]),
            (false, [true, false], [one / THIN, one * SAME, one]),
            (false, [false, true], [one, one * SAME, one / THIN]),
            (true, [true, true], [one / THIN, one * SAME / THIN, one / THIN]),
        ] {
            assert!(near(count(few, worse), wanted), "{few} {worse:?}: {:?}", count(few, worse));
        }
    }
}
