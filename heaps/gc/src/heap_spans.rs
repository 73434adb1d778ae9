//! The heap's memory, span by span: what is usable, what is in use, what is still zero.

use crate::blocks::{BLOCK, BlockNumber, PER_SPAN};
use core::ops::Range;
use largesse_arena::{Backing, Purged, SpanKind};
use largesse_pages::{MapError, SPAN};

const _: () = assert!(PER_SPAN == u64::BITS as usize);

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    kind: SpanKind,
    /// There may be memory behind it.
    warm: bool,
    /// Blocks that are handed out.
    used: u64,
    /// Blocks that may hold anything but zero.
    dirty: u64,
}

/// Spans over a backing.
pub(crate) struct Ground {
    backing: Box<dyn Backing + Send>,
    spans: Vec<Span>,
    warm: usize,
    /// Spans from here on were never made usable.
    top: usize,
}

impl core::fmt::Debug for Ground {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ground").field("spans", &self.spans.len()).field("warm", &self.warm).finish()
    }
}

impl Ground {
    pub(crate) fn new(backing: Box<dyn Backing + Send>) -> Ground {
        let spans = vec![Span::default(); backing.spans()];
        Ground { backing, spans, warm: 0, top: 0 }
    }

    /// First address.
    pub(crate) fn start(&self) -> usize {
        self.backing.start().as_ptr().expose_provenance()
    }

    /// Blocks in the range.
    pub(crate) fn blocks(&self) -> usize {
        self.spans.len() * PER_SPAN
    }

    /// Bytes in spans that may have memory behind them.
    pub(crate) fn warm_bytes(&self) -> usize {
        self.warm * SPAN
    }

    /// Make a run of blocks usable; says whether all of it reads as zero.
    pub(crate) fn take(&mut self, at: BlockNumber, blocks: u32) -> Result<bool, MapError> {
        let run = at as usize..at as usize + blocks as usize;
        self.commit(run.start / PER_SPAN..run.end.div_ceil(PER_SPAN))?;
        let mut clean = true;
        for (span, mask) in masks(run) {
            let span = &mut self.spans[span];
            clean &= span.dirty & mask == 0;
            span.used |= mask;
            span.dirty |= mask;
            self.warm += usize::from(!span.warm);
            span.warm = true;
        }
        self.backing.wanted(at as usize * BLOCK, blocks as usize * BLOCK, true);
        Ok(clean)
    }

    /// A run of blocks is free: nobody wants what it holds.
    pub(crate) fn give_back(&mut self, at: BlockNumber, blocks: u32) {
        let run = at as usize..at as usize + blocks as usize;
        for (span, mask) in masks(run) {
            self.spans[span].used &= !mask;
        }
        self.backing.wanted(at as usize * BLOCK, blocks as usize * BLOCK, false);
    }

    /// Give spans without a used block back to the backing, highest first, until at most `keep` bytes are warm.
    /// Returns the bytes given back.
    pub(crate) fn purge(&mut self, keep: usize) -> usize {
        let before = self.warm;
        let unit = self.backing.unit();
        let mut end = self.top;
        while self.warm * SPAN > keep && end > 0 {
            let first = (end - 1) / unit * unit;
            let unused = |span: &Span| span.warm && span.used == 0 && span.kind == self.spans[first].kind;
            if self.spans[first..end].iter().all(unused) {
                // SAFETY: no block of these spans is handed out.
                let purged = unsafe { self.backing.purge(first, end - first, self.spans[first].kind) };
                if purged == Purged::Refused {
                    break;
                }
                for span in &mut self.spans[first..end] {
                    let kind = if purged == Purged::Kept { span.kind } else { SpanKind::Reserved };
                    *span = Span { kind, ..Span::default() };
                }
                self.warm -= end - first;
            }
            end = first;
        }
        (before - self.warm) * SPAN
    }

    /// Make the spans usable that are not, in whole units.
    fn commit(&mut self, spans: Range<usize>) -> Result<(), MapError> {
        let unit = self.backing.unit();
        let mut at = spans.start / unit * unit;
        while at < spans.end {
            if self.spans[at].kind != SpanKind::Reserved {
                at += unit;
                continue;
            }
            let reserved = |&first: &usize| {
                first < spans.end.next_multiple_of(unit)
                    && self.spans.get(first).is_some_and(Span::is_reserved)
            };
            let last = (at..).step_by(unit).take_while(reserved).last().unwrap_or(at);
            let end = (last + unit).min(self.spans.len());
            let kind = self.backing.commit(at, end - at)?;
            for span in &mut self.spans[at..end] {
                // Pages of a pool are taken at once.
                self.warm += usize::from(kind.from_pool());
                *span = Span { kind, warm: kind.from_pool(), ..Span::default() };
            }
            self.top = self.top.max(end);
            at = end;
        }
        Ok(())
    }
}

impl Span {
    fn is_reserved(&self) -> bool {
        self.kind == SpanKind::Reserved
    }
}

/// Cut a run of blocks into spans, each with the mask of its blocks.
fn masks(run: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    (run.start / PER_SPAN..run.end.div_ceil(PER_SPAN)).map(move |span| {
        let from = run.start.saturating_sub(span * PER_SPAN);
        let to = (run.end - span * PER_SPAN).min(PER_SPAN);
        (span, u64::MAX >> (PER_SPAN - (to - from)) << from)
    })
}
