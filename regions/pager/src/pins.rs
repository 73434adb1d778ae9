//! The pages that may not be evicted, because a system call or a device uses them.

use core::ops::Range;
use largesse_policy::PageNumber;

/// Pinned ranges of pages. A range that several threads pinned is listed once for each of them.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    held: Vec<Range<PageNumber>>,
    /// Ranges that stay pinned for good, also in forked children.
    kept: Vec<Range<PageNumber>>,
}

impl Pins {
    /// Returns whether a page is pinned.
    pub(crate) fn contains(&self, page: PageNumber) -> bool {
        self.held.iter().chain(&self.kept).any(|pin| pin.contains(&page))
    }

    /// Returns the number of pinned pages. A page counts once for each listed range that contains it.
    pub(crate) fn pages(&self) -> usize {
        self.held.iter().chain(&self.kept).map(Range::len).sum()
    }

    /// Returns the number of pages that are pinned for good. A page counts once for each listed range that contains it.
    pub(crate) fn permanent(&self) -> usize {
        self.kept.iter().map(Range::len).sum()
    }

    /// Returns the parts of `pages` that are pinned. A page that is in several pinned ranges is in as many parts.
    pub(crate) fn within(&self, pages: &Range<PageNumber>) -> Vec<Range<PageNumber>> {
        let part = |pin: &Range<PageNumber>| pin.start.max(pages.start)..pin.end.min(pages.end);
        self.held.iter().chain(&self.kept).map(part).filter(|part| !part.is_empty()).collect()
    }

    /// Pins a range until it is [given back](Pins::give_back).
    pub(crate) fn hold(&mut self, pinned: Range<PageNumber>) {
        self.held.push(pinned);
    }

    /// Ends the pin of a range that was [held](Pins::hold).
    pub(crate) fn give_back(&mut self, pinned: &Range<PageNumber>) {
        if let Some(at) = self.held.iter().position(|pin| pin == pinned) {
            self.held.swap_remove(at);
        }
    }

    /// Makes the pin of a range that was [held](Pins::hold) permanent.
    pub(crate) fn keep(&mut self, pinned: &Range<PageNumber>) {
        self.give_back(pinned);
        if !self.kept.contains(pinned) {
            self.kept.push(pinned.clone());
        }
    }

    /// Forgets the held ranges, in a forked child: the threads that held them are in the parent.
    pub(crate) fn forget_held(&mut self) {
        self.held.clear();
    }
}
