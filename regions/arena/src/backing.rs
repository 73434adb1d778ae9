//! What an arena stands on: near memory here, far memory in the pager.

use crate::{Refusal, SpanKind};
use core::ptr::NonNull;
use largesse_pages::MapError;

/// What became of purged spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// Still usable, reads as zero.
    Kept,
    /// Only reserved now; needs [`Backing::commit`] again.
    Decommitted,
    /// Nothing happened: the contents are still there.
    Refused,
}

/// A range of spans that gets memory on demand. Span numbers count from the start of the range.
///
/// # Safety
/// After `commit` returned `Ok`, every byte of the spans can be read and written until they are
/// decommitted, and reads as zero if it was not usable before or was purged since.
pub unsafe trait Backing {
    /// First address, a multiple of the span size.
    fn start(&self) -> NonNull<u8>;

    /// Number of spans in the range.
    fn spans(&self) -> usize;

    /// Make spans usable; says on which kind of page. May be asked for one unit only (see `unit`).
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError>;

    /// Spans that are committed together, aligned to their number (512 for 1 GiB pages, else 1).
    fn unit(&self) -> usize {
        1
    }

    /// Decides whether usable spans that hold nothing yet get large pages at first touch, where the backing
    /// has a choice; returns their kind then, and `None` when nothing changed.
    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        let _ = (first, spans, large);
        None
    }

    /// Lets the kernel take the memory of usable spans when it is short; a span reads as before or as zero
    /// until it is written to. `false`: the memory stays taken.
    ///
    /// # Safety
    /// Nobody uses what they hold.
    unsafe fn offer(&self, first: usize, spans: usize) -> bool {
        let _ = (first, spans);
        true
    }

    /// Give back the memory of usable spans.
    ///
    /// # Safety
    /// Nobody uses what they hold.
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged;

    /// Move contents from some spans to others without copying; the source reads as zero then.
    /// `false`: nothing happened.
    ///
    /// # Safety
    /// Both are usable and distinct; nobody uses what the target holds.
    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool;

    /// Touch usable spans now. `false`: not possible.
    fn populate(&self, first: usize, spans: usize) -> bool;

    /// Whether anything of a usable span is in memory.
    fn any_resident(&self, span: usize) -> bool;

    /// How often a request was served with less than it asked for.
    fn refused(&self, what: Refusal) -> u64 {
        let _ = what;
        0
    }

    /// What `len` bytes at `offset` hold does not matter any more, or does from now on. A backing may
    /// lose what nobody wants: it reads as zero or as before then.
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        let _ = (offset, len, wanted);
    }
}

// SAFETY: every method is the borrowed backing's own.
unsafe impl<B: Backing> Backing for &B {
    fn start(&self) -> NonNull<u8> {
        (**self).start()
    }
    fn spans(&self) -> usize {
        (**self).spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        (**self).commit(first, spans)
    }
    fn unit(&self) -> usize {
        (**self).unit()
    }
    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        (**self).prefer_large(first, spans, large)
    }
    unsafe fn offer(&self, first: usize, spans: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { (**self).offer(first, spans) }
    }
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged {
        // SAFETY: the caller's promise, handed on.
        unsafe { (**self).purge(first, spans, kind) }
    }
    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool {
        // SAFETY: the caller's promise, handed on.
        unsafe { (**self).relocate(from, to, spans) }
    }
    fn populate(&self, first: usize, spans: usize) -> bool {
        (**self).populate(first, spans)
    }
    fn any_resident(&self, span: usize) -> bool {
        (**self).any_resident(span)
    }
    fn refused(&self, what: Refusal) -> u64 {
        (**self).refused(what)
    }
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        (**self).wanted(offset, len, wanted);
    }
}
