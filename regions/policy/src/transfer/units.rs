//! Holds the sizes of transfer units, which the user fixes or the tuner of each region chooses.

use super::regions::Regions;
use crate::streams::Access;
use crate::{MAX_TRANSFER, PageNumber};
use core::ops::Range;

/// First size of transfer units in pages, if much of far memory does not fit into local memory.
const FIRST_UNIT: usize = 4;
/// First size of transfer units in pages, if most of far memory fits into local memory. A large unit then evicts few
/// pages that are needed, and tuning from a small size would take long, because each step gains little.
const FIRST_UNIT_OF_FEW: usize = 64;

/// Returns the size of transfer units in pages with which tuning begins when the first page refaults. `mapped` is the
/// number of pages of far memory in use (0 if unknown), and `local` the size of local memory in pages.
#[must_use]
pub fn first_unit(local: usize, mapped: usize) -> usize {
    if (1..=local + local / 2).contains(&mapped) { FIRST_UNIT_OF_FEW } else { FIRST_UNIT }
}

/// The user's choice of how many base pages one transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferSize {
    /// A fixed number of base pages, a power of two of at most [`MAX_TRANSFER`].
    Fixed(usize),
    /// Chosen at run time by the tuner.
    Auto,
}

impl TransferSize {
    /// Returns a fixed size of `bytes` bytes, rounded to at least one page and at most [`MAX_TRANSFER`] pages of `page`
    /// bytes. Returns [`Auto`](TransferSize::Auto) if `bytes` is `None`.
    #[must_use]
    pub fn from_bytes(bytes: Option<usize>, page: usize) -> TransferSize {
        bytes.map_or(TransferSize::Auto, |bytes| TransferSize::Fixed((bytes / page).clamp(1, MAX_TRANSFER)))
    }
}

/// The sizes of transfer units in force, in base pages; all are powers of two.
#[derive(Debug)]
pub enum TransferUnits {
    /// One size for all pages.
    Fixed(usize),
    /// A size for each region and kind of access, chosen by set dueling.
    Auto(Regions),
}

impl TransferUnits {
    /// Makes the sizes with which a pager starts, from the user's choice.
    #[must_use]
    pub fn new(size: TransferSize) -> TransferUnits {
        match size {
            TransferSize::Fixed(unit) => TransferUnits::Fixed(unit),
            TransferSize::Auto => TransferUnits::Auto(Regions::new(FIRST_UNIT)),
        }
    }

    /// Returns three sizes of transfer units in the pages `within`: the size of the region and kind of access with the
    /// most recent fills, the smallest size, and the largest.
    #[must_use]
    pub fn sizes(&self, within: &Range<PageNumber>) -> [usize; 3] {
        match self {
            TransferUnits::Fixed(unit) => [*unit; 3],
            TransferUnits::Auto(regions) => regions.sizes(within),
        }
    }

    /// Returns the size of the region and kind of access with the most recent fills.
    #[must_use]
    pub fn commonest(&self) -> usize {
        self.sizes(&(0..usize::MAX))[0]
    }

    /// Returns the size in force at `page` for `access`, even if the block of `page` tries another size.
    #[must_use]
    pub fn in_force(&self, page: PageNumber, access: Access) -> usize {
        match self {
            TransferUnits::Fixed(unit) => *unit,
            TransferUnits::Auto(regions) => regions.at(page, access).unit(),
        }
    }

    /// Returns the size at `page` for `access`: the size that the block of `page` tries if it is a leader, otherwise
    /// the size in force.
    #[must_use]
    pub fn at(&self, page: PageNumber, access: Access) -> usize {
        match self {
            TransferUnits::Fixed(unit) => *unit,
            TransferUnits::Auto(regions) => regions.at(page, access).unit_at(page),
        }
    }

    /// Records the eviction of pages that were filled for `access`.
    pub fn evicted(&mut self, pages: &Range<PageNumber>, access: Access) {
        if let TransferUnits::Auto(regions) = self {
            regions.evicted(pages, access);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_start_large_where_most_fits() {
        for (local, mapped, unit) in
            [(750, 1000, 64), (1000, 1000, 64), (500, 1000, 4), (50, 1000, 4), (750, 0, 4)]
        {
            assert_eq!(first_unit(local, mapped), unit, "{local} of {mapped}");
        }
    }

    #[test]
    fn sizes_in_bytes_are_bounded() {
        let pages = |bytes| TransferSize::from_bytes(bytes, 4096);
        assert_eq!(pages(None), TransferSize::Auto);
        assert_eq!(pages(Some(1)), TransferSize::Fixed(1));
        assert_eq!(pages(Some(65536)), TransferSize::Fixed(16));
        assert_eq!(pages(Some(1 << 30)), TransferSize::Fixed(MAX_TRANSFER));
    }
}
