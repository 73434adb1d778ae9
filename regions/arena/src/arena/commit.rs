//! Commits extents that were taken out of free memory.
//!
//! A large page takes 2 MiB even if only one byte of it is written. So a block gets large pages only if the arena stays
//! below its limit even when every allocated span is touched. Any other block gets small pages: if the program writes
//! all of it, the limit is exceeded on pages of either size; if it writes little, small pages take less memory.
//! Requests for sparse memory always get small pages, and so do the first short requests of an arena that
//! [starts on small pages](Arena::start_on_small_pages): a program with few blocks gains little by large pages, but
//! their unused parts would be most of its memory.

use super::{Arena, Granules, Prefer, spans_of};
use crate::span::Spans;
use crate::{Backing, GRANULE, Refusal, SpanKind};
use core::ops::Range;
use largesse_pages::{MapError, SPAN};

/// Length in bytes from which on an extent gets large pages in an arena that starts on small ones.
const LONG: usize = 2 * SPAN;

impl<B: Backing> Arena<B> {
    /// Accounts for the granules of `window`, which the caller has removed from free memory, and commits them. Returns
    /// the number of cold bytes, whose first touch is still to be paid.
    pub(super) fn make_usable(
        &mut self,
        window: &Range<Granules>,
        prefer: Prefer,
    ) -> Result<usize, MapError> {
        let bytes = window.len() * GRANULE;
        let cold = self.spans.cold_in(spans_of(window));
        self.commit(spans_of(window))?;
        self.totals.live += bytes;
        self.totals.peak = self.totals.peak.max(self.totals.live);
        self.make_room(cold); // purges only free memory, to which `window` no longer belongs
        self.choose_pages(spans_of(window), cold, prefer, bytes < LONG);
        self.spans.set_warm(spans_of(window));
        self.totals.warm = self.spans.warm() * SPAN;
        Ok((cold * SPAN).min(bytes))
    }

    /// Chooses the page size of the cold spans (those not touched yet) of `window`: small pages for sparse requests, for
    /// the first short ones, and if the warm spans of the arena and `cold` more would exceed its limit; large pages
    /// otherwise.
    fn choose_pages(&mut self, window: Range<usize>, cold: usize, prefer: Prefer, is_short: bool) {
        let warm = self.spans.warm() + cold;
        let fits = warm.saturating_mul(SPAN) <= self.limit;
        let is_first = is_short && warm <= self.small_first && prefer == Prefer::Warm;
        let large = fits && !is_first && prefer != Prefer::Sparse;
        if cold == 0 || large && !self.made_small {
            return;
        }
        let from = if large { SpanKind::Small } else { SpanKind::Thp };
        let other = |spans: &Spans, span: usize| spans.get(span).warm || spans.get(span).kind != from;
        let mut at = window.start;
        while at < window.end {
            let end = (at..window.end).find(|&span| other(&self.spans, span)).unwrap_or(window.end);
            if end > at
                && let Some(kind) = self.backing.prefer_large(at, end - at, large)
            {
                self.spans.set_kind(at..end, kind);
                self.made_small |= !large;
                if !fits {
                    self.backing.count_refusal(Refusal::NearLimit);
                }
            }
            at = end + 1;
        }
    }

