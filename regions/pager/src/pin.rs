//! Pins: pages stay resident while a system call uses them, because the kernel cannot wait for a far page there.
//!
//! A pin only forbids eviction. The pinning thread then asks for the pages to be [paged in](Pager::page_in), as a fault
//! would. No lock is held while they are filled, and the threads that serve faults treat them like other pages.
//!
//! # Never a deadlock
//! A pin never waits for other pins, since their holders may be waiting for the asking thread. Once half of local
//! memory is pinned, a further pin gets only the number of pages that its system call needs at least, even over the
//! limit of local memory; a longer request is cut, and the call is made in pieces.

use crate::page::PageState;
use crate::pager::Pager;
use crate::{Kernel, Linux};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

/// Number of pages that a system call may always pin: more than the longest network datagram needs.
pub const LEAST_PIN: usize = 18;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Pins the first pages of `range`: they are not evicted until they are [unpinned](Pager::unpin), whether they are
    /// resident now or later. Returns the pinned pages: at least `least` pages or all of `range`, and more while at
    /// most half of local memory is pinned. Pins of several threads may overlap.
    pub fn pin(&self, range: Range<PageNumber>, least: usize) -> Range<PageNumber> {
        let mut inner = self.lock();
        let most = (inner.local / 2).saturating_sub(inner.pins.pages()).max(least);
        let pinned = range.start..range.end.min(range.start + most);
        if pinned.is_empty() {
            return pinned;
        }
        inner.pins.hold(pinned.clone());
        // A page that is `Leaving` can still be read, and would be gone in the middle of the call.
        while pinned.clone().any(|page| inner.pages[page].state == PageState::Leaving) {
            inner = self.io_done.wait(inner);
        }
        pinned
    }

    /// Ends the pin of the range that [`pin`](Pager::pin) returned.
    pub fn unpin(&self, pinned: &Range<PageNumber>) {
        let mut inner = self.lock();
        inner.pins.give_back(pinned);
        let local = inner.local;
        inner.queue.retry_deferred(pinned, local);
    }

    /// Pins the range that [`pin`](Pager::pin) returned for good, also in forked children.
    pub fn keep(&self, pinned: &Range<PageNumber>) {
        self.lock().pins.keep(pinned);
    }
}

impl<S: PageStore> Pager<Linux, S> {
    /// [Pins](Pager::pin) the first far pages of the `len` bytes from the address `at` on, at least `least` pages.
    /// Returns the addresses of the pinned pages, and the range to unpin; `None` if no page there is far.
    pub fn pin_at(&self, at: usize, len: usize, least: usize) -> Option<(Range<usize>, Range<PageNumber>)> {
        let size = self.kernel.page();
        let far = self.bounds.overlap(at..at.saturating_add(len), size)?;
        let pinned = self.pin(far, least);
        let start = self.bounds.address(pinned.start, size);
        Some((start..start + pinned.len() * size, pinned))
    }
}
