//! Free extents: cut where they are taken from, joined where they come back.

use super::{Arena, Granules};
use crate::Backing;
use crate::extent::State;
use core::ops::Range;

impl<B: Backing> Arena<B> {
    /// Take `window` out of the free extent at `free`; what is left on either side stays free.
    pub(super) fn cut(&mut self, free: Granules, window: &Range<Granules>) {
        let entry = *self.extents.get(free);
        self.bins.unlink(&mut self.extents, free);
        if free < window.start {
            self.extents.define(free, window.start - free, State::Free, entry.stamp);
            self.bins.link(&mut self.extents, free);
        }
        let end = free + entry.len;
        if window.end < end {
            self.extents.define(window.end, end - window.end, State::Free, entry.stamp);
            self.bins.link(&mut self.extents, window.end);
        }
    }

    /// Make an extent free, joined with its free neighbours; returns the whole.
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
        self.extents.define(at, len, State::Free, now);
        self.bins.link(&mut self.extents, at);
        at..at + len
    }
}
