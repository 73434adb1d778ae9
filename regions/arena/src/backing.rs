//! Defines the interface between an arena and its memory: near memory in this crate, far memory in the pager.

use crate::{Refusal, SpanKind};
use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::MapError;

/// Tells what purging did to spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// The spans are still committed, and read as zero.
    Kept,
    /// The spans are only reserved now, and need [`Backing::commit`] again.
    Decommitted,
    /// The backing refused, and the contents are unchanged.
    Refused,
}

/// Sizes of a backing's contents that are in a store. Near memory has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarBytes {
    /// Number of bytes that are in the store and not resident.
    pub stored: u64,
    /// Number of bytes that were read from the store since the start.
    pub read: u64,
}

/// Which contents a program reads while it hardly writes any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Any of them.
    All,
    /// Those that have changed since the last [`watch`](Backing::watch). Others may be read, and take longer.
    Changed,
}

/// Provides a range of spans that gets memory on demand. Span numbers count from the start of the range.
///
/// # Safety
/// After `commit` returned `Ok`, every byte of the spans can be read and written until they are decommitted, and reads
/// as zero if it was not committed before or was purged since.
pub unsafe trait Backing {
    /// Returns the first address, a multiple of the span size.
    fn start(&self) -> NonNull<u8>;

    /// Returns the number of spans in the range.
    fn spans(&self) -> usize;

    /// Commits spans and returns the kind of their pages. They are whole [units](Backing::unit), or part of one unit.
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError>;

    /// Returns the number of spans that are committed together, aligned to that number (512 for 1 GiB pages, else 1).
    fn unit(&self) -> usize {
        1
    }

    /// Sets whether committed spans without contents get large pages at first touch, if the backing has a choice.
    /// Returns their new kind; `None` if nothing changed.
    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        let _ = (first, spans, large);
        None
    }

    /// Lets the kernel take the memory of committed spans when memory is short. Until a span is written to, it reads as
    /// before or as zero. Returns `false` if the backing cannot do this.
    ///
    /// # Safety
    /// Nothing uses the contents of the spans.
    unsafe fn offer(&self, first: usize, spans: usize) -> bool {
        let _ = (first, spans);
        true
    }

    /// Frees the memory of committed spans.
    ///
    /// # Safety
    /// Nothing uses the contents of the spans.
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged;

    /// Moves contents between spans without copying; the source reads as zero afterwards. Returns `false` if nothing
    /// was moved.
    ///
    /// # Safety
    /// Both ranges are committed and do not overlap, and nothing uses the target's contents.
    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool {
        let _ = (from, to, spans);
        false
    }

    /// Populates committed spans with pages. Returns `false` if the backing cannot do this.
    fn populate(&self, first: usize, spans: usize) -> bool {
        let _ = (first, spans);
        false
    }

    /// Returns whether any page of a committed span is resident, or may be.
    fn any_resident(&self, span: usize) -> bool {
        let _ = span;
        true
    }

    /// Returns the number of requests of which less was granted than they asked for, for one kind of refusal.
    fn refused(&self, what: Refusal) -> u64 {
        let _ = what;
        0
    }

    /// Counts a request of which the arena grants less than it asked for.
    fn count_refusal(&self, what: Refusal) {
        let _ = what;
    }

    /// Sets whether the contents of the `len` bytes at `offset` matter from now on. A backing may discard unwanted
    /// contents, which then read as zero or as before.
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        let _ = (offset, len, wanted);
    }

    /// Returns how much of the contents is in a store.
    fn far_bytes(&self) -> FarBytes {
        FarBytes::default()
    }

    /// Tells that the contents are only read until the next [`watch`](Backing::watch), and which of them. A write is
    /// permitted, and may take longer.
    fn only_read(&self, which: Reads) {
        let _ = which;
    }

    /// Begins to watch the first `len` bytes: [`unchanged`](Backing::unchanged) compares with their contents at the
    /// last call of this. No thread writes to them during the call.
    fn watch(&self, len: usize) {
        let _ = len;
    }

    /// Calls `found` with runs of the first `len` bytes, as offsets, that are not resident and have the contents that
    /// they had at the last [`watch`](Backing::watch). Bytes for which that is unknown are left out, as are all of near
    /// memory and all before the first `watch`.
    fn unchanged(&self, len: usize, found: &mut dyn FnMut(Range<usize>)) {
        let _ = (len, found);
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
    fn count_refusal(&self, what: Refusal) {
        (**self).count_refusal(what);
    }
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        (**self).wanted(offset, len, wanted);
    }
    fn far_bytes(&self) -> FarBytes {
        (**self).far_bytes()
    }
    fn only_read(&self, which: Reads) {
        (**self).only_read(which);
    }
    fn watch(&self, len: usize) {
        (**self).watch(len);
    }
    fn unchanged(&self, len: usize, found: &mut dyn FnMut(Range<usize>)) {
        (**self).unchanged(len, found);
    }
}
