//! Fills missing pages from a store whose transfers take time, with several reads in flight.
//!
//! ```text
//!   fault ──► serve: the read of its transfer unit is started, then those of prefetched units
//!   queue ──► reap:  each unit that was read is filled, and its threads are woken, in any order
//! ```
//! A fault does not wait for the reads of other faults. A touch of a page whose prefetch is in flight is reported to
//! the streams like a fault: otherwise prefetching would end as soon as the program catches up with it.

use crate::counters::as_nanoseconds;
use crate::in_flight::{EndedTransfer, InFlight};
use crate::incoming::{Admission, FillReason, FillRequest, FrameSource, Incoming};
use crate::page::{PageState, Touch};
use crate::pager::{Pager, WAKE_NS, between};
use crate::state::{ROOM_WAIT, StateGuard};
use crate::{Count, FillOrder, Kernel, PagerError};
use largesse_pages::Table;
use largesse_policy::streams::Access;
use largesse_policy::{MAX_TRANSFER, PageNumber, PrefetchQueue};
use largesse_store::{Direction, PageStore, TransferQueue};
use std::time::{Duration, Instant};

/// Largest number of reads in flight.
pub(crate) const READ_DEPTH: usize = 32;
/// Largest size in pages of the memory that the reads in flight share: one transfer unit of the largest size, and half
/// as much for other reads.
pub(crate) const READ_PAGES: usize = MAX_TRANSFER + MAX_TRANSFER / 2;
/// Smallest size in pages of the memory of reads, and of that of writes.
const QUEUE_PAGES: usize = 128;
/// Divisor of local memory: the reads in flight share memory of a 32nd of its size, and so do the writes, within
/// [`QUEUE_PAGES`] and the largest size of each. This memory is needed in addition to local memory.
const QUEUE_SHARE: usize = 32;
/// Number of reads in flight that only faults may start, so that a fault does not wait for prefetches.
const FAULT_SLOTS: usize = 8;
/// Largest number of pages that one prefetch reads: enough to use the whole bandwidth of a disk, and few enough that
/// the first pages are filled soon.
const PREFETCH_PAGES: usize = 32;
/// Largest number of new pages that one fault fills because a stream expects their use.
const NEW_PAGES: usize = 64;

/// Returns the size in pages of the memory of a queue, at most `most`, if local memory has `local` pages.
pub(crate) fn queue_pages(local: usize, most: usize) -> usize {
    (local / QUEUE_SHARE).clamp(QUEUE_PAGES, most)
}

/// Returns the largest power of two that leaves room for half as many pages in a memory of `pages` pages.
fn largest_unit(pages: usize) -> usize {
    1 << (pages * 2 / 3).max(1).ilog2()
}

/// Fills pages from a store whose reads run while the handler thread continues. It belongs to that thread.
#[derive(Debug)]
pub struct AsyncFiller {
    reads: InFlight<Read>,
    prefetch_queue: PrefetchQueue,
    zeros: Table<u8>,
    /// Size of the memory of reads in pages.
    pages: usize,
    /// Number of pages of prefetches in flight. It is at most half of the memory of reads, which a single prefetch may
    /// exceed.
    prefetching: usize,
    /// The next pages are fetched back from this time on (`recall.rs`).
    pub(crate) recall_at: Instant,
    /// Whether the free reserve knows that prefetches find no room. It is told again after all of them were started.
    short_of_room: bool,
}

#[derive(Debug)]
struct Read {
    incoming: Incoming,
    /// Whether no thread waited for the pages when the read began.
    prefetch: bool,
    /// When a thread began to wait for one of the pages; `None` if none does.
    waited_since: Option<Instant>,
}

impl AsyncFiller {
    /// Makes a filler over a queue whose memory has room for `pages` pages of `page` bytes each. Returns `None` if
    /// there is no memory for its own buffers.
    #[must_use]
    pub fn new(queue: Box<dyn TransferQueue>, pages: usize, page: usize) -> Option<AsyncFiller> {
        Some(AsyncFiller {
            reads: InFlight::new(queue, pages * page),
            prefetch_queue: PrefetchQueue::new(),
            zeros: Table::zeros(MAX_TRANSFER * page)?,
            pages,
            prefetching: 0,
            recall_at: Instant::now(),
            short_of_room: false,
        })
    }

