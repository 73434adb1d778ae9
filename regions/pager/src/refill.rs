//! Fills pages that are touched while they are written back: at once, from the copy that is being written.
//!
//! ```text
//!   start of a write: add ──► touch: begin_refill ──► fill from the copy, outside the lock ──► end_refill: Dirty
//!                                                                                                   │
//!   end of the write: remove, when no thread reads the copy ◄── not evicted before ─────────────────┘
//! ```
//! The write continues, and the store then holds the contents that the page had at its eviction. If the program has
//! changed the page since, its next eviction finds a new checksum and writes it again: never before the first write has
//! ended, so that no two writes of a page are in flight. Linux calls such a page a hit of its swap cache.

use crate::page::{PageState, number, run_around, runs};
use crate::pager::{Pager, between};
use crate::state::{PagerState, StateGuard};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::PageRun;
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::time::Instant;

/// Pages that are `Filling` from the copy that an eviction is writing to the store.
#[derive(Debug)]
pub(crate) struct Refill {
    range: Range<PageNumber>,
    /// The first byte of the copy of `range`.
    bytes: *const u8,
    clock: u32,
}

impl PagerState {
    /// Adds the copy at `bytes` of `Leaving` pages whose write to the store begins. The pages were moved out of the
    /// program, so that they take no local memory from now on.
    fn add_copy(&mut self, pages: Range<PageNumber>, bytes: *const u8) {
        let clock = self.queue.clock();
        self.copied += pages.len();
        self.write_copies.add(pages, bytes, clock);
    }

    /// Returns whether `page` can be filled from a copy that is being written, once local memory has room for it.
    pub(crate) fn is_copied(&self, page: PageNumber) -> bool {
        self.pages[page].state == PageState::Leaving && self.write_copies.contains(page)
    }

    /// Returns whether a touch of `page` must wait for the end of the page's transition, because no copy exists to fill
    /// it from.
    pub(crate) fn must_wait_for(&self, page: PageNumber) -> bool {
        self.pages[page].state.in_flight() && !self.is_copied(page)
    }

    /// Makes a page that is being written back `Filling`, together with the other pages of its transfer unit in the
    /// same write, as far as local memory has room for them. Returns `None` if no copy of the page is being written, or
    /// there is no room for the page.
    fn begin_refill(&mut self, page: PageNumber) -> Option<Refill> {
        let room = self.local.saturating_sub(self.occupied());
        if self.pages[page].state != PageState::Leaving || room == 0 {
            return None;
        }
        let unit = if room < self.unit_at(page, Access::Dense) {
            page..page + 1
        } else {
            self.unit_of(page, Access::Dense)
        };
        let copy = self.write_copies.get_mut(page)?;
        let within = unit.start.max(copy.pages.start)..unit.end.min(copy.pages.end);
        let range = run_around(page, within, |other| self.pages[other].state == PageState::Leaving);
        copy.readers += 1;
        let bytes = copy.bytes.wrapping_add((range.start - copy.pages.start) * self.page_bytes);
        let refill = Refill { range: range.clone(), bytes, clock: copy.clock };
        self.leaving -= range.len();
        self.copied -= range.len();
        self.pages.begin_refill(range);
        Some(refill)
    }

    /// Makes the pages of a refill `Dirty`, and adds them to the replacement queue behind the pages that are resident
    /// now.
    fn end_refill(&mut self, Refill { range, clock, .. }: &Refill) {
        let (local, part) = (self.local, self.pages[range.start].part());
        let run = PageRun { first: number(range.start), pages: number(range.len()) };
        self.queue.insert(run, local, Some((part, *clock)));
        if let Some(copy) = self.write_copies.get_mut(range.start) {
            copy.readers -= 1;
        }
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Notes that the write of `Leaving` pages begins, from the copy at `bytes`: see [`PagerState::add_copy`].
    pub(crate) fn begin_write(&self, pages: &Range<PageNumber>, bytes: *const u8) -> StateGuard<'_> {
        let mut inner = self.lock();
        inner.add_copy(pages.clone(), bytes);
        self.uncount(pages.start, Count::ResidentBytes, (pages.len() * self.kernel.page()) as u64);
        inner
    }

    /// Begins to fill a page from the copy that is being written, if there is one and local memory has room.
    pub(crate) fn begin_refill(&self, inner: &mut PagerState, page: PageNumber) -> Option<Refill> {
        let refill = inner.begin_refill(page)?;
        let bytes = refill.range.len() * self.kernel.page();
        self.count(refill.range.start, Count::ResidentBytes, bytes as u64);
        Some(refill)
    }

    /// Fills pages from the copy that is being written, for a fault that happened at `began`.
    pub(crate) fn refill(&self, refill: &Refill, began: Instant) -> Result<(), PagerError> {
        let range = &refill.range;
        let len = range.len() * self.kernel.page();
        // SAFETY: `range` lies in one copy, of which `bytes` is the place of its first page. This thread is counted as
        // a reader of that copy until `end_refill`. Until then, `end_write` waits, and the evicting thread writes to
        // the bytes again only after `end_write`; the transfer in flight only reads them.
        let bytes = unsafe { core::slice::from_raw_parts(refill.bytes, len) };
        self.kernel.fill(range.start, bytes, false)?;
        let mut inner = self.lock();
        inner.end_refill(refill);
        for page in range.clone() {
            inner.pages.end_fill(page, true);
        }
        drop(inner);
        self.io_done.notify_all();
        self.kernel.wake(range.clone());
        self.count(range.start, Count::FromWrites, range.len() as u64);
        let now = Instant::now();
        self.count(range.start, Count::WaitNs, between(began, now));
        self.stall_time.add(began, now);
        Ok(())
    }

    /// Ends the write of some pages, and returns those that are still `Leaving`, which count as resident until their
    /// eviction ends. The others were filled again, and can be evicted from now on. Waits until no thread reads the
    /// copy any more.
    pub(crate) fn end_write(&self, pages: &Range<PageNumber>) -> (StateGuard<'_>, Vec<Range<PageNumber>>) {
        let mut inner = self.lock();
        while !inner.write_copies.remove(pages.start) {
            inner = self.io_done.wait(inner);
        }
        let local = inner.local;
        for page in pages.clone() {
            if inner.pages.end_write(page) {
                inner.queue.retry_deferred(&(page..page + 1), local);
            }
        }
        self.io_done.notify_all();
        let leaving =
            runs(pages.clone(), |page| (inner.pages[page].state == PageState::Leaving).then_some(()));
        let leaving: Vec<_> = leaving.into_iter().map(|(run, ())| run).collect();
        let left = leaving.iter().map(Range::len).sum::<usize>();
        inner.copied -= left;
        self.count(pages.start, Count::ResidentBytes, (left * self.kernel.page()) as u64);
        (inner, leaving)
    }
}
