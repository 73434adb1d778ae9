//! A reserved range of addresses whose pages are far memory.

use crate::Segments;
use core::ops::Range;
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::PageNumber;

/// A reserved range of addresses, which is one segment of far memory.
#[derive(Debug)]
pub struct FarRange {
    /// The reserved addresses of the segment.
    pub range: Reserved,
    /// Number of the range's first page.
    pub first: PageNumber,
}

impl FarRange {
    /// Adds a range to the segments.
    #[must_use]
    pub fn new(range: Reserved, segments: &mut Segments) -> FarRange {
        let page = base_page();
        let first = segments.add(range.start().as_ptr().addr(), range.len() / page, SPAN / page);
        FarRange { range, first }
    }

    /// Returns the size of a number of pages in bytes.
    pub(crate) fn bytes(&self, pages: usize) -> usize {
        pages * base_page()
    }

    /// Returns the pages that lie entirely in `len` bytes at an offset.
    pub(crate) fn pages(&self, offset: usize, len: usize) -> Range<PageNumber> {
        let page = base_page();
        self.first + offset.div_ceil(page)..self.first + (offset + len) / page
    }
}
