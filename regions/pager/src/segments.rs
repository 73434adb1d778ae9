//! The segments of far memory: ranges of addresses, whose pages are numbered consecutively.

use core::ops::Range;
use largesse_policy::PageNumber;

/// A range of addresses that is far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// First address, a multiple of the page size.
    pub start: usize,
    /// Length in pages.
    pub pages: usize,
    /// Number of the segment's first page.
    pub first: PageNumber,
}

/// All segments of far memory. Page numbers are unique across them. No transfer unit extends beyond a segment.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    all: Vec<Segment>,
    /// All segments, in the order of their addresses.
    by_address: Vec<Segment>,
}

impl Segments {
    /// Makes an empty list.
    #[must_use]
    pub const fn new() -> Segments {
        Segments { all: Vec::new(), by_address: Vec::new() }
    }

    /// Adds a range of `pages` pages from the address `start` on, and returns the number of its first page. That number
    /// is a multiple of `align`, so that transfer units are aligned by address as well as by number.
    pub fn add(&mut self, start: usize, pages: usize, align: usize) -> PageNumber {
        let first = self.pages().next_multiple_of(align);
        let new = Segment { start, pages, first };
        self.all.push(new);
        self.by_address.insert(self.by_address.partition_point(|it| it.start < start), new);
        first
    }

    /// Returns all segments, in the order of their page numbers.
    #[must_use]
    pub fn all(&self) -> &[Segment] {
        &self.all
    }

    /// Returns the number after the highest page number.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.all.last().map_or(0, |last| last.first + last.pages)
    }

    /// Returns the pages of the segment that holds `page`.
    #[must_use]
    pub fn around(&self, page: PageNumber) -> Range<PageNumber> {
        let segment = self.of(page);
        segment.first..segment.first + segment.pages
    }

    /// Returns the number of the page at an address, if a page has `page` bytes; `None` if the address is not far.
    pub(crate) fn page_at(&self, address: usize, page: usize) -> Option<PageNumber> {
        let after = self.by_address.partition_point(|it| it.start <= address);
        let segment = self.by_address.get(after.checked_sub(1)?)?;
        let number = (address - segment.start) / page;
        (number < segment.pages).then_some(segment.first + number)
    }

    /// Returns the pages in the first far part of the addresses `at`, if a page has `page` bytes.
    pub(crate) fn overlap(&self, at: Range<usize>, page: usize) -> Option<Range<PageNumber>> {
        let part = self.within(&at, page).next()?;
        Some(self.page_at(part.start, page)?..self.page_at(part.end - 1, page)? + 1)
    }

    /// Returns the parts of the addresses `at` that lie in segments, in the order of addresses.
    pub(crate) fn within(&self, at: &Range<usize>, page: usize) -> impl Iterator<Item = Range<usize>> {
        let inside = move |it: &Segment| at.start.max(it.start)..at.end.min(it.start + it.pages * page);
        self.by_address.iter().map(inside).filter(|part| !part.is_empty())
    }

    /// Returns whether any part of the addresses `at` lies in a segment.
    pub(crate) fn touches(&self, at: &Range<usize>, page: usize) -> bool {
        self.within(at, page).next().is_some()
    }

    /// Returns the address of a page, if a page has `page` bytes.
    pub(crate) fn address(&self, number: PageNumber, page: usize) -> usize {
        let segment = self.of(number);
        segment.start + (number - segment.first) * page
    }

    /// Returns the index of the segment that holds `page`, in the order of page numbers.
    pub(crate) fn place_of(&self, page: PageNumber) -> usize {
        self.all.partition_point(|segment| segment.first <= page).saturating_sub(1)
    }

    fn of(&self, page: PageNumber) -> Segment {
        self.all[self.place_of(page)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_numbers_agree() {
        let mut segments = Segments::new();
        assert_eq!(segments.add(0x10_0000, 5, 512), 0);
        assert_eq!(segments.add(0x80_0000, 700, 512), 512);
        assert_eq!(segments.add(0x20_0000, 1, 512), 1536);
        for (address, page) in [
            (0x10_0000, 0),
            (0x10_4fff, 4),
            (0x80_0000, 512),
            (0x80_0000 + 699 * 4096, 1211),
            (0x20_0fff, 1536),
        ] {
            assert_eq!(segments.page_at(address, 4096), Some(page));
            assert_eq!(segments.address(page, 4096), address / 4096 * 4096);
        }
        for outside in [0, 0x10_5000, 0x20_1000, 0x7f_ffff, 0x80_0000 + 700 * 4096] {
            assert_eq!(segments.page_at(outside, 4096), None);
        }
        let within = |at| segments.within(&at, 4096).collect::<Vec<_>>();
        assert_eq!(
            within(0x10_3000..0x81_0000),
            [0x10_3000..0x10_5000, 0x20_0000..0x20_1000, 0x80_0000..0x81_0000]
        );
        assert_eq!(within(0x10_5000..0x20_0000), []);
        assert_eq!(segments.around(600), 512..1212);
        assert_eq!(segments.overlap(0..0x10_0001, 4096), Some(0..1));
        assert_eq!(segments.overlap(0x10_1fff..0x90_0000, 4096), Some(1..5));
        assert_eq!(segments.overlap(0x20_1000..0x80_2001, 4096), Some(512..515));
        assert_eq!(segments.overlap(0x20_1000..0x80_0000, 4096), None);
        assert_eq!(segments.pages(), 1537);
    }
}
