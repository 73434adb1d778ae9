//! A reserved range of addresses whose pages are far memory.

use crate::Segments;
use core::ops::Range;
use largesse_pages::{Reserved, SPAN, base_page};
use largesse_policy::PageNumber;

/// A reserved range with the number of its first page.
#[derive(Debug)]
pub struct FarRange {
    /// Its addresses.
    pub range: Reserved,
    /// The pager knows its pages from here on.
    pub first: PageNumber,
}

impl FarRange {
    /// The next of the segments, which will be this range.
    #[must_use]
    pub fn new(range: Reserved, segments: &mut Segments) -> FarRange {
        let page = base_page();
        let first = segments.add(range.start().as_ptr().addr(), range.len() / page, SPAN / page);
        FarRange { range, first }
    }

    /// The pages that lie wholly in these bytes.
    pub(crate) fn pages(&self, offset: usize, len: usize) -> Range<PageNumber> {
        let page = base_page();
        self.first + offset.div_ceil(page)..self.first + (offset + len) / page
    }
}
