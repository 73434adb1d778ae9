//! Pins: pages stay resident while a system call uses them, because the kernel cannot wait for a far page there.
//!
//! A pin only forbids eviction. The pinning thread then has the pages [paged in](Pager::page_in), as by a fault. No
//! lock is held while they are filled, and the threads that serve faults treat them like others.
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

/// Number of pages that a system call may always pin: more than the longest datagram of a network has.
pub const LEAST_PIN: usize = 18;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Pins the first pages of `range`: once resident, or from now on if they are, they are not evicted until they are
    /// [unpinned](Pager::unpin). Returns them: at least `least` pages or all of `range`, and more while half of local
    /// memory allows it. Pins of several threads may overlap.
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

    /// Gives back what [`pin`](Pager::pin) returned.
    pub fn unpin(&self, pinned: &Range<PageNumber>) {
        let mut inner = self.lock();
        inner.pins.give_back(pinned);
        let local = inner.local;
        inner.queue.retry_deferred(pinned, local);
    }

    /// Pins for good what [`pin`](Pager::pin) returned, in forked children too.
    pub fn keep(&self, pinned: &Range<PageNumber>) {
        self.lock().pins.keep(pinned);
    }
}

impl<S: PageStore> Pager<Linux, S> {
    /// [Pins](Pager::pin) the first far pages of `len` bytes at an address. Returns their addresses, and the range to
    /// unpin; `None` if no page there is far.
    pub fn pin_at(&self, at: usize, len: usize, least: usize) -> Option<(Range<usize>, Range<PageNumber>)> {
        let size = self.kernel.page();
        let far = self.bounds.overlap(at..at.saturating_add(len), size)?;
        let pinned = self.pin(far, least);
        let start = self.bounds.address(pinned.start, size);
        Some((start..start + pinned.len() * size, pinned))
    }
}
