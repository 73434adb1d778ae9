//! Change-over: makes memory that a program already uses far memory, in place.
//!
//! ```text
//!   the range is registered (`Linux::new`): no page becomes resident by itself, and faults wait
//!     ─► take_over: room in the store, resident pages are `Dirty` ─► the threads start: faults are served
//! ```
//! Contents are neither copied nor moved, and threads that use resident pages continue all the time. Large pages stay
//! large until some of their pages are evicted.

use crate::{FarMemory, PagerError};
use core::ops::Range;
use largesse_pages::SPAN;
use largesse_policy::Coldness;
use largesse_store::PageStore;

impl<S: PageStore> FarMemory<S> {
    /// Takes over spans of the heap's range that the program uses: pages with contents are resident, all others zero.
    /// The coldest spans by `coldness`, counted from the start of the range, are evicted first. The caller lets no other thread hand out or drop memory of the heap, and starts the pager's threads only then.
    pub fn take_over(
        &self,
        spans: impl Iterator<Item = Range<usize>>,
        coldness: &dyn Coldness,
    ) -> Result<(), PagerError> {
        let (pager, start) = (self.pager(), self.heap.range.start().as_ptr().addr());
        let mut here = Vec::new();
        for spans in spans {
            let (offset, len) = (spans.start * SPAN, spans.len() * SPAN);
            self.enter(self.heap.pages(offset, len))?;
            let parts = pager.kernel().populated(&(start + offset..start + offset + len))?;
            here.extend(parts.iter().map(|part| self.heap.pages(part.start - start, part.len())));
            self.mapped_more(self.heap.first, len);
        }
        let age = |page| coldness.age(self.heap.bytes(page - self.heap.first) / SPAN);
        pager.adopt(here.into_iter(), age);
        Ok(())
    }
}
