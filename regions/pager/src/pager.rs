//! The type `Pager`: its parts, its settings while it runs, and its counters.
//!
//! `page_table.rs` has the states of pages. `page_in.rs` and `async_fill.rs` page in, `evict.rs` and `async_evict.rs`
//! evict, the first of each two for stores whose transfers end at once, the second for stores whose transfers take
//! time. `contents.rs` has the calls of the program about its pages, `pin.rs` those for system calls that use them.
//!
//! One lock guards the page table and the policies. Transfers run outside of it, on pages that are in flight and belong
//! to the thread that started the transition. Another thread that touches such a page marks it, and is woken when the
//! transition ends.
//!
//! # No write is lost
//! A changed page is taken from the program in one step before it is read: moved away, or, where the kernel cannot do
//! that, protected against writing, copied and forgotten (`staging.rs`). A touch in between is a fault: its thread
//! finds the page `Leaving`, waits, and touches it again after the eviction. Pages to which a device writes stay
//! resident.

use crate::counters::as_nanoseconds;
use crate::lock::CountingCondvar;
use crate::lock::{RankedMutex, STATE};
use crate::page_table::PageTable;
use crate::state::{PagerState, StateGuard};
use crate::transfer_times::TransferTimes;
use crate::{Count, Counters, Kernel, MOST_SEGMENTS, SegmentWords};
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_pages::Table;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Refaults;
use largesse_policy::stall_time::StallTime;
use largesse_policy::transfer::{ComputeCore, Iteration, TransferUnits};
use largesse_policy::{Policies, max_prefetch};
use largesse_store::{Direction, PageStore, TransferQueue};
use std::time::{Duration, Instant};

/// Nanoseconds to stop the faulting thread and to wake it again, which no clock reading of the pager covers.
pub(crate) const WAKE_NS: u64 = 8_000;
/// Smallest size of local memory, in pages.
pub const LEAST_LOCAL: usize = 64;

/// Far memory over a store: keeps a bounded number of pages resident, and moves the others to the store and back.
#[derive(Debug)]
pub struct Pager<K, S> {
    pub(crate) kernel: K,
    pub(crate) store: S,
    pub(crate) inner: RankedMutex<PagerState, STATE>,
    /// Threads wait here for the end of a page's transition; each end notifies it.
    pub(crate) io_done: CountingCondvar,
    /// Notified when the evicting thread should check whether there is work.
    pub(crate) reclaim_needed: CountingCondvar,
    pub(crate) bounds: crate::Segments,
    /// Counters of all segments together, since the start.
    pub counters: Counters,
    pub(crate) stall_time: StallTime,
    pub(crate) read_times: TransferTimes,
    pub(crate) write_times: TransferTimes,
    /// Whether pages may have to be fetched back (`recall.rs`).
    pub(crate) recalls: AtomicBool,
    /// Counters of each segment: the part of `counters` that happened there.
    pub(crate) segments: Table<SegmentWords>,
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Makes a pager for the pages of the segments `bounds`, of which at most `local` are resident. Returns `None` if
    /// the kernel has no address space for the page table.
    pub fn new(
        kernel: K,
        store: S,
        bounds: crate::Segments,
        local: usize,
        policies: Policies,
    ) -> Option<Pager<K, S>> {
        let pages = PageTable::new(bounds.pages())?;
        let inner = PagerState::new(pages, kernel.page(), local.max(LEAST_LOCAL), policies);
        kernel.keep(max_prefetch(inner.local));
        let segments = Table::<SegmentWords>::new(MOST_SEGMENTS)?;
        let counters = Counters::default();
        for (segment, words) in bounds.all().iter().zip(&*segments) {
            words.are_of(segment.start, segment.pages * kernel.page());
            counters.add(Count::Segments, 1);
        }
        let pager = Pager {
            kernel,
            store,
            inner: RankedMutex::new(inner),
            io_done: CountingCondvar::default(),
            reclaim_needed: CountingCondvar::default(),
            bounds,
            counters,
            stall_time: StallTime::new(Instant::now()),
            read_times: TransferTimes::new(Direction::Read),
            write_times: TransferTimes::new(Direction::Write),
            recalls: AtomicBool::new(false),
            segments,
        };
        pager.tell(&pager.lock());
        Some(pager)
    }

    /// Sets whether faults may be handled on the faulting CPU, where measurements show that this is faster.
    pub(crate) fn allow_on_cpu(&self, may: bool) {
        self.lock().reclaim_mode.allow_on_cpu(may);
    }

    /// Notes that transfers are made in queues like `queue`, and so run while the threads that started them continue.
    /// The memory of reads has room for transfer units of at most `largest` pages.
    pub(crate) fn transfer_asynchronously(&self, queue: &dyn TransferQueue, largest: usize) {
        let mut inner = self.lock();
        (inner.asynchronous, inner.largest_async) = (true, largest);
        drop(inner);
        self.counters.set(Count::Mechanism, queue.mechanism() as u64);
        self.counters.set(Count::Refusal, queue.refusal().map_or(0, c_int::cast_unsigned).into());
    }

