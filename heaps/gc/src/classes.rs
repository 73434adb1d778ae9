//! Defines size classes of cells, and allocation classes: one for each pair of layout and size class.

use crate::Layout;

/// Number of words of a cell in each size class. Up to 16 words there is a class for every even number, then four for
/// each doubling; the last classes divide a block of 4096 words into 9, 8, 7, … 2 cells.
pub(crate) const CELLS: [u16; 34] = [
    2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    384, 454, 512, 584, 682, 818, 1024, 1364, 2048,
];

/// Largest number of words of an object in a cell: a larger object occupies blocks of its own.
pub const LARGEST_CELL: usize = CELLS[CELLS.len() - 1] as usize;

/// Number of allocation classes.
pub(crate) const CLASSES: usize = CELLS.len() * Layout::ALL.len();

/// Index of the size class for an object, by half of its number of words, rounded up.
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

/// An allocation class is a layout and a size class: blocks hold cells of one allocation class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AllocationClass(u8);

impl AllocationClass {
    /// Returns the class for objects of `words` words, or `None` when they are large objects.
    #[inline]
    #[must_use]
    pub(crate) const fn of(layout: Layout, words: usize) -> Option<AllocationClass> {
        if words > LARGEST_CELL {
            return None;
        }
        Some(AllocationClass(CLASS_OF[words.div_ceil(2)] * Layout::ALL.len() as u8 + layout as u8))
    }

    /// Returns the number of words of a cell of this class.
    #[inline]
    #[must_use]
    pub(crate) const fn words(self) -> usize {
        CELLS[self.0 as usize / Layout::ALL.len()] as usize
    }

    /// Returns the layout of this class.
    #[inline]
    #[must_use]
    pub(crate) const fn layout(self) -> Layout {
        Layout::ALL[self.0 as usize % Layout::ALL.len()]
    }

    /// Returns every class, by index.
    pub(crate) fn all() -> impl Iterator<Item = AllocationClass> {
        (0..CLASSES as u8).map(AllocationClass)
    }

    /// Returns the index of this class, below [`CLASSES`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of bytes of a cell of this class.
    #[inline]
    pub(crate) const fn bytes(self) -> usize {
        self.words() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_is_the_smallest_that_fits() {
        for layout in Layout::ALL {
            for words in 0..=LARGEST_CELL {
                let class = AllocationClass::of(layout, words).unwrap();
                let tightest = CELLS.iter().find(|&&cell| usize::from(cell) >= words).unwrap();
                assert_eq!(
                    (class.words(), class.layout()),
                    (usize::from(*tightest), layout),
                    "{words} words"
                );
            }
            assert_eq!(AllocationClass::of(layout, LARGEST_CELL + 1), None);
        }
    }

    #[test]
    fn class_indices_are_distinct() {
        for (number, class) in AllocationClass::all().enumerate() {
            assert_eq!(class.index(), number);
            assert_eq!(AllocationClass::of(class.layout(), class.words()), Some(class));
        }
    }
}
