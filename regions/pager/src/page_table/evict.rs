//! Transitions of pages that leave local memory.

use super::PageTable;
use crate::page::PageState;
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;

impl PageTable {
    /// Makes resident pages `Leaving`, which `part` of the replacement queue named. Threads that touch them wait.
    pub(crate) fn begin_evict(&mut self, pages: Range<PageNumber>, part: Protection) {
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            let resident = matches!(page.state, PageState::Clean | PageState::Dirty);
            debug_assert!(resident, "page {number} is evicted: {page:?}");
            page.state = PageState::Leaving;
            page.from_protected = part == Protection::Protected;
        }
    }

    /// Makes `Leaving` pages `SwappedOut` if the store holds their contents, otherwise `Zero`; `clock` is the eviction
    /// clock. Returns the number of pages that the store holds.
    pub(crate) fn end_evict(&mut self, pages: Range<PageNumber>, clock: u32) -> usize {
        let mut stored = 0;
        self.resident -= pages.len();
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Leaving, "page {number} was evicted");
            let holds = page.stored && !page.unwanted;
            page.state = if holds { PageState::SwappedOut } else { PageState::Zero };
            page.evicted_at = clock;
            stored += usize::from(holds);
        }
        stored
    }

    /// Makes `Leaving` pages resident again, in the given `state`: they could not be evicted.
    pub(crate) fn cancel_evict(&mut self, pages: Range<PageNumber>, state: PageState) {
        debug_assert!(matches!(state, PageState::Clean | PageState::Dirty), "{state:?} after an eviction");
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Leaving, "page {number} stays");
            page.state = state;
        }
    }

    /// Makes a page `Leaving` whose contents are dropped, and returns its state before. `Outside` pages stay as they
    /// are.
    pub(crate) fn begin_drop(&mut self, number: PageNumber) -> PageState {
        let page = &mut self.entries[number];
        let before = page.state;
        debug_assert!(!before.in_flight(), "page {number} is dropped: {page:?}");
        if before != PageState::Outside {
            page.state = PageState::Leaving;
            self.resident -= usize::from(before.is_resident());
        }
        before
    }

    /// Makes a page `Zero` or `Outside`, as `then` says, whose contents were dropped. `Outside` pages stay as they are.
    pub(crate) fn end_drop(&mut self, number: PageNumber, then: PageState) {
        let page = &mut self.entries[number];
        let outside = page.state == PageState::Outside;
        debug_assert!(outside || page.state == PageState::Leaving, "page {number} was dropped: {page:?}");
        *page = super::PageEntry {
            state: if outside { PageState::Outside } else { then },
            waited_for: page.waited_for,
            ..super::PageEntry::default()
        };
    }
}
