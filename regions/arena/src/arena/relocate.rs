//! Moves contents between extents by changing page tables.

use super::{Arena, Granules, whole_spans};
use crate::{Backing, PER_SPAN};
use core::ops::Range;
use largesse_pages::SPAN;

impl<B: Backing> Arena<B> {
    /// Moves the contents of whole spans from one used extent to another, whose position relative to spans is the same.
    /// Returns which granules, counted from the start of the extents, were moved; the caller copies the others. Returns
    /// `None` if nothing was moved.
    ///
    /// # Safety
    /// The caller owns both extents, and no other code uses them.
    pub unsafe fn relocate(
        &mut self,
        from: Granules,
        to: Granules,
        granules: Granules,
    ) -> Option<Range<Granules>> {
        let per_span = PER_SPAN as u32;
        if from % per_span != to % per_span {
            return None;
        }
        let source = whole_spans(&(from..from + granules));
        let target = whole_spans(&(to..to + granules));
        let movable = |span| !self.spans.get(span).kind.from_pool();
        if source.is_empty() || !source.clone().chain(target.clone()).all(movable) {
            return None;
        }
        // SAFETY: both are whole spans of extents that the caller owns.
        if !unsafe { self.backing.relocate(source.start, target.start, source.len()) } {
            return None;
        }
        self.spans.set_dirty(target.start * PER_SPAN..target.end * PER_SPAN);
        let moved = source.start as u32 * per_span - from..source.end as u32 * per_span - from;
        for span in source {
            self.spans.set_cold(span);
        }
        self.totals.warm = self.spans.warm() * SPAN;
        Some(moved)
    }
}
