//! Purges free memory beyond the bound and after the decay time of [`Retention`](crate::Retention), and prepares cold
//! spans.

use crate::arena::{Arena, spans_of, whole_spans};
use crate::span::Spans;
use crate::{Backing, DECAY_SECONDS, Granules, Purged, SpanKind};
use core::ops::Range;
use largesse_pages::SPAN;

impl<B: Backing> Arena<B> {
    /// Purges memory that has been free for [`DECAY_SECONDS`] at the time `now`, in seconds.
    pub fn decay(&mut self, now: u32) {
        while let Some(free) = self.oldest_warm(|stamp| now.saturating_sub(stamp) >= DECAY_SECONDS) {
            if self.purge_extent(free, usize::MAX) == 0 {
                break;
            }
        }
    }

    /// Purges free warm memory, oldest first, until at most `keep` bytes of it are left. Returns the number of bytes
    /// that it purged.
    pub fn trim(&mut self, keep: usize) -> usize {
        let before = self.totals.returned;
        while let excess @ 1.. = self.totals.warm.saturating_sub(self.totals.live).saturating_sub(keep) {
            let Some(free) = self.oldest_warm(|_| true) else { break };
            if self.purge_extent(free, excess.div_ceil(SPAN)) == 0 {
                break;
            }
        }
        self.totals.returned - before
    }

    /// Commits cold spans that the next requests will use, at most `limit`. Returns the first span and the number of
    /// spans; `None` if there are none. The caller may touch them at any time, even after they were allocated.
    pub fn cold_ahead(&mut self, limit: usize) -> Option<(usize, usize)> {
        let last = self.bins.from(&self.extents, 1).max_by_key(|&free| self.extents.get(free).len)?;
        let spans = self.inside(last);
        let first = spans.clone().take(limit * 4).find(|&span| !self.spans.get(span).warm)?;
        let allowed = self.allowed().saturating_sub(self.totals.warm) / SPAN;
        let end = (first + limit.min(allowed)).min(spans.end);
        let run = first..(first..end).find(|&span| self.spans.get(span).warm).unwrap_or(end);
        if run.is_empty() {
            return None;
        }
        let uncommitted = run.clone().find(|&s| self.spans.get(s).kind == SpanKind::Reserved);
        if let Some(from) = uncommitted {
            let to =
                (from..run.end).find(|&s| self.spans.get(s).kind != SpanKind::Reserved).unwrap_or(run.end);
            let kind = self.backing.commit(from, to - from).ok()?;
            self.spans.set_kind(from..to, kind);
            return Some((run.start, to - run.start));
        }
        Some((run.start, run.len()))
    }

    /// Records that spans returned by [`cold_ahead`](Arena::cold_ahead) were touched.
    pub fn warmed(&mut self, first: usize, spans: usize) {
        let usable = |span: &usize| self.spans.get(*span).kind != SpanKind::Reserved;
        if (first..first + spans).all(|span| usable(&span)) {
            self.spans.set_warm(first..first + spans);
            self.totals.warm = self.spans.warm() * SPAN;
        }
    }

    /// Purges free spans so that the bound holds after `cold` more spans have become warm, as far as there are enough
    /// free spans.
    pub(crate) fn make_room(&mut self, cold: usize) {
        let allowed = self.allowed();
        while cold > 0
            && let excess @ 1.. = (self.spans.warm() + cold).saturating_sub(allowed / SPAN)
            && let Some(free) = self.oldest_warm(|_| true)
            && self.purge_extent(free, excess) > 0
        {}
    }

    /// Returns the number of bytes that may be warm.
    fn allowed(&self) -> usize {
        self.retention.allowed(self.totals.peak).min(self.limit)
    }

    /// Offers warm spans to the kernel, which may then take their memory when memory is short. They are the spans that
    /// lie wholly in the free extent `free` and overlap the granules `window`, which were just freed. If the backing
    /// cannot offer memory, they are purged at once.
    pub(crate) fn offer(&mut self, free: &Range<Granules>, window: &Range<Granules>) {
        let (whole, touched) = (whole_spans(free), spans_of(window));
        let end = whole.end.min(touched.end);
        let is_held = |spans: &Spans, span: usize| spans.get(span).warm && !spans.get(span).kind.from_pool();
        let mut at = whole.start.max(touched.start);
        while let Some(first) = (at..end).find(|&span| is_held(&self.spans, span)) {
            at = (first..end).find(|&span| !is_held(&self.spans, span)).unwrap_or(end);
            // SAFETY: the spans lie wholly inside a free extent.
            if unsafe { self.backing.offer(first, at - first) } {
                continue;
            }
            // SAFETY: as above. The kind only tells which pages are from a pool, and none of these is.
            if unsafe { self.backing.purge(first, at - first, SpanKind::Small) } == Purged::Kept {
                (first..at).for_each(|span| self.spans.set_cold(span));
            }
        }
    }

    /// Returns the free extent that was freed first, among those that have warm whole spans and for whose stamp `due`
    /// returns true.
    pub(crate) fn oldest_warm(&self, due: impl Fn(u32) -> bool) -> Option<Granules> {
        let warm = |free: &Granules| {
            let spans = self.inside(*free);
            (spans.start..spans.end.min(self.spans.top())).any(|span| self.spans.get(span).warm)
        };
        let frees = self.bins.from(&self.extents, 1);
        frees
            .filter(|&free| due(self.extents.get(free).stamp))
            .filter(warm)
            .min_by_key(|&free| self.extents.get(free).stamp)
    }

    /// Returns the spans that lie wholly in a free extent.
    fn inside(&self, free: Granules) -> Range<usize> {
        whole_spans(&(free..free + self.extents.get(free).len))
    }

    /// Purges at most `limit` warm whole spans of a free extent, from its end, and returns their number.
    fn purge_extent(&mut self, free: Granules, limit: usize) -> usize {
        let spans = self.inside(free);
        let top = self.spans.top().min(spans.end);
        let unit = self.backing.unit();
        let mut done = 0;
        let mut end = top;
        while end > spans.start && done < limit {
            let state = self.spans.get(end - 1);
            if !state.warm {
                end -= 1;
                continue;
            }
            let same = |span: &usize| {
                let it = self.spans.get(*span);
                it.warm && it.kind == state.kind
            };
            let lowest = if state.kind == SpanKind::Hugetlb1G {
                spans.start
            } else {
                spans.start.max(end.saturating_sub(limit - done))
            };
            let mut start = (lowest..end).rev().take_while(same).last().unwrap_or(end - 1);
            let mut stop = end;
            if state.kind == SpanKind::Hugetlb1G {
                start = start.next_multiple_of(unit);
                stop = end / unit * unit;
                if start >= stop {
                    end = start.min(end) - 1;
                    continue;
                }
            }
            // SAFETY: the spans lie wholly inside a free extent.
            let purged = unsafe { self.backing.purge(start, stop - start, state.kind) };
            if purged == Purged::Refused {
                break;
            }
            for span in start..stop {
                self.spans.set_cold(span);
            }
            if purged == Purged::Decommitted {
                self.spans.set_kind(start..stop, SpanKind::Reserved);
            }
            done += stop - start;
            end = start;
        }
        self.totals.returned += done * SPAN;
        self.totals.warm = self.spans.warm() * SPAN;
        done
    }
}
