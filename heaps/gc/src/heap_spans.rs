//! Tracks the spans of the heap: which are committed, in use, or still zero.

use crate::blocks::{BLOCK, BlockNumber, PER_SPAN};
use core::ops::Range;
use largesse_arena::{Backing, FarBytes, Purged, Reads, SpanKind};
use largesse_pages::{MapError, SPAN};

const _: () = assert!(PER_SPAN == u64::BITS as usize);

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    kind: SpanKind,
    /// Whether the span may have physical memory.
    warm: bool,
    /// Bit mask of the blocks in use.
    used: u64,
    /// Bit mask of the blocks that may contain nonzero data.
    dirty: u64,
}

/// The backing of a heap, with the state of each of its spans.
pub(crate) struct HeapSpans {
    backing: Box<dyn Backing + Send>,
    spans: Vec<Span>,
    warm: usize,
    /// Index of the first span above all that were ever committed.
    top: usize,
}

impl core::fmt::Debug for HeapSpans {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HeapSpans").field("spans", &self.spans.len()).field("warm", &self.warm).finish()
    }
}

impl HeapSpans {
    pub(crate) fn new(backing: Box<dyn Backing + Send>) -> HeapSpans {
        let spans = vec![Span::default(); backing.spans()];
        HeapSpans { backing, spans, warm: 0, top: 0 }
    }

    /// Returns the first address of the heap's range.
    pub(crate) fn start(&self) -> usize {
        self.backing.start().as_ptr().expose_provenance()
    }

    /// Returns the number of blocks in the heap's range.
    pub(crate) fn blocks(&self) -> usize {
        self.spans.len() * PER_SPAN
    }

    /// Returns the size in bytes of the spans that may have physical memory.
    pub(crate) fn warm_bytes(&self) -> usize {
        self.warm * SPAN
    }

    /// Commits a run of blocks and marks it used; returns whether all of it reads as zero.
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

    /// Marks a run of blocks free: its contents are no longer needed.
    pub(crate) fn give_back(&mut self, at: BlockNumber, blocks: u32) {
        let run = at as usize..at as usize + blocks as usize;
        for (span, mask) in masks(run) {
            self.spans[span].used &= !mask;
        }
        self.backing.wanted(at as usize * BLOCK, blocks as usize * BLOCK, false);
    }

    /// Releases the memory of spans without a used block to the backing, highest addresses first, until spans with
    /// memory (*warm* spans) have at most `keep` bytes in total. Returns the number of bytes released.
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

    /// Returns how much of the contents is in the backing's store.
    pub(crate) fn far_bytes(&self) -> FarBytes {
        self.backing.far_bytes()
    }

    /// Tells the backing that the contents are only read until the next [`watch`](HeapSpans::watch), and which of them.
    pub(crate) fn only_read(&self, which: Reads) {
        self.backing.only_read(which);
    }

    /// Begins to watch all spans for changes, while no thread writes to them.
    pub(crate) fn watch(&self) {
        self.backing.watch(self.top * SPAN);
    }

    /// Calls `found` with runs of bytes, as offsets from the start of the heap, that are not resident and have not changed
    /// since the last [`watch`](HeapSpans::watch).
    pub(crate) fn unchanged(&self, found: &mut dyn FnMut(Range<usize>)) {
        self.backing.unchanged(self.top * SPAN, found);
    }

    /// Commits the reserved spans among `spans`, in whole units of the backing.
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
                // A huge page pool gives its pages at the commit.
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

/// Splits a run of blocks at span boundaries. Returns for each span its index and a bit mask of the run's blocks in
/// it.
fn masks(run: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    (run.start / PER_SPAN..run.end.div_ceil(PER_SPAN)).map(move |span| {
        let from = run.start.saturating_sub(span * PER_SPAN);
        let to = (run.end - span * PER_SPAN).min(PER_SPAN);
        (span, u64::MAX >> (PER_SPAN - (to - from)) << from)
    })
}