    /// Returns the number of reads in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.reads.len()
    }

    /// Returns the size in pages of the largest transfer unit for which the memory of reads has room, next to half as
    /// many pages of other reads.
    #[must_use]
    pub fn largest_unit(&self) -> usize {
        largest_unit(self.pages)
    }

    /// Returns the queue in which the reads are in flight.
    #[must_use]
    pub fn queue(&self) -> &dyn TransferQueue {
        self.reads.queue()
    }

    /// Serves one fault. The faulting thread is woken at once, or when its page has been read.
    pub fn serve<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        touch: Touch,
    ) -> Result<(), PagerError> {
        let began = Instant::now();
        pager.count(touch.page, Count::Faults, 1);
        let (access, upto) = self.observe(pager, touch, began);
        let (reason, frames) = (FillReason::Fault, FrameSource::Allocated);
        let mut request = FillRequest { touch, access, upto, reason, frames };
        // The number of failed attempts of the evicting thread when this fault first found no room.
        let mut stuck_before = None;
        let mut now = began;
        let incoming = loop {
            let mut inner = pager.lock();
            inner.room_wanted = 0;
            if let Some(refill) = pager.begin_refill(&mut inner, touch.page) {
                drop(inner);
                return pager.refill(&refill, began);
            }
            let admission = if inner.is_copied(touch.page) {
                Admission::NoRoom(1)
            } else {
                pager.admit(&mut inner, &request, now)?
            };
            match admission {
                settled @ (Admission::Resident | Admission::InFlight) => {
                    drop(inner);
                    if matches!(settled, Admission::Resident) {
                        pager.kernel.wake(touch.page..touch.page + 1);
                    }
                    pager.count(touch.page, Count::WaitNs, between(began, Instant::now()));
                    return Ok(());
                }
                Admission::Begun(incoming) => break incoming,
                Admission::NoRoom(pages) => {
                    request.upto = 0; // there may be room for the unit alone
                    let stuck = *stuck_before.get_or_insert(inner.stuck);
                    if let Some(incoming) = self.wait_for_room(pager, inner, (&request, pages), stuck, now)? {
                        break incoming;
                    }
                    let waited = core::mem::replace(&mut now, Instant::now());
                    pager.count(touch.page, Count::RoomNs, between(waited, now));
                }
            }
        };
        self.prefetch_queue.remove_first(&incoming.plan.range);
        pager.notify_if_low(now);
        if incoming.plan.from == PageState::Zero {
            self.fill_zero(pager, incoming, began)
        } else {
            self.start(pager, incoming, Some(began))
        }
    }

    /// Has the evicting thread make room for the `pages` pages of a fill, and waits for it, for at most [`ROOM_WAIT`].
    /// If nothing can be evicted, begins the fill of the page over the limit instead, and returns it. `stuck` is the
    /// number of failed attempts of the evicting thread when this fault first found no room.
    fn wait_for_room<'a, K: Kernel, S: PageStore>(
        &mut self,
        pager: &'a Pager<K, S>,
        mut inner: StateGuard<'a>,
        (request, pages): (&FillRequest, usize),
        stuck: u64,
        now: Instant,
    ) -> Result<Option<Incoming>, PagerError> {
        inner.found_no_room(pages, now);
        inner.room_wanted = pages;
        pager.reclaim_needed.notify_all();
        if inner.nothing_can_leave(stuck, now)
            && let Some(incoming) = pager.admit_over_limit(&mut inner, request, now)
        {
            inner.room_wanted = 0;
            return Ok(Some(incoming));
        }
        // Pages of reads that have ended can be evicted.
        if self.reads.len() > 0 {
            drop(inner);
            self.reap(pager, Duration::ZERO)?;
            inner = pager.lock();
        }
        if inner.occupied() + pages > inner.local {
            drop(pager.io_done.wait_at_most(inner, ROOM_WAIT));
        }
        Ok(None)
    }

    /// Reports a fault, or a touch of a page whose prefetch is in flight, to the streams. Returns how they classify the
    /// access, and the end of the new pages that are filled along with a new page; 0 for the transfer unit alone.
    fn observe<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        touch: Touch,
        now: Instant,
    ) -> (Access, PageNumber) {
        let mut inner = pager.lock();
        let state = inner.pages[touch.page].state;
        // Only the first such touch is told to the streams: it clears the flag.
        let late = state == PageState::Filling && inner.pages.take_prefetched(touch.page);
        if state.is_resident() && !late {
            return (Access::Dense, 0);
        }
        let new = state == PageState::Zero;
        if late {
            for read in self.reads.iter_mut().filter(|read| read.incoming.plan.range.contains(&touch.page)) {
                read.waited_since.get_or_insert(now);
            }
            pager.count(touch.page, Count::PrefetchHits, 1);
        }
        self.prefetch_queue.clear();
        let bounds = pager.bounds.around(touch.page);
        let (access, hits) = inner.observe_fault(touch, &bounds, &mut self.prefetch_queue);
        pager.count(touch.page, Count::PrefetchHits, hits as u64);
        let upto = if new { inner.coalesce(touch.page, access, NEW_PAGES, &self.prefetch_queue) } else { 0 };
        (access, upto)
    }

    fn fill_zero<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        incoming: Incoming,
        began: Instant,
    ) -> Result<(), PagerError> {
        let (range, page) = (incoming.plan.range.clone(), incoming.touch.page);
        let asked = page..page + 1;
        let order = FillOrder::new(&range, asked.clone(), asked);
        pager.fill_zero(&order, incoming.plan.is_writable(), &self.zeros)?;
        let now = Instant::now();
        if pager.commit(incoming, between(began, now) + WAKE_NS) {
            pager.kernel.wake(range);
        }
        pager.count(page, Count::WaitNs, between(began, now));
        pager.stall_time.add(began, now);
        Ok(())
    }

    /// Returns whether only faults have reads in flight, and there is room for another read.
    pub(crate) fn may_recall(&self) -> bool {
        self.prefetching == 0 && self.reads.free() > FAULT_SLOTS
    }

    /// Starts the read of pages that no thread waits for.
    pub(crate) fn start_recall<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        incoming: Incoming,
    ) -> Result<(), PagerError> {
        self.start(pager, incoming, None)?;
        self.reads.flush();
        Ok(())
    }

    /// Starts the read of pages, for which a thread waits since `waited_since`, or which are prefetched (`None`).
    fn start<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        incoming: Incoming,
        waited_since: Option<Instant>,
    ) -> Result<(), PagerError> {
        let size = pager.kernel.page();
        let memory = loop {
            match self.reads.take(incoming.plan.range.len() * size) {
                Some(memory) => break memory,
                None => _ = self.reap(pager, Duration::from_secs(1))?,
            }
        };
        let at = (incoming.plan.range.start * size) as u64;
        let prefetch = waited_since.is_none();
        self.prefetching += if prefetch { incoming.plan.range.len() } else { 0 };
        self.reads.start(Direction::Read, at, memory, Read { incoming, prefetch, waited_since });
        pager.read_times.in_flight(&pager.counters, self.reads.len());
        Ok(())
    }

    /// Starts the reads of predicted units, as far as local memory has room, and submits all started reads to the
    /// store. Returns whether it started any.
    pub fn prefetch<K: Kernel, S: PageStore>(&mut self, pager: &Pager<K, S>) -> Result<bool, PagerError> {
        let (now, mut any) = (Instant::now(), false);
        while self.reads.free() > FAULT_SLOTS
            && let Some((page, access)) = self.prefetch_queue.first()
        {
            let mut inner = pager.lock();
            if inner.pages[page].state != PageState::SwappedOut {
                self.prefetch_queue.pop(); // it was filled, or there is nothing to read
                continue;
            }
            // Memory of reads remains for a fault.
            let most = inner.unit_at(page, access).max(PREFETCH_PAGES);
            if self.prefetching > 0 && self.prefetching + most > self.pages / 2 {
                break;
            }
            // Units that do not fit stay in the queue.
            let room = inner.local.saturating_sub(inner.occupied()).min(PREFETCH_PAGES);
            let upto = inner.coalesce(page, access, room, &self.prefetch_queue);
            let touch = Touch { page, write: false };
            let (reason, frames) = (FillReason::Prefetch, FrameSource::Allocated);
            let request = FillRequest { touch, access, upto, reason, frames };
            match pager.admit(&mut inner, &request, now)? {
                Admission::Resident | Admission::InFlight => _ = self.prefetch_queue.pop(),
                Admission::Begun(incoming) => {
                    drop(inner);
                    self.prefetch_queue.remove_first(&incoming.plan.range);
                    any = true;
                    self.start(pager, incoming, None)?;
                }
                Admission::NoRoom(pages) => {
                    // Tried again when there is room: a fault would have to wait for it, too.
                    if !core::mem::replace(&mut self.short_of_room, true) {
                        inner.found_no_room(pages, now);
                    }
                    drop(inner);
                    pager.reclaim_needed.notify_all();
                    self.reads.flush();
                    return Ok(any);
                }
            }
        }
        self.short_of_room = false;
        if any {
            pager.notify_if_low(now);
        }
        self.reads.flush();
        Ok(any)
    }

    /// Fills the pages of reads that have ended, and wakes the threads that wait for them. If no read has ended, waits
    /// until one does, for at most `wait`. Returns whether a read has ended.
    pub fn reap<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        wait: Duration,
    ) -> Result<bool, PagerError> {
        let ended = self.reads.reap(wait);
        let any = !ended.is_empty();
        for read in ended {
            self.finish(pager, read)?;
        }
        Ok(any)
    }

    fn finish<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        EndedTransfer { of: read, memory, result, ended, latency, service }: EndedTransfer<Read>,
    ) -> Result<(), PagerError> {
        let Read { incoming, prefetch, waited_since } = read;
        result?;
        self.prefetching -= if prefetch { incoming.plan.range.len() } else { 0 };
        pager.read_times.ended(&pager.counters, latency, service);
        let waited = waited_since.map_or(Duration::ZERO, |since| ended.saturating_duration_since(since));
        pager.counters.add(Count::HiddenNs, as_nanoseconds(latency.saturating_sub(waited)));
        let (range, asked) = (incoming.plan.range.clone(), incoming.touch.page);
        // SAFETY: the transfer of these bytes has ended, and none other has them before they are given back.
        let bytes = unsafe { self.reads.bytes(&memory) };
        pager.check(&range, &incoming.plan.pages, bytes)?;
        let first = if waited_since.is_some() { asked..asked + 1 } else { range.start..range.start };
        let order = FillOrder::new(&range, first.clone(), first);
        pager.fill_from(&order, &incoming.plan.pages, bytes)?;
        self.reads.give_back(&memory);
        // The cost by which the transfer size is chosen: what a thread waited, or the service time if none did.
        let now = Instant::now();
        let cost = waited_since.map_or(as_nanoseconds(service), |since| between(since, now) + WAKE_NS);
        if pager.commit(incoming, cost) {
            pager.kernel.wake(range);
        }
        if let Some(since) = waited_since {
            pager.count(asked, Count::WaitNs, between(since, now));
            pager.stall_time.add(since, now);
        }
        Ok(())
    }

    /// Waits until all reads in flight have ended, and empties the prefetch queue.
    pub fn drain<K: Kernel, S: PageStore>(&mut self, pager: &Pager<K, S>) -> Result<(), PagerError> {
        self.prefetch_queue.clear();
        while self.reads.len() > 0 {
            self.reap(pager, Duration::from_secs(1))?;
        }
        Ok(())
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Wakes the evicting thread if fewer pages are free than it should keep free.
    fn notify_if_low(&self, now: Instant) {
        let inner = self.lock();
        if inner.wanted_evictions(now) > 0 || inner.has_untouched_to_check() {
            drop(inner);
            self.reclaim_needed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_reads_is_a_share_of_local_memory() {
        let sizes = |local| (queue_pages(local, READ_PAGES), largest_unit(queue_pages(local, READ_PAGES)));
        assert_eq!([256, 4608].map(sizes), [(128, 64), (144, 64)]);
        assert_eq!([12_288, 1 << 20].map(sizes), [(384, 256), (READ_PAGES, MAX_TRANSFER)]);
    }
}
