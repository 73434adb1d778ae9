//! Size classes, and the lanes of allocation: one for each layout and class.

use crate::Layout;

/// Words of a cell, class by class. Up to 16 words there is one for every pair, then four to a
/// doubling; the last ones divide a block of 4096 words into 9, 8, 7, … 2 cells.
pub(crate) const CELLS: [u16; 34] = [
    2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    384, 454, 512, 584, 682, 818, 1024, 1364, 2048,
];

/// Objects of more words are blocks of their own.
pub const LARGEST_CELL: usize = CELLS[CELLS.len() - 1] as usize;

/// Number of lanes.
pub(crate) const LANES: usize = CELLS.len() * Layout::ALL.len();

/// The class of each size in pairs of words.
static CLASS_OF: [u8; LARGEST_CELL / 2 + 1] = {
    let mut table = [0; LARGEST_CELL / 2 + 1];
    let (mut pairs, mut class) = (0, 0);
    while pairs < table.len() {
        if pairs * 2 > CELLS[class] as usize {
            class += 1;
        }
        table[pairs] = class as u8;
        pairs += 1;
    }
    table
};

/// One layout and one size class: cells of a lane share blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lane(u8);

impl Lane {
    /// The lane for objects of `words` words; `None` when they are large.
    #[inline]
    #[must_use]
    pub(crate) const fn of(layout: Layout, words: usize) -> Option<Lane> {
        if words > LARGEST_CELL {
            return None;
        }
        Some(Lane(CLASS_OF[words.div_ceil(2)] * Layout::ALL.len() as u8 + layout as u8))
    }

    /// Words of its cells.
    #[inline]
    #[must_use]
    pub(crate) const fn words(self) -> usize {
        CELLS[self.0 as usize / Layout::ALL.len()] as usize
    }

    /// The layout of its cells.
    #[inline]
    #[must_use]
    pub(crate) const fn layout(self) -> Layout {
        Layout::ALL[self.0 as usize % Layout::ALL.len()]
    }

    /// Every lane, by number.
    pub(crate) fn all() -> impl Iterator<Item = Lane> {
        (0..LANES as u8).map(Lane)
    }

    /// Its number.
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Bytes of its cells.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        self.words() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_the_tightest_that_fits() {
        for layout in Layout::ALL {
            for words in 0..=LARGEST_CELL {
                let lane = Lane::of(layout, words).unwrap();
                let tightest = CELLS.iter().find(|&&cell| usize::from(cell) >= words).unwrap();
                assert_eq!((lane.words(), lane.layout()), (usize::from(*tightest), layout), "{words} words");
            }
            assert_eq!(Lane::of(layout, LARGEST_CELL + 1), None);
        }
    }

    #[test]
    fn every_lane_has_its_own_number() {
        for (number, lane) in Lane::all().enumerate() {
            assert_eq!(lane.index(), number);
            assert_eq!(Lane::of(lane.layout(), lane.words()), Some(lane));
        }
    }
}
