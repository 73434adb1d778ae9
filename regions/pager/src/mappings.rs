//! The parts of a far range that the program has mapped.

use crate::far_range::FarRange;
use core::ops::Range;
use largesse_pages::{SPAN, base_page};
use largesse_store::{Ranges, bytes, offsets};

/// A range for mappings, and its parts that the program has mapped.
#[derive(Debug)]
pub struct Mappings {
    pub(crate) place: FarRange,
    /// Mapped parts, by their offsets in the range.
    pub(crate) taken: Ranges,
}

impl Mappings {
    pub(crate) const fn new(place: FarRange) -> Mappings {
        Mappings { place, taken: Ranges::new() }
    }

    pub(crate) fn start(&self) -> usize {
        self.place.range.start().as_ptr().addr()
    }

    /// Returns the offsets of those of some addresses that lie in the range.
    pub(crate) fn inside(&self, at: &Range<usize>) -> Range<usize> {
        let (start, len) = (self.start(), self.place.range.len());
        at.start.clamp(start, start + len) - start..at.end.clamp(start, start + len) - start
    }

    /// Returns the mapped parts of `within`, by offset.
    pub(crate) fn taken_in(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        let mut taken = Ranges::new();
        taken.add(bytes(within));
        self.taken.missing(&bytes(within)).iter().for_each(|free| taken.remove(&free));
        taken.iter().map(|part| offsets(&part)).collect()
    }

    /// Returns the lowest free part of `len` bytes, if there is one. Parts of at least a span are aligned to spans, as
    /// transfer units are.
    pub(crate) fn free(&self, len: usize) -> Option<Range<usize>> {
        let align = if len >= SPAN { SPAN } else { base_page() };
        self.taken.missing(&bytes(&(0..self.place.range.len()))).iter().find_map(|part| {
            let part = offsets(&part);
            let start = part.start.next_multiple_of(align);
            (start.checked_add(len)? <= part.end).then_some(start..start + len)
        })
    }

    pub(crate) fn is_free(&self, part: &Range<usize>) -> bool {
        part.end <= self.place.range.len() && self.taken_in(part).is_empty()
    }
}
