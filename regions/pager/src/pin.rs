//! Pages that stay: their addresses are in the kernel's hands, which cannot wait for a far page.
//!
//! A pin only forbids eviction. The pinning thread then has the pages [paged in](Pager::page_in), as by a fault: so
//! nothing is held while they come, and the threads that serve faults need not know.
//!
//! # Never a deadlock
//! Pins are given at once, whatever others hold, since the holder may be a thread that waits for the
//! asking one. When half of what may be here is pinned, the next ones get as many pages as their owner cannot do without,
//! over the limit if need be; a longer request is cut, and its owner works in pieces.

use crate::page::{PageState, runs};
use crate::pager::Pager;
use crate::{Kernel, Linux};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;
use largesse_store::PageStore;

/// Pages that a system call may pin whatever others hold: more than the longest datagram over a network has.
pub const LEAST_PIN: usize = 18;

/// What is pinned, once for each who asked.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    held: Vec<Range<PageNumber>>,
    /// For good.
    kept: Vec<Range<PageNumber>>,
}

impl Pins {
    pub(crate) fn hold(&self, page: PageNumber) -> bool {
        self.held.iter().chain(&self.kept).any(|pin| pin.contains(&page))
    }

    pub(crate) fn pages(&self) -> usize {
        self.held.iter().chain(&self.kept).map(Range::len).sum()
    }

    fn give_back(&mut self, pinned: &Range<PageNumber>) {
        if let Some(at) = self.held.iter().position(|pin| pin == pinned) {
            self.held.swap_remove(at);
        }
    }

    /// Nobody holds any but those for good: in a forked child, whose only thread does not.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
    }
}

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
        inner.pins.held.push(pinned.clone());
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
        let pins = &mut self.lock().pins;
        pins.give_back(pinned);
        if !pins.kept.contains(pinned) {
            pins.kept.push(pinned.clone());
        }
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

impl crate::state::PagerState {
    /// Of a run whose turn it is to leave, the pinned pages stay. Returns whether there are any.
    pub(crate) fn defer_pinned(&mut self, range: &Range<PageNumber>, part: Protection) -> bool {
        let pinned = runs(range.clone(), |page| {
            (self.pins.hold(page) && self.pages[page].state.is_resident()).then_some(())
        });
        for (run, ()) in &pinned {
            self.defer(run, part);
        }
        !pinned.is_empty()
    }
}
