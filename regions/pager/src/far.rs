//! Far memory as the backing of a heap.

use crate::far_range::FarRange;
use crate::kernel::Linux;
use crate::lock::{MAPPINGS, RankedMutex};
use crate::mappings::{MappedParts, Mappings};
use crate::pager::{LEAST_LOCAL, Pager};
use crate::{Count, Fatal};
use core::ops::Range;
use core::ptr::NonNull;
use largesse_arena::{Backing, FarBytes, Purged, Reads, SpanKind};
use largesse_pages::{MapError, MapOp, PageKind, SPAN, base_page};
use largesse_policy::PageNumber;
use largesse_store::{PageStore, StoreError};
use std::sync::{Arc, OnceLock};

/// Size of local memory: the upper bound of resident far pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// A number of bytes of far memory.
    Bytes(usize),
    /// A percentage of the bytes that the program may use at the moment.
    Percent(u8),
}

impl Local {
    /// Returns the size of local memory in pages at the start, while the program uses no far memory yet.
    #[must_use]
    pub fn first_pages(self) -> usize {
        match self {
            Local::Bytes(bytes) => bytes / base_page(),
            Local::Percent(_) => LEAST_LOCAL,
        }
    }
}

/// Two reserved ranges of far memory: one for a heap, one for mappings (`map.rs`).
#[derive(Debug)]
pub struct FarMemory<S> {
    pub(crate) heap: FarRange,
    pub(crate) mappings: RankedMutex<Mappings, MAPPINGS>,
    pager: Arc<Pager<Linux, S>>,
    local: Local,
    pub(crate) lost: Fatal,
    refused: OnceLock<StoreError>,
}

impl<S: PageStore> FarMemory<S> {
    /// Makes far memory of two ranges, which are segments of `pager`. The program has the parts `mapped` of the range
    /// of mappings already. Calls `lost`, which ends the program, if the store has lost the contents of pages.
    #[must_use]
    pub fn new(
        heap: FarRange,
        (mappings, mapped): (FarRange, MappedParts),
        pager: Arc<Pager<Linux, S>>,
        local: Local,
        lost: Fatal,
    ) -> FarMemory<S> {
        FarMemory {
            heap,
            mappings: RankedMutex::new(Mappings::new(mappings, mapped)),
            pager,
            local,
            lost,
            refused: OnceLock::new(),
        }
    }

    /// Hands out pages to the program, as [`Pager::enter`] does. Ends the program if the store is lost, since pages
    /// that it already has are lost, too.
    pub(crate) fn enter(&self, pages: Range<PageNumber>) -> Result<(), StoreError> {
        let entered = self.pager.enter(pages);
        match &entered {
            Ok(()) => {}
            Err(error @ StoreError::Lost(_)) => (self.lost)(&error.clone().into()),
            Err(error) => _ = self.refused.set(error.clone()),
        }
        entered
    }

    /// Returns the first error with which the store refused room; `None` if it never did.
    #[must_use]
    pub fn refused(&self) -> Option<&StoreError> {
        self.refused.get()
    }

    /// Adds to the number of bytes that the program may use in the segment that starts with page `first`.
    pub fn mapped_more(&self, first: PageNumber, bytes: usize) {
        self.pager.mapped_more(first, bytes);
        self.share();
    }

    /// Returns the pager.
    #[must_use]
    pub const fn pager(&self) -> &Arc<Pager<Linux, S>> {
        &self.pager
    }

    /// Subtracts from the number of bytes that the program may use in the segment that starts with page `first`.
    pub(crate) fn mapped_less(&self, first: PageNumber, bytes: usize) {
        self.pager.uncount(first, Count::MappedBytes, bytes as u64);
        self.share();
    }

    /// Sets the size of local memory, if it is a percentage, from the number of bytes that the program may use now.
    fn share(&self) {
        if let Local::Percent(percent) = self.local {
            let bytes = usize::try_from(self.pager.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
            self.pager.set_local(bytes / 100 * usize::from(percent) / base_page());
        }
    }
}

// SAFETY: a committed span is readable and writable. The pager fills each page with its last contents, and with zeros
// if it has none or they were dropped.
unsafe impl<S: PageStore> Backing for FarMemory<S> {
    fn start(&self) -> NonNull<u8> {
        self.heap.range.start()
    }

    fn spans(&self) -> usize {
        self.heap.range.len() / SPAN
    }

    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        let (offset, len) = (first * SPAN, spans * SPAN);
        self.enter(self.heap.pages(offset, len)).map_err(|_| MapError {
            op: MapOp::Commit,
            len,
            errno: libc::ENOMEM,
        })?;
        self.heap.range.commit(offset, len, PageKind::Small)?;
        self.mapped_more(self.heap.first, len);
        Ok(SpanKind::Small)
    }

    unsafe fn purge(&self, first: usize, spans: usize, _: SpanKind) -> Purged {
        match self.pager.drop_contents(self.heap.pages(first * SPAN, spans * SPAN)) {
            Ok(()) => {
                self.mapped_less(self.heap.first, spans * SPAN);
                Purged::Decommitted
            }
            Err(_) => Purged::Refused,
        }
    }

    // Moves are refused, so that the caller copies: the contents of far pages have a fixed home in the store. So is
    // `populate`: pages that are filled before their use would evict others.

    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        // Of bytes that are given back only whole pages are unwanted; of bytes that are taken every page is wanted.
        let page = base_page();
        let pages = if wanted {
            self.heap.first + offset / page..self.heap.first + (offset + len).div_ceil(page)
        } else {
            self.heap.pages(offset, len)
        };
        if !pages.is_empty() {
            self.pager.set_wanted(pages, wanted);
        }
    }

    fn far_bytes(&self) -> FarBytes {
        FarBytes { stored: self.heap_count(Count::StoredBytes), read: self.heap_count(Count::BytesIn) }
    }

    fn only_read(&self, which: Reads) {
        self.pager.only_read(which);
    }

    fn watch(&self, len: usize) {
        self.pager.watch(self.heap.pages(0, len));
    }

    fn unchanged(&self, len: usize, found: &mut dyn FnMut(Range<usize>)) {
        for run in self.pager.unchanged(self.heap.pages(0, len)) {
            let first = self.heap.bytes(run.start - self.heap.first);
            found(first..first + self.heap.bytes(run.len()));
        }
    }
}
