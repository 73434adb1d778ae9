//! Checks zero pages that were filled along with others, and that the program may never have written.
//!
//! While memory is free, a fault on a new page fills many zero pages at once, since this needs no transfer. Some of
//! them are never used: the edge of a grid, the end of a buffer. They take local memory all the same. If the used pages
//! would just fit without them, used pages are evicted for them in each loop. The kernel does not report which pages
//! were written, but a page that was never written is still zero. Therefore, once evictions have begun, the evicting
//! thread checks such pages a single time, oldest first. The check is a hint: a page that was written after all is
//! written back like any other.

use crate::PageNumber;
use core::ops::Range;
use std::collections::VecDeque;

/// Smallest number of zero pages in one fill for which it pays to check later whether they are still zero.
const MIN_FILL: usize = 64;
/// Number of pages that are checked at once.
const BATCH: usize = 64;
/// Zero pages that were filled ahead of need are checked after (pages of local memory) / `SETTLE` evictions. A program
/// that will use them has probably done so by then. If mapped pages exceed local memory by fewer pages, they are
/// checked after as many evictions.
const SETTLE: usize = 3;

/// A queue of fills of zero pages that were not checked yet, oldest first, each with the eviction clock at its fill.
#[derive(Debug, Default)]
pub struct SpeculativePages(VecDeque<(Range<PageNumber>, u32)>);

impl SpeculativePages {
    /// Adds the zero pages of one fill, made when the eviction clock was `clock`, if they are enough to be worth a
    /// check. Returns whether it added them.
    pub fn add(&mut self, pages: Range<PageNumber>, clock: u32) -> bool {
        let many = pages.len() >= MIN_FILL;
        if many {
            self.0.push_back((pages, clock));
        }
        many
    }

    /// Returns the unchecked pages of each fill, oldest first.
    pub fn pages(&self) -> impl Iterator<Item = Range<PageNumber>> {
        self.0.iter().map(|(pages, _)| pages.clone())
    }

    /// Forgets all fills that have a page in `gone`, which is no longer far memory. Their other pages are not checked
    /// either.
    pub fn forget(&mut self, gone: &Range<PageNumber>) {
        self.0.retain(|(pages, _)| pages.end <= gone.start || gone.end <= pages.start);
    }

    /// Returns whether the oldest fill should be checked when the eviction clock is `clock`. Local memory has `local`
    /// pages, and the program uses `mapped` pages of far memory (0 if unknown).
    #[must_use]
    pub fn is_due(&self, clock: u32, local: usize, mapped: usize) -> bool {
        // With `mapped` below `local`, or unknown, the difference wraps and the share of local memory decides.
        self.is_due_after(clock, (local / SETTLE).min(mapped.wrapping_sub(local)))
    }

    fn is_due_after(&self, clock: u32, evictions: usize) -> bool {
        self.0.front().is_some_and(|(_, filled)| clock.wrapping_sub(*filled) as usize > evictions)
    }

    /// Removes and returns the next pages to check, which are part of the oldest fill.
    pub fn pop(&mut self) -> Option<Range<PageNumber>> {
        let (pages, _) = self.0.front_mut()?;
        let next = pages.start..pages.end.min(pages.start + BATCH);
        pages.start = next.end;
        if pages.start == pages.end {
            self.0.pop_front();
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_checked_once_in_batches() {
        let mut pages = SpeculativePages::default();
        let fills = [(0..MIN_FILL - 1, 0), (1000..1000 + BATCH + 10, 5), (2000..2000 + BATCH, 90)];
        assert_eq!(fills.map(|(range, clock)| pages.add(range, clock)), [false, true, true]);
        assert!(!pages.is_due_after(105, 100) && pages.is_due_after(106, 100));
        assert_eq!(pages.pop(), Some(1000..1000 + BATCH));
        assert_eq!(pages.pop(), Some(1000 + BATCH..1000 + BATCH + 10));
        assert!(!pages.is_due_after(190, 100) && pages.is_due_after(191, 100));
        assert_eq!(pages.pop(), Some(2000..2000 + BATCH));
        assert_eq!((pages.pop(), pages.is_due_after(u32::MAX, 100)), (None, false));
    }

    #[test]
    fn forgotten_pages_are_not_checked() {
        let mut pages = SpeculativePages::default();
        for first in [0, 500, 1000] {
            assert!(pages.add(first..first + MIN_FILL, 0));
        }
        pages.forget(&(400..900));
        assert_eq!(pages.pages().map(|part| part.start).collect::<Vec<_>>(), [0, 1000]);
    }

    #[test]
    fn check_waits_for_a_share_of_local_memory_or_the_missing_room() {
        let mut pages = SpeculativePages::default();
        pages.add(0..MIN_FILL, 0);
        for (mapped, evictions) in [(0, 30), (80, 30), (100, 10), (1000, 30)] {
            let due = [evictions, evictions + 1].map(|clock| pages.is_due(clock, 90, mapped));
            assert_eq!(due, [false, true], "{mapped} pages mapped");
        }
    }
}
