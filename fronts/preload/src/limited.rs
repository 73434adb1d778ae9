//! Provides memory of this machine that becomes far memory in place, once, when a limit comes near.

use crate::rlimit::soft_limit;
use core::ptr::NonNull;
use largesse_arena::{Backing, NearMemory, Purged, Refusal, SpanKind};
use largesse_pages::{MapError, PageKind, Placement, Reserved, SPAN};
use largesse_paging::Far;
use std::sync::OnceLock;

/// Near memory until [`become_far`](LimitedMemory::become_far), and far memory of the same range from then on.
#[derive(Debug)]
pub(crate) struct LimitedMemory {
    range: &'static Reserved,
    near: NearMemory,
    far: OnceLock<Far>,
}

impl LimitedMemory {
    pub(crate) fn new(range: &'static Reserved, kind: PageKind) -> LimitedMemory {
        let near = NearMemory::new(range.shared(), kind, Placement::FirstTouch, false);
        LimitedMemory { range, near, far: OnceLock::new() }
    }

    /// Returns the range, for the far memory that will own its pages.
    pub(crate) fn range(&self) -> Reserved {
        self.range.shared()
    }

    /// Reserves a range for the mappings that the program makes once there is far memory.
    pub(crate) fn range_for_mappings(&self) -> Option<Reserved> {
        let most = (soft_limit(libc::RLIMIT_AS) / 4).min(soft_limit(libc::RLIMIT_DATA)) / SPAN * SPAN;
        Reserved::new(self.range.len().min(most), SPAN).ok()
    }

    /// Returns far memory, once the memory is far.
    pub(crate) fn far(&self) -> Option<&Far> {
        self.far.get()
    }

    /// Serves the range by `far` from now on, which has taken over its contents. The caller holds the heap's lock.
    pub(crate) fn become_far(&self, far: Far) {
        let _ = self.far.set(far);
    }

    fn backing(&self) -> &dyn Backing {
        match self.far.get() {
            None => &self.near,
            Some(far) => far,
        }
    }
}

// SAFETY: every method calls that of the backing that has the pages, and the contents of spans are the same in both
// when the second takes over. Near memory that is offered keeps its contents.
unsafe impl Backing for LimitedMemory {
    fn start(&self) -> NonNull<u8> {
        self.near.start()
    }
    fn spans(&self) -> usize {
        self.near.spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        self.backing().commit(first, spans)
    }
    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        self.backing().prefer_large(first, spans, large)
    }
    /// Offers nothing to the kernel: it could take a page of a new block at any time, and far memory would not know.
    /// Free memory is returned before the limit is reached instead.
    unsafe fn offer(&self, _: usize, _: usize) -> bool {
        true
    }
    unsafe fn purge(&self, first: usize, spans: usize, kind: SpanKind) -> Purged {
        // SAFETY: the caller's promise.
        unsafe { self.backing().purge(first, spans, kind) }
    }
    unsafe fn relocate(&self, from: usize, to: usize, spans: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.backing().relocate(from, to, spans) }
    }
    fn populate(&self, first: usize, spans: usize) -> bool {
        self.backing().populate(first, spans)
    }
    fn any_resident(&self, span: usize) -> bool {
        self.backing().any_resident(span)
    }
    fn refused(&self, what: Refusal) -> u64 {
        self.near.refused(what)
    }
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        self.backing().wanted(offset, len, wanted);
    }
}
