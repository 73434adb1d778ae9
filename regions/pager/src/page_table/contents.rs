//! The contents of pages as the table knows them: whether the store holds them, and whether the program still needs
//! them.

use super::{PageEntry, PageTable};
use crate::page::PageState;
use core::ops::Range;
use largesse_policy::PageNumber;

/// The contents of a page that was taken from the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// Their checksum; `None` if they need not be stored, because they are zero or the program has given them up.
    pub(crate) sum: Option<u64>,
    /// Whether they must be written to the store.
    pub(crate) changed: bool,
}

impl PageTable {
    /// Notes that the store holds `contents` of consecutive pages from `first` on, or that zero pages need no store.
    pub(crate) fn note_contents(&mut self, first: PageNumber, contents: &[Contents]) {
        for (page, contents) in self.entries[first..first + contents.len()].iter_mut().zip(contents) {
            page.changed = if contents.changed { 2 } else { page.changed.saturating_sub(1) };
            page.stored = contents.sum.is_some();
            page.sum = contents.sum.unwrap_or(0);
        }
    }

    /// Notes that a residency of `Clean` pages ends without a change.
    pub(crate) fn note_unchanged(&mut self, pages: Range<PageNumber>) {
        self.entries[pages].iter_mut().for_each(|page| page.changed = page.changed.saturating_sub(1));
    }

    /// Notes that the store holds undefined contents of these pages, after a write that failed.
    pub(crate) fn forget_stored(&mut self, pages: Range<PageNumber>) {
        self.entries[pages].iter_mut().for_each(|page| page.stored = false);
    }

    /// Notes whether the program needs the contents of a page.
    pub(crate) fn set_wanted(&mut self, number: PageNumber, wanted: bool) {
        self.entries[number].unwanted = !wanted;
    }

    /// Makes an unwanted `SwappedOut` page `Zero`: its contents in the store are never read. Returns whether it was
    /// one.
    pub(crate) fn forget_unwanted(&mut self, number: PageNumber) -> bool {
        let page = &mut self.entries[number];
        let forget = page.unwanted && page.state == PageState::SwappedOut;
        if forget {
            *page = PageEntry { unwanted: true, ..PageEntry::default() };
        }
        forget
    }
}
