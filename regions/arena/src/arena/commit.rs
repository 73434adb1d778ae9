//! Making usable what was cut out of free memory.

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
        self.spans.set_warm(spans_of(window));
        self.totals.warm = self.spans.warm() * SPAN;
        Ok((cold * SPAN).min(bytes))
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