    /// Notes that a fault waited too long for the on-CPU handler.
    pub(crate) fn note_late_on_cpu(&self) {
        let mut inner = self.lock();
        inner.reclaim_mode.note_late_on_cpu();
        self.kernel.serve_on_cpu(inner.reclaim_mode.on_cpu());
    }

    /// Adds to the number of bytes that the program may use in the segment of `page`.
    pub fn mapped_more(&self, page: PageNumber, bytes: usize) {
        self.count(page, Count::MappedBytes, bytes as u64);
    }

    /// Sets the label of the segment of `page`, a number for other processes that read its counters.
    pub fn set_label(&self, page: PageNumber, label: u64) {
        if let Some(words) = self.words_of(page) {
            words.label.store(label, Ordering::Relaxed); // Relaxed: for statistics
        }
    }

    /// Returns the counters of each segment. The first [`Count::Segments`] entries are in use.
    pub fn segments(&self) -> &[SegmentWords] {
        &self.segments
    }

    /// Publishes the number of resident bytes of the program that are not far memory.
    pub fn set_uncovered(&self, bytes: u64) {
        self.counters.set(Count::UncoveredBytes, bytes);
    }

    /// Returns the counts of refaulted pages by refault distance, since the start.
    pub fn refaults(&self) -> Refaults {
        *self.lock().queue.refaults()
    }

    /// Returns the time in which at least one thread waited for a fault to be served, since the start. Threads that
    /// wait at the same time count once.
    pub fn stalled(&self) -> Duration {
        self.stall_time.total()
    }

    /// Returns the kernel interface.
    pub const fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Returns the size in pages of the transfer units in the region, and for the kind of access, with the most recent
    /// fills.
    pub fn commonest_unit(&self) -> usize {
        self.lock().units.commonest()
    }

    /// Sets the size of all transfer units to `pages` pages, a power of two. Resident pages stay as they are. It is for
    /// tests, which change the size more often than any tuner.
    pub fn set_unit(&self, pages: usize) {
        debug_assert!(pages.is_power_of_two());
        self.lock().units = TransferUnits::Fixed(pages);
    }

    /// Notes the start of a compute core. The units that are paged in until its end are its working set.
    pub fn core_begins(&self) {
        let mut inner = self.lock();
        inner.core = (inner.core.0.wrapping_add(1).max(1), 0);
    }

    /// Notes the end of one iteration of a compute core, which took the time `took`. `core` chooses the transfer size
    /// for the next one.
    pub fn core_ends(&self, core: &mut ComputeCore, took: Duration) -> Iteration {
        let mut inner = self.lock();
        let now =
            Iteration { unit: inner.units.commonest(), working_set: inner.core.1, local: inner.local, took };
        inner.units = TransferUnits::Fixed(core.end(now));
        inner.core.1 = 0;
        self.tell(&inner);
        now
    }

    /// Sets the upper bound of resident pages, at least [`LEAST_LOCAL`].
    pub fn set_local(&self, pages: usize) {
        let pages = pages.max(LEAST_LOCAL);
        let mut inner = self.lock();
        inner.local = pages;
        self.tell(&inner);
        drop(inner);
        self.kernel.keep(max_prefetch(pages));
        self.reclaim_needed.notify_all();
    }

    /// Adds `more` to a counter: to that of all segments, and to that of the segment of `page`.
    pub(crate) fn count(&self, page: PageNumber, count: Count, more: u64) {
        self.counters.add(count, more);
        if let Some(words) = self.words_of(page) {
            words.counts.add(count, more);
        }
    }

    /// Subtracts `less` from a counter that shows a present state: from that of all segments, and from that of the
    /// segment of `page`.
    pub(crate) fn uncount(&self, page: PageNumber, count: Count, less: u64) {
        self.counters.sub(count, less);
        if let Some(words) = self.words_of(page) {
            words.counts.sub(count, less);
        }
    }

    /// Returns the counters of the segment of `page`; `None` if there are more segments than counters.
    pub(crate) fn words_of(&self, page: PageNumber) -> Option<&SegmentWords> {
        self.segments.get(self.bounds.place_of(page))
    }

    /// Publishes the present sizes of local memory and of transfer units in the counters.
    pub(crate) fn tell(&self, inner: &PagerState) {
        self.counters.set(Count::LocalBytes, (inner.local * self.kernel.page()) as u64);
        self.publish_units(&self.counters, inner, &(0..usize::MAX));
    }

    /// Publishes the transfer sizes of the pages `within` as counters of `counters`.
    pub(crate) fn publish_units(&self, counters: &Counters, inner: &PagerState, within: &Range<PageNumber>) {
        let words = [Count::SetBytes, Count::LeastSetBytes, Count::MostSetBytes];
        for (count, set) in words.into_iter().zip(inner.units.sizes(within)) {
            counters.set(count, (set * self.kernel.page()) as u64);
        }
    }

    /// Takes the pager's lock.
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        self.inner.lock()
    }
}

/// Returns the nanoseconds from `began` to `now`, 0 if `now` is earlier.
pub(crate) fn between(began: Instant, now: Instant) -> u64 {
    as_nanoseconds(now.saturating_duration_since(began))
}
