//! Splits free extents on allocation, and coalesces them with their neighbours when freed.

use super::{Arena, Granules};
use crate::Backing;
use crate::extent::ExtentState;
use core::ops::Range;

impl<B: Backing> Arena<B> {
    /// Takes the granules `window` out of the free extent at `free`. The remainders on either side stay free.
    pub(super) fn cut(&mut self, free: Granules, window: &Range<Granules>) {
        let entry = *self.extents.get(free);
        self.bins.unlink(&mut self.extents, free);
        if free < window.start {
            self.extents.define(free, window.start - free, ExtentState::Free, entry.stamp);
            self.bins.link(&mut self.extents, free);
        }
        let end = free + entry.len;
        if window.end < end {
            self.extents.define(window.end, end - window.end, ExtentState::Free, entry.stamp);
            self.bins.link(&mut self.extents, window.end);
        }
    }

    /// Marks an extent as free, coalesces it with its free neighbours, and returns the granules of the whole.
    pub(super) fn link_free(&mut self, at: Granules, len: Granules, now: u32) -> Range<Granules> {
        let (mut at, mut len) = (at, len);
        if let Some(next) = self.extents.free_after(at) {
            self.bins.unlink(&mut self.extents, next);
            len += self.extents.get(next).len;
            self.extents.forget(next);
        }
        if let Some(before) = self.extents.free_before(at) {
            self.bins.unlink(&mut self.extents, before);
            len += self.extents.get(before).len;
            self.extents.forget(at);
            at = before;
        }
        self.extents.define(at, len, ExtentState::Free, now);
        self.bins.link(&mut self.extents, at);
        at..at + len
    }
}
