//! Change-over: makes memory that a program already uses far memory, in place.
//!
//! ```text
//!   the range is registered (`Linux::new`): no page becomes resident by itself, and faults wait
//!     ─► take_over: room in the store, resident pages are `Dirty` ─► the threads start: faults are served
//! ```
//! Contents are neither copied nor moved, and threads that use resident pages continue all the time. Large pages stay
//! large until some of their pages are evicted.

use crate::{FarMemory, FarRange, PagerError};
use core::ops::Range;
use largesse_pages::{PageKind, SPAN, base_page};
use largesse_policy::{Coldness, PageNumber};
use largesse_store::PageStore;

impl<S: PageStore> FarMemory<S> {
    /// Takes over spans of the heap's range that the program uses, and its mappings: pages with contents are resident,
    /// all others zero. The coldest spans by `coldness`, counted from the start of the heap's range, are evicted first.
    /// The caller lets no other thread hand out or drop memory of the heap or of mappings, and starts the pager's
    /// threads only then.
    pub fn take_over(
        &self,
        spans: impl Iterator<Item = Range<usize>>,
        coldness: &dyn Coldness,
    ) -> Result<(), PagerError> {
        let mappings = self.mappings();
        let start = mappings.start();
        let mapped = self.taken(&mappings, &(start..start + mappings.place.range.len()));
        let mut here = self.enter_parts(&mappings.place, mapped.into_iter())?;
        drop(mappings);
        here.extend(self.enter_spans(spans)?);
        self.adopt(here, coldness);
        Ok(())
    }

    /// Takes over spans of the heap's range alone, as [`take_over`](FarMemory::take_over).
    pub(crate) fn take_over_heap(
        &self,
        spans: impl Iterator<Item = Range<usize>>,
        coldness: &dyn Coldness,
    ) -> Result<(), PagerError> {
        let here = self.enter_spans(spans)?;
        self.adopt(here, coldness);
        Ok(())
    }

    /// Takes over a segment that is neither the heap's range nor that of mappings: its pages with contents are
    /// resident, all others zero. If the store has no room for it, the segment is near memory as before, for good. The
    /// caller starts the pager's threads only then.
    pub fn take_over_segment(&self, at: &Range<usize>) -> Result<(), PagerError> {
        let pager = self.pager();
        let Some(first) = pager.kernel().page_at(at.start) else { return Ok(()) };
        let pages = first..first + at.len() / base_page();
        if let Err(error) = self.enter(pages.clone()) {
            if !pager.kernel().make_near(at, PageKind::Small)? {
                return Err(error.into());
            }
            return pager.leave_out(pages);
        }
        let populated = pager.kernel().populated(at)?;
        let here = populated.iter().map(|it| {
            let first = pages.start + (it.start - at.start) / base_page();
            first..first + it.len() / base_page()
        });
        pager.adopt(here, |_| 0);
        self.mapped_more(first, at.len());
        Ok(())
    }

    fn adopt(&self, here: Vec<Range<PageNumber>>, coldness: &dyn Coldness) {
        let heap = self.heap.pages(0, self.heap.range.len());
        let age = |page: PageNumber| {
            // Mappings are not sampled.
            let span = heap.contains(&page).then(|| self.heap.bytes(page - self.heap.first) / SPAN);
            span.map_or(0, |span| coldness.age(span))
        };
        self.pager().adopt(here.into_iter(), age);
    }

    fn enter_spans(
        &self,
        spans: impl Iterator<Item = Range<usize>>,
    ) -> Result<Vec<Range<PageNumber>>, PagerError> {
        self.enter_parts(&self.heap, spans.map(|spans| spans.start * SPAN..spans.end * SPAN))
    }

    /// Hands out the pages of parts of a range, which are offsets in bytes. Returns those with contents.
    fn enter_parts(
        &self,
        place: &FarRange,
        parts: impl Iterator<Item = Range<usize>>,
    ) -> Result<Vec<Range<PageNumber>>, PagerError> {
        let (pager, start) = (self.pager(), place.range.start().as_ptr().addr());
        let mut here = Vec::new();
        for part in parts {
            self.enter(place.pages(part.start, part.len()))?;
            let populated = pager.kernel().populated(&(start + part.start..start + part.end))?;
            here.extend(populated.iter().map(|it| place.pages(it.start - start, it.len())));
            self.mapped_more(place.first, part.len());
        }
        Ok(here)
    }
}
