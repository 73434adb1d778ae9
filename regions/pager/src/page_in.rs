//! Paging in from a store whose transfers end at once: faults are served, and predicted pages are prefetched.
//!
//! ```text
//!   serve ──► observe_fault: the streams predict pages ──► page_in_range: admit ──► transfer ──► commit
//!                └── small units: prefetched before the faulting thread goes on
//!   idle ───► large units: prefetched while it runs; or pages are evicted ahead of need
//! ```

use crate::buffer::Buffer;
use crate::incoming::{Admission, FillPlan, FillReason, FillRequest, FrameSource, Incoming, PagePlan};
use crate::page::{PageState, Touch};
use crate::pager::{Pager, WAKE_NS, between};
use crate::state::{LARGE_UNIT, StateGuard};
use crate::{Count, FillOrder, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::time::Instant;

/// Nanoseconds to wake a thread on the same CPU: by the return from a signal, or by one context switch.
const SWITCH_NS: u64 = 3_000;
/// Largest number of pages that can be filled in the time in which a thread on another CPU wakes up.
const FEW: usize = 32;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Serves one fault. The caller then [wakes](Kernel::wake) the threads that wait for the returned pages. If the
    /// faulting page is in flight, its thread is woken when its transition ends.
    ///
    /// Small units that a stream predicts are prefetched before the faulting thread continues, neighbouring ones in one
    /// transfer: otherwise the thread would soon fault on them, and each wake-up costs as much as several pages. Large
    /// units are left to [`Pager::idle`], which prefetches them while the thread runs, unless the two threads share a
    /// CPU.
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
                upto = inner.coalesce(touch.page, access, usize::MAX, &buffer.prefetch_queue);
                buffer.prefetch_queue.remove_first(&(touch.page..upto));
                drop(inner);
                while let Some((page, access)) = buffer.prefetch_queue.pop() {
                    self.prefetch(page, access, buffer)?;
                }
                inner = self.lock();
            }
        }
        let request =
            FillRequest { touch, access, upto, reason: FillReason::Fault, frames: FrameSource::Evicted };
        let waiting = self.page_in_range(inner, request, buffer)?;
        let now = Instant::now();
        self.count(touch.page, Count::WaitNs, between(began, now));
        self.stall_time.add(began, now);
        Ok(waiting)
    }

    /// Works while no fault waits: prefetches a predicted unit, or evicts pages ahead of need. Returns `false` if there
    /// was nothing to do.
    pub fn idle(&self, buffer: &mut Buffer) -> Result<bool, PagerError> {
        match buffer.prefetch_queue.pop() {
            Some((page, access)) => self.prefetch_if_room(page, access, buffer).map(|()| true),
            None => self.reclaim(),
        }
    }

    /// Prefetches the unit of a page, and the predicted units that follow it. Evicts other pages if there is no room.
    fn prefetch(&self, page: PageNumber, access: Access, buffer: &mut Buffer) -> Result<(), PagerError> {
        let inner = self.lock();
        if inner.pages[page].state != PageState::SwappedOut {
            return Ok(()); // it was filled, or there is nothing to read
        }
        let upto = inner.coalesce(page, access, usize::MAX, &buffer.prefetch_queue);
        buffer.prefetch_queue.remove_first(&(page..upto));
        self.page_in_predicted(inner, (page, access), upto, buffer)
    }

    /// Prefetches the unit of a page if there is room for it.
    fn prefetch_if_room(
        &self,
        page: PageNumber,
        access: Access,
        buffer: &mut Buffer,
    ) -> Result<(), PagerError> {
        let inner = self.lock();
        if inner.pages[page].state != PageState::SwappedOut {
            return Ok(()); // as above
        }
        let unit = inner.fill_range(page, access, 0, &self.bounds.around(page));
        if inner.pages.resident() + unit.len() > inner.local {
            return Ok(());
        }
        self.page_in_predicted(inner, (page, access), 0, buffer)
    }

    fn page_in_predicted<'a>(
        &'a self,
        inner: StateGuard<'a>,
        (page, access): (PageNumber, Access),
        upto: PageNumber,
        buffer: &mut Buffer,
    ) -> Result<(), PagerError> {
        let (touch, reason) = (Touch { page, write: false }, FillReason::Prefetch);
        let request = FillRequest { touch, access, upto, reason, frames: FrameSource::Evicted };
        let waiting = self.page_in_range(inner, request, buffer)?;
        self.kernel.wake(waiting);
        Ok(())
    }

    /// Pages in the pages that a request asks for. Returns the pages whose waiting threads the caller must wake.
    fn page_in_range<'a>(
        &'a self,
        inner: StateGuard<'a>,
        request: FillRequest,
        buffer: &mut Buffer,
    ) -> Result<Range<PageNumber>, PagerError> {
        let (page, fault) = (request.touch.page, request.reason == FillReason::Fault);
        let mut now = Instant::now();
        let incoming = match self.admit_or_evict(inner, request, &mut now)? {
            Admission::Begun(incoming) => incoming,
            Admission::Resident => return Ok(page..page + 1),
            Admission::InFlight | Admission::NoRoom(_) => return Ok(0..0),
        };
        // A faulting thread on another CPU is woken as soon as its page is there, and wakes up while the rest is done.
        // With many pages it would overtake their fills and fault again, so that its page is then filled in the order
        // of all.
        let apart = fault && !buffer.on_cpu;
        self.transfer(&incoming, apart, buffer)?;
        let wake_up = match (fault, buffer.on_cpu) {
            (false, _) => 0,
            (true, true) => SWITCH_NS,
            (true, false) => WAKE_NS,
        };
        let range = incoming.plan.range.clone();
        let waited = self.commit(incoming, between(now, Instant::now()) + wake_up);
        Ok(if waited || fault && !apart { range } else { 0..0 })
    }

    /// Begins the fill that a request asks for, and evicts pages until there is room. Sets `now` to the time after the
    /// last eviction.
    fn admit_or_evict<'a>(
        &'a self,
        mut inner: StateGuard<'a>,
        mut request: FillRequest,
        now: &mut Instant,
    ) -> Result<Admission, PagerError> {
        let admission = loop {
            let pages = match self.admit(&mut inner, &request, *now)? {
                Admission::NoRoom(pages) => pages,
                admission => break admission,
            };
            let since = *now;
            let roomy;
            (inner, roomy) = self.make_room(inner, pages, now)?;
            self.count(request.touch.page, Count::RoomNs, between(since, *now));
            if !roomy && request.upto > 0 {
                request.upto = 0; // there may be room for the unit alone
            } else if !roomy && let Some(incoming) = self.admit_over_limit(&mut inner, &request, *now) {
                break Admission::Begun(incoming);
            }
        };
        let low =
            inner.pages.resident() + inner.low_watermark() > inner.local || inner.has_untouched_to_check();
        drop(inner);
        if low && matches!(admission, Admission::Begun(_)) {
            self.reclaim_needed.notify_all();
        }
        Ok(admission)
    }

    /// Transfers and fills the pages of `incoming`. If the faulting thread runs on another CPU (`apart`), it is woken
    /// as soon as its page is filled.
    fn transfer(&self, incoming: &Incoming, apart: bool, buffer: &mut Buffer) -> Result<(), PagerError> {
        let Incoming { touch, plan, .. } = incoming;
        let range = &plan.range;
        let asked = touch.page..touch.page + 1;
        let first = if apart && range.len() <= FEW { asked.clone() } else { range.start..range.start };
        let order = FillOrder::new(range, first, if apart { asked } else { 0..0 });
        match plan.from {
            PageState::Zero => self.fill_zero(&order, plan.is_writable(), &buffer.zeros),
            _ => self.fill(&order, plan, buffer),
        }
    }

    /// Reads the pages of `order` from the store, and fills them, writable or write-protected as `plan` says of each
    /// page.
    fn fill(&self, order: &FillOrder, plan: &FillPlan, buffer: &mut Buffer) -> Result<(), PagerError> {
        let (range, page) = (&order.range(), self.kernel.page());
        let bytes = &mut buffer.bytes[..range.len() * page];
        if plan.is_writable() {
            return self.kernel.page_in(order, bytes, &mut |room| self.fetch(range, &plan.pages, room));
        }
        self.fetch(range, &plan.pages, bytes)?;
        self.fill_from(order, &plan.pages, bytes)
    }

    /// Reads the pages of `range` from the store into `room`, and compares them with the checksums in `plan`.
    fn fetch(&self, range: &Range<PageNumber>, plan: &[PagePlan], room: &mut [u8]) -> Result<(), PagerError> {
        let at = (range.start * self.kernel.page()) as u64;
        self.read_times.timed(&self.counters, || self.store.read(at, room))?;
        self.check(range, plan, room)
    }
}
