//! The number of pages that are kept free, so that a fault need not wait for an eviction whose write takes time.
//!
//! With too few, faults wait for writes; each of too many is a page that cannot hold data. The right number depends on the
//! store and on the program, so it is found as TCP finds its window: it grows fast whenever a fault found no room, and shrinks
//! slowly as long as none does.

/// Smallest number of free pages.
const MIN_RESERVE: usize = 16;
/// The reserve grows by this factor when a fault found no room.
const GROWTH: usize = 2;
/// The reserve shrinks by one page after this number of evictions for each page of it, if all faults found room.
const PATIENCE: usize = 16;
/// The reserve takes at most the part of local memory given by this divisor.
const LARGEST_PART: usize = 8;
/// Largest number of free pages: enough for the writes that are in flight at once, and as many faults meanwhile.
const MAX_RESERVE: usize = 2048;

/// The reserve of free pages.
#[derive(Debug)]
pub struct FreeReserve {
    pages: usize,
    /// Number of evictions since the reserve changed.
    evicted: usize,
}

impl Default for FreeReserve {
    fn default() -> FreeReserve {
        FreeReserve { pages: MIN_RESERVE, evicted: 0 }
    }
}

impl FreeReserve {
    /// Returns the number of pages to keep free of `local` pages of local memory.
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
        assert_eq!((reserve.pages(1 << 20), reserve.pages(800)), (MAX_RESERVE, 100));
        (0..1 << 13).for_each(|_| reserve.evicted(1 << 20));
        assert_eq!(reserve.pages(1 << 20), MIN_RESERVE);
    }
}
