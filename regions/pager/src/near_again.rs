//! Far memory of a heap becomes near again, and far again.
//!
//! ```text
//!   recall: swapped-out pages are fetched back while the program runs (`recall.rs`)
//!     ─► make_near: no page is in flight ─► is any swapped out? ─► the range is unregistered ─► pages are forgotten
//!     ─► take_over_again: the range is registered ─► resident pages are `Dirty`, as in `change_over.rs`
//! ```
//! A page that is swapped out while its range is unregistered would read as zero from then on. So the check and the
//! step are made while the gate is closed: no thread fills or evicts, and threads that touch a missing page wait.

use crate::page::PageState;
use crate::state::PagerState;
use crate::{Count, FarMemory, PagerError};
use core::ops::Range;
use largesse_pages::{PageKind, SPAN};
use largesse_policy::{Coldness, PageNumber};
use largesse_store::PageStore;

impl PagerState {
    /// Forgets pages that are near again, and returns how many were resident. `all` are those of their segment.
    fn forget(&mut self, used: Range<PageNumber>, all: Range<PageNumber>) -> usize {
        self.queue.retain(&mut |run| !run.overlaps(&all));
        self.speculative.forget(&all);
        (self.near, self.recall) = (all, 0..0);
        self.pages.forget(used)
    }
}

impl<S: PageStore> FarMemory<S> {
    /// Returns a count of the heap's pages.
    #[must_use]
    pub fn heap_count(&self, count: Count) -> u64 {
        self.pager().words_of(self.heap.first).map_or(0, |words| words.counts.get(count))
    }

    /// Fetches swapped-out pages of the heap's first spans back in the background, as far as there is room. 0: no more.
    pub fn recall_heap(&self, spans: usize) {
        self.pager().recall(self.heap.pages(0, spans * SPAN));
    }

    /// Makes the heap's range near memory on pages of `kind`. Its contents are within the first `spans` spans. `false`:
    /// nothing changed, because a page is not resident, or the kernel refused. The caller lets no other thread hand out
    /// or drop memory of the heap.
    pub fn make_near(&self, spans: usize, kind: PageKind) -> bool {
        let pager = self.pager();
        let (used, all) = (self.heap.pages(0, spans * SPAN), self.heap.pages(0, self.heap.range.len()));
        // No thread discards pages as far ones that are near (`FarMemory::discard`).
        let _mappings = self.mappings();
        let _rest = pager.rest();
        let mut inner = pager.lock();
        let is_missing = |page: PageNumber| {
            inner.pages[page].state == PageState::SwappedOut || inner.pages[page].is_busy()
        };
        if used.clone().any(is_missing) || !self.unregister(kind) {
            return false;
        }
        let resident = inner.forget(used, all);
        let bytes = self.heap.bytes(resident);
        pager.uncount(self.heap.first, Count::ResidentBytes, bytes as u64);
        self.unmapped();
        pager.tell(&inner);
        drop(inner);
        pager.io_done.notify_all();
        true
    }

    /// Takes over spans of the heap's range again, as [`take_over`](FarMemory::take_over). Calls `populate` with the
    /// addresses of pinned pages, which must have contents then. After an error they are near as before.
    pub fn take_over_again(
        &self,
        spans: impl Iterator<Item = Range<usize>>,
        coldness: &dyn Coldness,
        populate: &dyn Fn(&Range<usize>),
    ) -> Result<(), PagerError> {
        let (pager, spans) = (self.pager(), spans.collect::<Vec<_>>());
        let used = spans.last().map_or(0, |last| last.end);
        let _mappings = self.mappings();
        // No fault is served before all pages are known.
        let _rest = pager.rest();
        // A thread that pins pages from now on asks for them, and waits.
        let (near, pinned) = {
            let mut inner = pager.lock();
            (core::mem::take(&mut inner.near), inner.pins.within(&self.heap.pages(0, self.heap.range.len())))
        };
        for pages in pinned {
            let start = pager.kernel().address(pages.start);
            populate(&(start..start + self.heap.bytes(pages.len())));
        }
        if let Err(error) = pager.kernel().make_far(&self.addresses()) {
            pager.lock().near = near;
            return Err(error.into());
        }
        self.take_over_heap(spans.into_iter(), coldness).inspect_err(|error| {
            let (used, all) = (self.heap.pages(0, used * SPAN), self.heap.pages(0, self.heap.range.len()));
            let mut inner = pager.lock();
            if !self.unregister(PageKind::Thp) {
                (self.lost)(error);
            }
            inner.forget(used.clone(), all);
            self.unmapped();
            drop(inner);
            self.discard_stored(used);
        })
    }

    /// Leaves the faults of the heap's range to the kernel. If that fails half way, the program ends.
    fn unregister(&self, kind: PageKind) -> bool {
        match self.pager().kernel().make_near(&self.addresses(), kind) {
            Ok(done) => done,
            Err(error) => (self.lost)(&error.into()),
        }
    }

    /// Frees the room in the store of the heap's first `spans` spans, which are near. The caller makes no change-over
    /// at the same time.
    pub fn forget_stored(&self, spans: usize) {
        self.discard_stored(self.heap.pages(0, spans * SPAN));
    }

    fn discard_stored(&self, pages: Range<PageNumber>) {
        let bytes = |pages: usize| self.heap.bytes(pages) as u64;
        self.pager().store.discard(bytes(pages.start), bytes(pages.len()));
    }

    fn unmapped(&self) {
        let mapped = self.heap_count(Count::MappedBytes);
        self.pager().uncount(self.heap.first, Count::MappedBytes, mapped);
    }

    fn addresses(&self) -> Range<usize> {
        let start = self.heap.range.start().as_ptr().addr();
        start..start + self.heap.range.len()
    }
}
