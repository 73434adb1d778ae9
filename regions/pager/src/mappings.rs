//! The parts of a far range that the program has mapped.

use crate::far_range::FarRange;
use core::ops::Range;
use largesse_pages::{SPAN, base_page};
use largesse_store::{Ranges, bytes, offsets};

/// The reserved range in which the program maps far memory, and which parts of it are mapped.
#[derive(Debug)]
pub struct Mappings {
    pub(crate) place: FarRange,
    /// Mapped parts, as offsets in bytes from the start of the range.
    pub(crate) taken: Ranges,
}

impl Mappings {
    pub(crate) const fn new(place: FarRange) -> Mappings {
        Mappings { place, taken: Ranges::new() }
    }

    pub(crate) fn start(&self) -> usize {
        self.place.range.start().as_ptr().addr()
    }

    /// Returns the part of the addresses `at` that lies in the range, as offsets from its start.
    pub(crate) fn inside(&self, at: &Range<usize>) -> Range<usize> {
        let (start, len) = (self.start(), self.place.range.len());
        at.start.clamp(start, start + len) - start..at.end.clamp(start, start + len) - start
    }

    /// Returns the mapped parts of the offsets `within`.
    pub(crate) fn taken_in(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        let mut taken = Ranges::new();
        taken.add(bytes(within));
        self.taken.missing(&bytes(within)).iter().for_each(|free| taken.remove(&free));
        taken.iter().map(|part| offsets(&part)).collect()
    }

    /// Returns the offsets of the lowest free part of `len` bytes; `None` if there is none. Parts of at least a span (2
    /// MiB) are aligned to spans, so that transfer units do not cross their ends.
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
