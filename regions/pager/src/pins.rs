//! The pages that may not be evicted, because a system call or a device uses them.

use core::ops::Range;
use largesse_policy::PageNumber;

/// Pinned ranges. A range that several threads pinned is in here once for each of them.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    held: Vec<Range<PageNumber>>,
    /// Ranges that stay pinned, in forked children too.
    kept: Vec<Range<PageNumber>>,
}

impl Pins {
    /// Returns whether a page is pinned.
    pub(crate) fn contains(&self, page: PageNumber) -> bool {
        self.held.iter().chain(&self.kept).any(|pin| pin.contains(&page))
    }

    /// Returns the number of pinned pages. A page counts once for each range that it is in.
    pub(crate) fn pages(&self) -> usize {
        self.held.iter().chain(&self.kept).map(Range::len).sum()
    }

    /// Pins a range until it is given back.
    pub(crate) fn hold(&mut self, pinned: Range<PageNumber>) {
        self.held.push(pinned);
    }

    /// Gives back a range that was [held](Pins::hold).
    pub(crate) fn give_back(&mut self, pinned: &Range<PageNumber>) {
        if let Some(at) = self.held.iter().position(|pin| pin == pinned) {
            self.held.swap_remove(at);
        }
    }

    /// Pins for good a range that was [held](Pins::hold).
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
