//! Making usable what was cut out of free memory.
//!
//! A large page takes 2 MiB for one byte that is written. So a block gets large pages only where the arena
//! stays below its limit even if every span that was handed out is touched; a block that does not fit is
//! used sparsely, or the program exceeds the limit in any case.

use super::{Arena, Granules, spans_of};
use crate::span::Spans;
use crate::{Backing, GRANULE, SpanKind};
use core::ops::Range;
use largesse_pages::{MapError, SPAN};

impl<B: Backing> Arena<B> {
    /// Account for a window that was just cut out of free memory and make it usable; returns how
    /// many bytes of it are cold. It is no longer free, so that keeping the bound cannot purge it.
    pub(super) fn make_usable(&mut self, window: &Range<Granules>) -> Result<usize, MapError> {
        let bytes = window.len() * GRANULE;
        let cold = self.spans.cold_in(spans_of(window));
        self.commit(spans_of(window))?;
        self.totals.live += bytes;
        self.totals.peak = self.totals.peak.max(self.totals.live);
        self.make_room(cold);
        self.choose_pages(spans_of(window), cold);
        self.spans.set_warm(spans_of(window));
        self.totals.warm = self.spans.warm() * SPAN;
        Ok((cold * SPAN).min(bytes))
    }

    /// Decides on which pages the cold spans of a window that was made usable are: small ones where all of
    /// the arena's warm memory together with `cold` spans would exceed its limit.
    fn choose_pages(&mut self, window: Range<usize>, cold: usize) {
        let large = (self.spans.warm() + cold).saturating_mul(SPAN) <= self.limit;
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
            }
            at = end + 1;
        }
    }

    /// Make the spans usable that are not.
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
                // Whole units as far as the window reaches.
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
    fn block_beyond_the_limit_gets_small_pages() {
        let mut arena = arena(10);
        assert_eq!(take(&mut arena, 6).1, SpanKind::Thp);
        let (second, kind) = take(&mut arena, 6);
        assert_eq!((kind, arena.backing.refused(Refusal::NearLimit)), (SpanKind::Small, 1));
        arena.give_back(second, false, 0);
        assert_eq!(
            take(&mut arena, 6),
            (second, SpanKind::Small),
            "small pages that are in memory stay small"
        );
        arena.set_limit(SPANS * SPAN);
        arena.give_back(second, false, 0);
        arena.trim(0);
        assert_eq!(take(&mut arena, 6).1, SpanKind::Thp, "there is room again");
    }

    #[test]
    fn free_memory_makes_room_below_the_limit() {
        let mut arena = arena(10);
        let (first, _) = take(&mut arena, 6);
        let (wall, _) = take(&mut arena, 1);
        arena.give_back(first, false, 0);
        assert_eq!(take(&mut arena, 9).1, SpanKind::Thp);
        assert_eq!(arena.totals().warm / SPAN, 10, "the freed spans were given back");
        arena.give_back(wall, false, 0);
    }

    #[test]
    fn nothing_is_touched_ahead_beyond_the_limit() {
        let mut arena = arena(10);
        take(&mut arena, 7);
        assert_eq!(arena.cold_ahead(8).map(|(_, spans)| spans), Some(3));
        arena.set_limit(7 * SPAN);
        assert_eq!(arena.cold_ahead(8), None);
    }

    #[test]
    fn freed_block_is_usable_after_it_was_offered() {
        let mut arena = arena(10);
        assert!(!arena.is_near_limit());
        for value in 1..4 {
            let (at, _) = take(&mut arena, 6);
            assert!(arena.is_near_limit());
            let start = arena.address(at).as_ptr();
            // SAFETY: the extent has six spans, and is this test's.
            unsafe { start.write_bytes(value, 6 * SPAN) };
            // SAFETY: as above.
            assert_eq!(unsafe { start.add(5 * SPAN).read() }, value);
            arena.give_back(at, false, 0);
        }
    }
}
