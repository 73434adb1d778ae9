//! Far memory as a heap's ground.

use crate::far_range::FarRange;
use crate::kernel::Linux;
use crate::lock::{MAPPINGS, RankedMutex};
use crate::mappings::Mappings;
use crate::pager::{LEAST_LOCAL, Pager};
use crate::{Count, Fatal};
use core::ops::Range;
use core::ptr::NonNull;
use largesse_arena::{Backing, Purged, SpanKind};
use largesse_pages::{MapError, MapOp, PageKind, SPAN, base_page};
use largesse_policy::PageNumber;
use largesse_store::{PageStore, StoreError};
use std::sync::{Arc, OnceLock};

/// How much of far memory may be here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// So many bytes.
    Bytes(usize),
    /// Of 100 bytes that are far at the moment, so many.
    Percent(u8),
}

impl Local {
    /// How many pages that is before anything is far.
    #[must_use]
    pub fn first_pages(self) -> usize {
        match self {
            Local::Bytes(bytes) => bytes / base_page(),
            Local::Percent(_) => LEAST_LOCAL,
        }
    }
}

/// Reserved ranges whose pages come and go: one for a heap, one for mappings (`mappings.rs`).
#[derive(Debug)]
pub struct FarMemory<S> {
    heap: FarRange,
    pub(crate) mappings: RankedMutex<Mappings, MAPPINGS>,
    pager: Arc<Pager<Linux, S>>,
    local: Local,
    lost: Fatal,
    refused: OnceLock<StoreError>,
}

impl<S: PageStore> FarMemory<S> {
    /// The pages of two ranges, which `pager` knows; `lost` is called when the store turns out to be.
    #[must_use]
    pub const fn new(
        heap: FarRange,
        mappings: FarRange,
        pager: Arc<Pager<Linux, S>>,
        local: Local,
        lost: Fatal,
    ) -> FarMemory<S> {
        FarMemory {
            heap,
            mappings: RankedMutex::new(Mappings::new(mappings)),
            pager,
            local,
            lost,
            refused: OnceLock::new(),
        }
    }

    /// As [`Pager::enter`]. A store that has no room refuses; one that is lost has taken with it what the program
    /// has already, and refusing more would only hide that.
    pub(crate) fn enter(&self, pages: Range<PageNumber>) -> Result<(), StoreError> {
        let entered = self.pager.enter(pages);
        match &entered {
            Ok(()) => {}
            Err(error @ StoreError::Lost(_)) => (self.lost)(&error.clone().into()),
            Err(error) => _ = self.refused.set(error.clone()),
        }
        entered
    }

    /// Why the store refused room for the first time; `None` when it never did.
    #[must_use]
    pub fn refused(&self) -> Option<&StoreError> {
        self.refused.get()
    }

    /// The segment that starts with page `first` may hold so many bytes more.
    pub fn mapped_more(&self, first: PageNumber, bytes: usize) {
        self.pager.mapped_more(first, bytes);
        self.share();
    }

    /// The pager.
    #[must_use]
    pub const fn pager(&self) -> &Arc<Pager<Linux, S>> {
        &self.pager
    }

    pub(crate) fn mapped_less(&self, first: PageNumber, bytes: usize) {
        self.pager.uncount(first, Count::MappedBytes, bytes as u64);
        self.share();
    }

    /// A share of what may be anywhere is here.
    fn share(&self) {
        if let Local::Percent(percent) = self.local {
            let bytes = usize::try_from(self.pager.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
            self.pager.set_local(bytes / 100 * usize::from(percent) / base_page());
        }
    }
}

// SAFETY: a committed span is readable and writable; the pager brings each page as it was last left,
// and as zeros when it never was or was dropped since.
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

    /// Contents of far pages have a place of their own in the store: they are copied.
    unsafe fn relocate(&self, _: usize, _: usize, _: usize) -> bool {
        false
    }

    /// Whoever asks to have pages here early would push out others.
    fn populate(&self, _: usize, _: usize) -> bool {
        false
    }

    fn any_resident(&self, _: usize) -> bool {
        true
    }

    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        // A page that is not wholly given back still belongs to somebody; taken ones all count.
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
}
