//! The number of pages that are kept free, so that a fault need not wait for an eviction whose write takes time.
//!
//! With too few free pages, faults wait for writes; each free page too many is one that cannot hold data. The right
//! number depends on the store and on the program. It is therefore found as TCP finds the size of its congestion
//! window: it grows fast whenever a fault finds no room, and shrinks slowly while all faults find room.

/// Smallest number of free pages.
const MIN_RESERVE: usize = 16;
/// Factor by which the reserve grows when a fault finds no room.
const GROWTH: usize = 2;
/// Number of evictions, for each page of the reserve, after which the reserve shrinks by one page if all faults found
/// room.
const PATIENCE: usize = 16;
/// Divisor of local memory: the reserve is at most this part of it, since a store that is slower than the program would
/// otherwise take memory from the data without any gain.
const LARGEST_PART: usize = 32;
/// Largest number of free pages: enough for the pages of all writes in flight, and for as many faults in the meantime.
const MAX_RESERVE: usize = 2048;

/// The number of pages to keep free, adapted to the faults that find no room.
#[derive(Debug)]
pub struct FreeReserve {
    pages: usize,
    /// Number of evicted pages since the reserve last changed.
    evicted: usize,
}

impl Default for FreeReserve {
    fn default() -> FreeReserve {
        FreeReserve { pages: MIN_RESERVE, evicted: 0 }
    }
}

impl FreeReserve {
    /// Returns the number of pages to keep free, if local memory has `local` pages.
    #[must_use]
    pub fn pages(&self, local: usize) -> usize {
        self.pages.min(local / LARGEST_PART)
    }

    /// Notes a fault that found no room for `pages` pages.
    pub fn found_no_room(&mut self, pages: usize) {
        self.pages = (self.pages * GROWTH).max(pages).min(MAX_RESERVE);
        self.evicted = 0;
    }

    /// Notes the eviction of `pages` pages.
    pub fn evicted(&mut self, pages: usize) {
        self.evicted += pages;
        if self.evicted >= self.pages * PATIENCE {
            self.pages = self.pages.saturating_sub(1).max(MIN_RESERVE);
            self.evicted = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_grows_when_a_fault_finds_no_room_and_shrinks_slowly() {
        let mut reserve = FreeReserve::default();
        assert_eq!(reserve.pages(10_000), MIN_RESERVE);
        reserve.found_no_room(4);
        assert_eq!(reserve.pages(10_000), MIN_RESERVE * GROWTH);
        reserve.found_no_room(300);
        assert_eq!(reserve.pages(10_000), 300);
        (0..300 * PATIENCE - 1).for_each(|_| reserve.evicted(1));
        assert_eq!(reserve.pages(10_000), 300);
        reserve.evicted(1);
        assert_eq!(reserve.pages(10_000), 299);
        (0..100).for_each(|_| reserve.evicted(100_000));
        assert_eq!(reserve.pages(10_000), 199);
    }

    #[test]
    fn reserve_is_bounded_by_local_memory_and_below() {
        let mut reserve = FreeReserve::default();
        (0..100).for_each(|_| reserve.found_no_room(1 << 20));
        assert_eq!((reserve.pages(1 << 20), reserve.pages(800)), (MAX_RESERVE, 25));
        (0..1 << 13).for_each(|_| reserve.evicted(1 << 20));
        assert_eq!(reserve.pages(1 << 20), MIN_RESERVE);
    }
}