    /// Commits those of the spans `window` that are only reserved.
    fn commit(&mut self, window: Range<usize>) -> Result<(), MapError> {
        let reserved = |spans: &Spans, span: usize| spans.get(span).kind == SpanKind::Reserved;
        let unit = self.backing.unit();
        let mut at = window.start;
        while at < window.end {
            if !reserved(&self.spans, at) {
                at += 1;
                continue;
            }
            let whole = at / unit * unit..(at / unit + 1) * unit;
            let run = if whole.end <= self.backing.spans() && whole.clone().all(|s| reserved(&self.spans, s))
            {
                // Whole units up to the end of the window.
                let end = (whole.end..window.end.next_multiple_of(unit).min(self.backing.spans()))
                    .find(|&s| !reserved(&self.spans, s))
                    .unwrap_or(window.end.next_multiple_of(unit).min(self.backing.spans()));
                whole.start..(end / unit * unit).max(whole.end)
            } else {
                at..(at..window.end).find(|&s| !reserved(&self.spans, s)).unwrap_or(window.end)
            };
            let kind = self.backing.commit(run.start, run.len())?;
            self.spans.set_kind(run.clone(), kind);
            if kind.from_pool() {
                self.spans.set_warm(run.clone());
            }
            at = run.end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NearMemory, PER_SPAN, Prefer, Refusal, Request, Retention};
    use largesse_pages::{PageKind, Placement, Reserved};

    const SPANS: usize = 24;

    fn arena(limit_spans: usize) -> Arena<NearMemory> {
        let range = Reserved::new(SPANS * SPAN, SPAN).unwrap();
        let near = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
        let mut arena = Arena::new(near, Retention::default()).unwrap();
        arena.set_limit(limit_spans * SPAN);
        arena
    }

    fn take(arena: &mut Arena<NearMemory>, spans: usize) -> (Granules, SpanKind) {
        let granules = (spans * PER_SPAN) as Granules;
        let request = Request { granules, align: 1, phase: 0, prefer: Prefer::Warm };
        let at = arena.take(request, 0).unwrap().at;
        let kind = arena.kinds(at).next().unwrap().1;
        (at, kind)
    }

    #[test]
    fn block_beyond_limit_gets_small_pages() {
        let mut arena = arena(10);
        assert_eq!(take(&mut arena, 6).1, SpanKind::Thp);
        let (second, kind) = take(&mut arena, 6);
        assert_eq!((kind, arena.backing.refused(Refusal::NearLimit)), (SpanKind::Small, 1));
        arena.give_back(second, false, 0);
        assert_eq!(take(&mut arena, 6), (second, SpanKind::Small), "resident small pages stay small");
        arena.set_limit(SPANS * SPAN);
        arena.give_back(second, false, 0);
        arena.trim(0);
        assert_eq!(take(&mut arena, 6).1, SpanKind::Thp, "the spans fit below the limit again");
    }

    #[test]
    fn sparse_request_gets_small_pages() {
        let mut arena = arena(SPANS);
        let request = |prefer| Request { granules: PER_SPAN as Granules, align: 1, phase: 0, prefer };
        let sparse = arena.take(request(Prefer::Sparse), 0).unwrap().at;
        assert_eq!(arena.kinds(sparse).next(), Some((1, SpanKind::Small)));
        assert_eq!(arena.backing.refused(Refusal::NearLimit), 0, "as it asked for");
        arena.give_back(sparse, false, 0);
        arena.trim(0);
        let again = arena.take(request(Prefer::Warm), 0).unwrap().at;
        assert_eq!(arena.kinds(again).next(), Some((1, SpanKind::Thp)), "cold spans get large pages again");
    }

    #[test]
    fn first_short_requests_get_small_pages() {
        let mut arena = arena(SPANS);
        arena.start_on_small_pages(3);
        let kinds = [1, 2, 1, 1, 1].map(|spans| take(&mut arena, spans).1);
        let (small, large) = (SpanKind::Small, SpanKind::Thp);
        assert_eq!(kinds, [small, large, large, large, large], "two spans are long, and three are warm then");
        assert_eq!(arena.backing.refused(Refusal::NearLimit), 0, "nobody asked for large pages");
        assert_eq!(arena.small_span_from(0), Some(0));
        arena.rekind(0, 1, large);
        assert_eq!(arena.small_span_from(0), None);
    }

    #[test]
    fn free_memory_is_purged_near_limit() {
        let mut arena = arena(10);
        let (first, _) = take(&mut arena, 6);
        let (wall, _) = take(&mut arena, 1);
        arena.give_back(first, false, 0);
        assert_eq!(take(&mut arena, 9).1, SpanKind::Thp);
        assert_eq!(arena.totals().warm / SPAN, 10, "the freed spans were not purged");
        arena.give_back(wall, false, 0);
    }

    #[test]
    fn nothing_is_prepared_beyond_limit() {
        let mut arena = arena(10);
        take(&mut arena, 7);
        assert_eq!(arena.cold_ahead(8).map(|(_, spans)| spans), Some(3));
        arena.set_limit(7 * SPAN);
        assert_eq!(arena.cold_ahead(8), None);
    }

    #[test]
    fn offered_block_is_usable_again() {
        let mut arena = arena(10);
        assert!(!arena.is_near_limit());
        for value in 1..4 {
            let (at, _) = take(&mut arena, 6);
            assert!(arena.is_near_limit());
            let start = arena.address(at).as_ptr();
            // SAFETY: the extent has six spans, and belongs to this test.
            unsafe { start.write_bytes(value, 6 * SPAN) };
            // SAFETY: as above.
            assert_eq!(unsafe { start.add(5 * SPAN).read() }, value);
            arena.give_back(at, false, 0);
        }
    }
}
