//! The copies of pages whose writes are in flight, from which touched pages are filled again (`refill.rs`).

use core::ops::Range;
use largesse_policy::PageNumber;

/// The copies of pages from which writes in flight are made, one for each write.
#[derive(Debug, Default)]
pub(crate) struct WriteCopies(Vec<WriteCopy>);

/// The copy of the pages of one write, in the memory of the queue of writes.
#[derive(Debug)]
pub(crate) struct WriteCopy {
    pub(crate) pages: Range<PageNumber>,
    /// The first byte of the copy. Only the evicting thread changes the bytes, and only after it has removed this
    /// entry.
    pub(crate) bytes: *const u8,
    /// Number of threads that read the copy now.
    pub(crate) readers: usize,
    /// Value of the eviction clock when the write began.
    pub(crate) clock: u32,
}

// SAFETY: the bytes may be read by any thread, by the rule at `bytes`.
unsafe impl Send for WriteCopies {}

impl WriteCopies {
    /// Adds the copy of pages whose write begins; `clock` is the eviction clock now.
    pub(crate) fn add(&mut self, pages: Range<PageNumber>, bytes: *const u8, clock: u32) {
        self.0.push(WriteCopy { pages, bytes, readers: 0, clock });
    }

    /// Returns the copy that contains a page, if any.
    pub(crate) fn get_mut(&mut self, page: PageNumber) -> Option<&mut WriteCopy> {
        self.0.iter_mut().find(|copy| copy.pages.contains(&page))
    }

    /// Returns whether there is a copy that contains a page.
    pub(crate) fn contains(&self, page: PageNumber) -> bool {
        self.0.iter().any(|copy| copy.pages.contains(&page))
    }

    /// Removes the copy of a write that has ended, whose first page is `first`. Returns `false`, and keeps it, if
    /// threads still read it.
    pub(crate) fn remove(&mut self, first: PageNumber) -> bool {
        let is_read = self.get_mut(first).is_some_and(|copy| copy.readers > 0);
        if !is_read {
            self.0.retain(|copy| copy.pages.start != first);
        }
        !is_read
    }
}
