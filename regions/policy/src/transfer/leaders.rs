//! Chooses the leader blocks, which try other sizes of transfer units.

use super::gains::{DOUBLE, SMALLER};
use crate::MAX_TRANSFER;

/// The class of a leader block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaderClass {
    /// Uses units of a smaller size than the one in force.
    Smaller = 0,
    /// Uses units of the size in force, for comparison.
    Same = 1,
    /// Uses units of twice the size in force.
    Double = 2,
}

/// One block in this number is a leader of a smaller size, and another one is a leader of twice the size. Large regions
/// have fewer leaders ([`MAX_LEADERS`]).
const LEADER_SHARE: usize = 12;
/// Number of leaders of the size in force for each leader of another size.
const SAME_SHARE: usize = 3;
/// Approximate upper bound of the number of leader blocks of a smaller size, and of that of twice the size.
const MAX_LEADERS: usize = 4096;
/// Size of a leader block in transfer units. It is small so that a small array has leaders of each class, too.
const BLOCK_UNITS: usize = 8;
/// Smallest size of a leader block in pages.
const MIN_BLOCK: usize = 16;
/// Factor by which sampling is reduced: it divides the number of all leader blocks, or only that of a size that is
/// significantly worse. The remaining leaders are enough to notice a change of the program.
pub(super) const REDUCTION: usize = 4;

/// Returns the size of a block in pages if units of `unit` pages are in force. A block holds whole units of that size,
/// of the smaller size and of the doubled one, since no unit exceeds [`MAX_TRANSFER`].
pub(super) fn block(unit: usize) -> usize {
    (unit * BLOCK_UNITS).clamp(MIN_BLOCK, MAX_TRANSFER)
}

/// Which blocks are leaders in one epoch, chosen by a hash of the block numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaderBlocks {
    /// Whether sampling of the smaller size (`[0]`) and of twice the size (`[1]`) is reduced.
    reduced: [bool; 2],
    /// One block in this number is a leader of a smaller size, and another one is a leader of twice the size.
    share: usize,
    /// Number that is added to the hash, so that each epoch has other leaders.
    salt: usize,
}

impl LeaderBlocks {
    pub(super) const fn new() -> LeaderBlocks {
        LeaderBlocks { reduced: [false; 2], share: LEADER_SHARE, salt: 1 }
    }

    /// Chooses other leader blocks for a region of `pages` pages. If `reduced`, all classes have fewer leaders;
    /// otherwise only the direction or directions that are `worse` have fewer.
    pub(super) fn next(self, pages: usize, unit: usize, reduced: bool, worse: [bool; 2]) -> LeaderBlocks {
        let share = LEADER_SHARE.max(pages / block(unit) / MAX_LEADERS);
        let (share, reduced) = if reduced { (share * REDUCTION, [false; 2]) } else { (share, worse) };
        LeaderBlocks { reduced, share, salt: self.salt.wrapping_add(1) }
    }

    /// Returns the class of the block with number `block`; `None` if it is no leader.
    pub(super) fn class(self, block: usize) -> Option<LeaderClass> {
        // Knuth's multiplicative hash puts neighbours into different classes.
        let hash = (block.wrapping_add(self.salt << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 40;
        let tried = |way: usize| !self.reduced[way] || (hash / self.share).is_multiple_of(REDUCTION);
        match hash % self.share {
            0 => tried(SMALLER).then_some(LeaderClass::Smaller),
            1 => tried(DOUBLE).then_some(LeaderClass::Double),
            it if it < 2 + SAME_SHARE => Some(LeaderClass::Same),
            _ => None,
        }
    }

    /// Returns the number of blocks per leader of the size in force.
    pub(super) fn one_in(self) -> f64 {
        self.share as f64 / SAME_SHARE as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_is_reduced_by_direction_or_for_all() {
        let count = |reduced: bool, worse: [bool; 2]| {
            let leaders = LeaderBlocks::new().next(0, 4, reduced, worse);
            let of = |class: LeaderClass| (0..100_000).filter(|&it| leaders.class(it) == Some(class)).count();
            [LeaderClass::Smaller, LeaderClass::Same, LeaderClass::Double].map(of)
        };
        let near = |got: [usize; 3], wanted: [usize; 3]| {
            got.iter().zip(wanted).all(|(&got, wanted)| got.abs_diff(wanted) * 10 < wanted)
        };
        let one = 100_000 / LEADER_SHARE;
        for (reduced, worse, wanted) in [
            (false, [false, false], [one, one * SAME_SHARE, one]),
            (false, [true, false], [one / REDUCTION, one * SAME_SHARE, one]),
            (false, [false, true], [one, one * SAME_SHARE, one / REDUCTION]),
            (true, [true, true], [one / REDUCTION, one * SAME_SHARE / REDUCTION, one / REDUCTION]),
        ] {
            assert!(near(count(reduced, worse), wanted), "{reduced} {worse:?}: {:?}", count(reduced, worse));
        }
    }
}
