//! Transitions of pages that become resident, and of resident ones that become writable.

use super::PageTable;
use crate::page::PageState;
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::streams::Access;

impl PageTable {
    /// Makes missing pages `Filling`: from now on they take local memory, and threads that touch them wait.
    pub(crate) fn begin_fill(&mut self, pages: Range<PageNumber>, access: Access, prefetched: bool) {
        self.resident += pages.len();
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert!(page.state.is_missing(), "page {number} is filled: {page:?}");
            (page.state, page.prefetched, page.access) = (PageState::Filling, prefetched, access);
        }
    }

    /// Makes a `Filling` page `Dirty`, if the program may write to it at once, or `Clean`. Returns whether a thread
    /// waits for it and must be woken.
    pub(crate) fn end_fill(&mut self, number: PageNumber, dirty: bool) -> bool {
        let page = &mut self.entries[number];
        debug_assert_eq!(page.state, PageState::Filling, "page {number} was filled");
        page.state = if dirty { PageState::Dirty } else { PageState::Clean };
        self.take_waiting(number)
    }

    /// Makes `Clean` pages `Dirty`. The caller then lifts their write protection, before it releases the pager's lock.
    pub(crate) fn allow_writes(&mut self, pages: Range<PageNumber>) {
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Clean, "page {number} becomes writable");
            page.state = PageState::Dirty;
        }
    }

    /// Makes a `Zero` page `Dirty` that the program used before it became far memory.
    pub(crate) fn adopt(&mut self, number: PageNumber) {
        let page = &mut self.entries[number];
        debug_assert_eq!(page.state, PageState::Zero, "page {number} is adopted");
        page.state = PageState::Dirty;
        self.resident += 1;
    }
}
