//! The way in: faults are served, foreseen pages fetched.

use crate::buffer::Buffer;
use crate::incoming::Admission;
use crate::page::{PageState, Touch, checksum, runs};
use crate::pager::{Pager, WAKE_NS, nanoseconds};
use crate::state::{FillPlan, LARGE_UNIT, PagerState};
use crate::{Count, FillOrder, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::streams::Access;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_store::PageStore;
use std::sync::MutexGuard;
use std::time::Instant;

/// A signal to the thread itself, or to change places with it on its processor, and the way back.
const SIGNAL_NS: u64 = 3_000;
/// Pages that come in the time that a thread needs to wake up.
const FEW: usize = 32;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Serves one fault. When it returns, and who waits for the pages that it returns is [woken](Kernel::wake), the thread
    /// that waited runs again, or will when a page in flight lands.
    ///
    /// Small sets that the thread is foreseen to touch next come before it runs, those that follow each other in one
    /// transfer: it would stop again at once, and each waking costs as much as several pages. Large ones are left to
    /// [`Pager::idle`], which fetches them while the thread runs; where both have one processor they come first, too.
    pub fn serve(&self, touch: Touch, buffer: &mut Buffer) -> Result<Range<PageNumber>, PagerError> {
        let began = Instant::now();
        self.count(touch.page, Count::Faults, 1);
        let mut inner = self.lock();
        let (mut access, mut upto) = (Access::Dense, 0);
        if !inner.pages[touch.page].state.is_resident() {
            buffer.prefetch_queue.clear();
            let hits;
            (access, hits) =
                inner.observe_fault(touch, &self.bounds.around(touch.page), &mut buffer.prefetch_queue);
            self.count(touch.page, Count::PrefetchHits, hits as u64);
            let small = inner.unit_at(touch.page, access) < LARGE_UNIT;
            if small || buffer.on_cpu {
                upto = inner.coalesce(touch.page, access, MAX_TRANSFER, &mut buffer.prefetch_queue);
                drop(inner);
                while let Some(next) = buffer.prefetch_queue.pop() {
                    self.prefetch(next, true, buffer)?;
                }
                inner = self.lock();
            }
        }
        let waking = if buffer.on_cpu { SIGNAL_NS } else { WAKE_NS };
        let waiting = self.page_in_range(inner, (touch, access), upto, waking, buffer)?;
        self.count(touch.page, Count::WaitNs, nanoseconds(began));
        self.stall_time.add(began, Instant::now());
        Ok(waiting)
    }

    /// What to do while nobody waits: fetch a set that is foreseen, or let pages leave. `false`: nothing.
    pub fn idle(&self, buffer: &mut Buffer) -> Result<bool, PagerError> {
        match buffer.prefetch_queue.pop() {
            Some(next) => self.prefetch(next, false, buffer).map(|()| true),
            None => self.reclaim(),
        }
    }

    /// Fetches the set of a page that nobody waits for yet, `at_any_price`: others leave for it.
    fn prefetch(
        &self,
        (page, access): (PageNumber, Access),
        at_any_price: bool,
        buffer: &mut Buffer,
    ) -> Result<(), PagerError> {
        let inner = self.lock();
        if inner.pages[page].state != PageState::SwappedOut {
            return Ok(()); // it came, or there is nothing to fetch
        }
        let upto = if at_any_price {
            inner.coalesce(page, access, MAX_TRANSFER, &mut buffer.prefetch_queue)
        } else {
            0
        };
        let set = inner.fill_range(page, access, 0, &self.bounds.around(page));
        if !at_any_price && inner.pages.resident() + set.len() > inner.local {
            return Ok(());
        }
        let waiting = self.page_in_range(inner, (Touch { page, write: false }, access), upto, 0, buffer)?;
        self.kernel.wake(waiting);
        Ok(())
    }

    /// Pages in the unit of a page, and the units that follow it up to the page `upto`, by transfers that end at once. It
    /// costs `waking` nanoseconds in addition to what is measured here: none if no thread waits, so that all units are
    /// prefetched. Returns the pages for which threads wait that were not woken yet.
    fn page_in_range<'a>(
        &'a self,
        mut inner: MutexGuard<'a, PagerState>,
        (touch, access): (Touch, Access),
        mut upto: PageNumber,
        waking: u64,
        buffer: &mut Buffer,
    ) -> Result<Range<PageNumber>, PagerError> {
        let reuses = true;
        let incoming = loop {
            match self.admit(&mut inner, (touch, access), upto, waking == 0, reuses)? {
                Admission::Settled(pages) => return Ok(pages),
                Admission::Begun(incoming) => break incoming,
                Admission::NoRoom(pages) => {
                    let waited = Instant::now();
                    let roomy;
                    (inner, roomy) = self.make_room(inner, pages)?;
                    self.count(touch.page, Count::RoomNs, nanoseconds(waited));
                    if !roomy && upto > 0 {
                        upto = 0; // there may be room for the unit alone
                    } else if !roomy
                        && let Some(incoming) = self.admit_over_limit(&mut inner, (touch, access), reuses)
                    {
                        break incoming;
                    }
                }
            }
        };
        let behind =
            inner.pages.resident() + inner.low_watermark() > inner.local || inner.has_untouched_to_check();
        drop(inner);
        if behind {
            self.reclaim_needed.notify_all();
        }
        let served = Instant::now();
        // A thread that waits on another processor wakes up while the rest is done, which takes as long; also for one page
        // of a few, while the others are filled. With many, the thread would overtake the fills and wait again.
        let apart = waking > 0 && !buffer.on_cpu;
        let range = &incoming.range;
        let asked = touch.page..touch.page + 1;
        let first = if apart && range.len() <= FEW { asked.clone() } else { range.start..range.start };
        let order = FillOrder::new(range, first, if apart { asked } else { 0..0 });
        match incoming.from {
            PageState::Zero => self.fill_zero(&order, touch.write, &buffer.zeros)?,
            _ => self.fill(&order, &incoming.plan, buffer)?,
        }
        let range = range.clone();
        let waited = self.end_fill(incoming, nanoseconds(served) + waking);
        Ok(if waited || waking > 0 && !apart { range } else { 0..0 })
    }

    /// Makes new pages. `dirty`: who writes to one new page writes to its neighbours, so
    /// that all of them may be written, without a second fault for each.
    pub(crate) fn fill_zero(&self, order: &FillOrder, dirty: bool, zeros: &[u8]) -> Result<(), PagerError> {
        let put = |part: &Range<PageNumber>| {
            let len = part.len() * self.kernel.page();
            self.kernel.fill(part.start, &zeros[..len], !dirty)
        };
        order.each(put, |woken| self.kernel.wake(woken))?;
        let range = order.range();
        self.count(range.start, Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Reads pages from the store and fills them; those that `plan` says are dirty may be written at once.
    fn fill(&self, order: &FillOrder, plan: &[FillPlan], buffer: &mut Buffer) -> Result<(), PagerError> {
        let (range, page) = (&order.range(), self.kernel.page());
        let bytes = &mut buffer.bytes[..range.len() * page];
        if plan.iter().all(|page| page.dirty) {
            return self.kernel.page_in(order, bytes, &mut |room| self.fetch(range, plan, room));
        }
        self.fetch(range, plan, bytes)?;
        self.fill_from(order, plan, bytes)
    }

    /// Fills pages with `bytes`; those that `plan` says are dirty may be written at once.
    pub(crate) fn fill_from(
        &self,
        order: &FillOrder,
        plan: &[FillPlan],
        bytes: &[u8],
    ) -> Result<(), PagerError> {
        let (range, page) = (order.range(), self.kernel.page());
        let put = |part: &Range<PageNumber>| {
            for (part, dirty) in runs(part.clone(), |number| Some(plan[number - range.start].dirty)) {
                let at = (part.start - range.start) * page;
                self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
            }
            Ok(())
        };
        Ok(order.each(put, |woken| self.kernel.wake(woken))?)
    }

    /// Reads pages from the store.
    fn fetch(&self, range: &Range<PageNumber>, plan: &[FillPlan], room: &mut [u8]) -> Result<(), PagerError> {
        self.store.read((range.start * self.kernel.page()) as u64, room)?;
        self.check(range, plan, room)
    }

    /// Checks pages that were read from the store: different bytes than those written last end the program.
    pub(crate) fn check(
        &self,
        range: &Range<PageNumber>,
        plan: &[FillPlan],
        bytes: &[u8],
    ) -> Result<(), PagerError> {
        self.count(range.start, Count::Fills, range.len() as u64);
        self.count(range.start, Count::BytesIn, bytes.len() as u64);
        for ((number, plan), bytes) in range.clone().zip(plan).zip(bytes.chunks_exact(self.kernel.page())) {
            let read = checksum(bytes);
            if read != plan.sum {
                return Err(PagerError::Damaged { page: number, sent: plan.sum, read });
            }
        }
        Ok(())
    }
}
