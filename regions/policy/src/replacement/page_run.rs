//! Runs of pages: the unit of replacement.

use crate::PageNumber;
use core::ops::Range;

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
}
