//! Provides the backing of the process's heap: near memory, far memory over a store, or near memory that becomes far.

use crate::limited::LimitedMemory;
use core::ptr::NonNull;
use largesse_arena::{Backing, NearMemory, Purged, Refusal, SpanKind};
use largesse_pages::MapError;
pub(crate) use largesse_paging::Far;

/// The source of the memory of the process's heap, chosen when the heap is made.
#[derive(Debug)]
pub(crate) enum HeapBacking {
    /// The heap uses memory of this machine that can never be far: of a pool, locked, or placed.
    Near(NearMemory),
    /// The heap uses memory of this machine, which becomes far memory when a limit comes near, if there is one.
    Limited(LimitedMemory),
    /// The heap uses far memory, of which a bounded part is resident and the rest is in a store.
    Far(Far),
}

impl HeapBacking {
    pub(crate) fn near(&self) -> Option<&NearMemory> {
        match self {
            HeapBacking::Near(near) => Some(near),
            HeapBacking::Limited(_) | HeapBacking::Far(_) => None,
        }
    }

    pub(crate) fn limited(&self) -> Option<&LimitedMemory> {
        match self {
            HeapBacking::Limited(limited) => Some(limited),
            HeapBacking::Near(_) | HeapBacking::Far(_) => None,
        }
    }

    pub(crate) fn far(&self) -> Option<&Far> {
        match self {
            HeapBacking::Near(_) => None,
            HeapBacking::Limited(limited) => limited.far(),
            HeapBacking::Far(far) => Some(far),
        }
    }

    fn backing(&self) -> &dyn Backing {
        match self {
            HeapBacking::Near(near) => near,
            HeapBacking::Limited(limited) => limited.backing(),
            HeapBacking::Far(far) => far,
        }
    }
}

// SAFETY: every method calls that of the backing that has the pages. Memory with a limit is not offered to the kernel,
// and keeps its contents.
unsafe impl Backing for HeapBacking {
    fn start(&self) -> NonNull<u8> {
        self.backing().start()
    }
    fn spans(&self) -> usize {
        self.backing().spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        self.backing().commit(first, spans)
    }
    fn unit(&self) -> usize {
        self.backing().unit()
    }
    fn prefer_large(&self, first: usize, spans: usize, large: bool) -> Option<SpanKind> {
        self.backing().prefer_large(first, spans, large)
    }
    unsafe fn offer(&self, first: usize, spans: usize) -> bool {
        match self {
            // The kernel could take a page of a new block at any time, and far memory would not know. Free memory is
            // returned before the limit is reached instead.
            HeapBacking::Limited(limited) if limited.keeps_free_memory() => true,
            // SAFETY: the caller's promise.
            _ => unsafe { self.backing().offer(first, spans) },
        }
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
        match self {
            HeapBacking::Limited(limited) => limited.refused(what),
            HeapBacking::Near(_) | HeapBacking::Far(_) => self.backing().refused(what),
        }
    }
    fn count_refusal(&self, what: Refusal) {
        self.backing().count_refusal(what);
    }
    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        self.backing().wanted(offset, len, wanted);
    }
}
