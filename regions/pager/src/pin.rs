//! Pages that stay: their addresses are in the kernel's hands, which cannot wait for a far page.
//!
//! A pin only forbids eviction. The pinning thread then has the pages [paged in](Pager::page_in), as by a fault: so
//! nothing is held while they come, and the threads that serve faults need not know.
//!
//! # Never a deadlock
//! Pins are given at once, whatever others hold, since the holder may be a thread that waits for the
//! asking one. When half of what may be here is pinned, the next ones get as many pages as their owner cannot do without,
//! over the limit if need be; a longer request is cut, and its owner works in pieces.

use crate::page::PageState;
use crate::pager::Pager;
use crate::{Kernel, Linux};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

/// Pages that a system call may pin whatever others hold: more than the longest datagram over a network has.
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
        // A page that is leaving can still be read, and would be gone in the midst of the call.
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

    /// What [`pin`](Pager::pin) returned stays for good, in forked children too.
    pub fn keep(&self, pinned: &Range<PageNumber>) {
        self.lock().pins.keep(pinned);
    }
}

impl<S: PageStore> Pager<Linux, S> {
    /// [Pins](Pager::pin) the first far pages of `len` bytes at an address. Returns their addresses, and what to
    /// unpin; `None` when nothing there is far.
    pub fn pin_at(&self, at: usize, len: usize, least: usize) -> Option<(Range<usize>, Range<PageNumber>)> {
        let size = self.kernel.page();
        let far = self.bounds.overlap(at..at.saturating_add(len), size)?;
        let pinned = self.pin(far, least);
        let start = self.bounds.address(pinned.start, size);
        Some((start..start + pinned.len() * size, pinned))
    }
}
