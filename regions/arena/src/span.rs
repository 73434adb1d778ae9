//! Records the state of each span of 2 MiB: committed or not, warm or not, and which granules are dirty.

use crate::PER_SPAN;
use largesse_pages::{Table, Zeroed};

/// Whether a span is committed, and on which kind of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum SpanKind {
    /// The span is only reserved.
    #[default]
    Reserved = 0,
    /// The span is committed and advised for transparent huge pages.
    Thp,
    /// The span is committed on 2 MiB pages of the hugetlb pool.
    Hugetlb,
    /// The span is committed on 1 GiB pages of the hugetlb pool.
    Hugetlb1G,
    /// The span is committed on smaller pages.
    Small,
}

impl SpanKind {
    /// Returns whether pages of this kind are from a hugetlb pool, and so allocated at commit instead of at first
    /// touch.
    #[must_use]
    pub const fn from_pool(self) -> bool {
        matches!(self, SpanKind::Hugetlb | SpanKind::Hugetlb1G)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// Mask with one bit for each granule of the span, which is set if the granule may hold something other than zero.
    pub(crate) dirty: u128,
    pub(crate) kind: SpanKind,
    pub(crate) warm: bool,
}

// SAFETY: zero bytes are `Reserved`, cold and clean.
unsafe impl Zeroed for Span {}

const _: () = assert!(PER_SPAN == u128::BITS as usize);

/// Holds the state of all spans, and the number of warm ones.
#[derive(Debug)]
pub(crate) struct Spans {
    table: Table<Span>,
    warm: usize,
    top: usize,
}

impl Spans {
    pub(crate) fn new(count: usize) -> Option<Spans> {
        Some(Spans { table: Table::new(count)?, warm: 0, top: 0 })
    }

    pub(crate) fn get(&self, span: usize) -> Span {
        self.table[span]
    }

    /// Returns the number of warm spans in the range.
    pub(crate) fn warm(&self) -> usize {
        self.warm
    }

    /// Returns the number of the span after the last one that was ever committed.
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    pub(crate) fn cold_in(&self, spans: core::ops::Range<usize>) -> usize {
        self.table[spans].iter().filter(|span| !span.warm).count()
    }

    pub(crate) fn set_kind(&mut self, spans: core::ops::Range<usize>, kind: SpanKind) {
        self.top = self.top.max(spans.end);
        for span in &mut self.table[spans] {
            span.kind = kind;
        }
    }

    pub(crate) fn set_warm(&mut self, spans: core::ops::Range<usize>) {
        for span in &mut self.table[spans] {
            self.warm += usize::from(!span.warm);
            span.warm = true;
        }
    }

    /// Marks a span as cold: it has no memory, and reads as zero.
    pub(crate) fn set_cold(&mut self, span: usize) {
        let span = &mut self.table[span];
        self.warm -= usize::from(span.warm);
        span.warm = false;
        span.dirty = 0;
    }

    pub(crate) fn set_dirty(&mut self, granules: core::ops::Range<usize>) {
        for (span, mask) in masks(granules) {
            self.table[span].dirty |= mask;
        }
    }

    /// Returns the first run of dirty granules in a range.
    pub(crate) fn dirty_run(&self, granules: core::ops::Range<usize>) -> Option<core::ops::Range<usize>> {
        let is_dirty = |g: &usize| self.table[g / PER_SPAN].dirty & (1 << (g % PER_SPAN)) != 0;
        let mut at = granules.start;
        let first = loop {
            if at >= granules.end {
                return None;
            }
            // A clean span is skipped as a whole.
            if self.table[at / PER_SPAN].dirty == 0 {
                at = (at / PER_SPAN + 1) * PER_SPAN;
            } else if is_dirty(&at) {
                break at;
            } else {
                at += 1;
            }
        };
        let end = (first..granules.end).find(|g| !is_dirty(g)).unwrap_or(granules.end);
        Some(first..end)
    }
}

/// Splits a range of granules into spans, each with the mask of its granules.
fn masks(granules: core::ops::Range<usize>) -> impl Iterator<Item = (usize, u128)> {
    let spans = granules.start / PER_SPAN..granules.end.div_ceil(PER_SPAN);
    spans.map(move |span| {
        let from = granules.start.saturating_sub(span * PER_SPAN);
        let to = (granules.end - span * PER_SPAN).min(PER_SPAN);
        let ones = u128::MAX >> (PER_SPAN - (to - from));
        (span, ones << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_exactly_the_range() {
        extern crate std;
        for (from, to) in [(0, 1), (0, 128), (5, 7), (100, 300), (127, 129), (128, 256)] {
            let mut seen = std::vec![false; 512];
            for (span, mask) in masks(from..to) {
                for bit in 0..128 {
                    seen[span * 128 + bit] |= mask >> bit & 1 == 1;
                }
            }
            let want: std::vec::Vec<bool> = (0..512).map(|g| (from..to).contains(&g)).collect();
            assert_eq!(seen, want, "{from}..{to}");
        }
    }

    #[test]
    fn dirty_runs_end_at_clean_granules() {
        let mut spans = Spans::new(4).unwrap();
        spans.set_dirty(120..140);
        spans.set_dirty(200..201);
        assert_eq!(spans.dirty_run(0..512), Some(120..140));
        assert_eq!(spans.dirty_run(130..135), Some(130..135));
        assert_eq!(spans.dirty_run(140..512), Some(200..201));
        assert_eq!(spans.dirty_run(201..512), None);
    }
}
