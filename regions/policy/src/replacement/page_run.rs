//! Runs of pages, which are evicted together, and the parts of local memory that hold them.

use crate::PageNumber;
use core::ops::Range;

/// The part of local memory that a page is in, or from which it was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// The part for pages that are used again and again, whose pages are evicted last.
    Protected,
    /// The part for new pages, which are evicted in the order of their fills unless they are promoted.
    Probationary,
}

/// Consecutive pages that were filled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// Number of the first page.
    pub first: u32,
    /// Number of pages.
    pub pages: u32,
}

impl PageRun {
    /// Returns the numbers of the pages.
    #[must_use]
    pub const fn range(&self) -> Range<PageNumber> {
        self.first as usize..(self.first + self.pages) as usize
    }

    /// Returns whether any of the run's pages is in `pages`.
    #[must_use]
    pub fn overlaps(&self, pages: &Range<PageNumber>) -> bool {
        (self.first as usize) < pages.end && pages.start < (self.first + self.pages) as usize
    }
}
