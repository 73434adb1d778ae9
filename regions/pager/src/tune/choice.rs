//! Which blocks try which size.

use crate::MOST_SET;

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
/// In a rest so many times fewer blocks are looked at: enough to see when the program does something else.
const THIN: usize = 4;

/// Pages in a block where sets of `set` pages are in force; sets of twice the size fit.
pub(super) fn block(set: usize) -> usize {
    (set * SETS).clamp(LEAST_BLOCK, MOST_SET)
}

/// The blocks of a lap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    /// One block in so many is of each other class.
    share: usize,
    /// Chooses other blocks in each lap.
    salt: usize,
}

impl Choice {
    pub(super) const fn new() -> Choice {
        Choice { share: SHARE, salt: 1 }
    }

    /// Other blocks, of a region of so many `pages`.
    pub(super) fn next(self, pages: usize, set: usize, rests: bool) -> Choice {
        let share = SHARE.max(pages / block(set) / MOST_BLOCKS);
        Choice { share: if rests { share * THIN } else { share }, salt: self.salt.wrapping_add(1) }
    }

    /// What a block does, if it is looked at.
    pub(super) fn class(self, block: usize) -> Option<Class> {
        // Knuth's multiplicative hash: neighbours fall into different classes.
        let hash = (block.wrapping_add(self.salt << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40;
        match hash % self.share {
            0 => Some(Class::Half),
            1 => Some(Class::Double),
            it if it < 2 + SAME => Some(Class::Same),
            _ => None,
        }
    }

    /// Of all blocks, one in so many is looked at with the size in force.
    pub(super) fn one_in(self) -> f64 {
        self.share as f64 / SAME as f64
    }
}
