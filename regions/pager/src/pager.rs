//! The pager: states of pages, and the two ways between here and the store (`page_in.rs`, `evict.rs`). What the program
//! wants of its pages is in `contents.rs`.
//!
//! # Picture
//! ```text
//!        fault, zero                    fault, from the store
//!   Zero ─────────► Filling ──► Clean ◄───────────── Filling ◄── SwappedOut
//!     ▲                │          │ write                          ▲
//!     │                └──────► Dirty                              │
//!     └── all zero, or idle ─────┴──► Leaving ── written, or same ─┘
//! ```
//! One lock guards the states; transfers run outside of it, on pages that are in flight and belong
//! to the thread that put them there. Whoever meets a page in flight leaves a mark (`waited`) and is
//! woken at the end of the flight.
//!
//! # No write is lost
//! A page that changed is taken from the program in one step before it is read: moved away, or, where that is
//! not possible, protected against writing, copied and forgotten (`staging.rs`). A touch in between stops in a
//! fault, finds the page `Leaving`, and is repeated after it has left. What a device writes to stays.

use crate::lock::{RankedMutex, STATE};
use crate::notify::CountingCondvar;
use crate::page_table::PageTable;
use crate::pins::Pins;
use crate::state::{PagerState, StateGuard};
use crate::{Count, Counters, Kernel, MOST_SEGMENTS, SegmentWords};
use core::ops::Range;
use core::sync::atomic::Ordering;
use largesse_pages::Table;
use largesse_policy::PageNumber;
use largesse_policy::eviction_cost::EvictionCost;
use largesse_policy::reclaim_mode::ReclaimMode;
use largesse_policy::replacement::{Refaults, ReplacementQueue};
use largesse_policy::stall_time::StallTime;
use largesse_policy::streams::Streams;
use largesse_policy::transfer::{ComputeCore, Iteration, TransferSize, TransferUnits};
use largesse_policy::{FreeReserve, SpeculativePages, max_prefetch};
use largesse_store::{Mechanism, PageStore};
use std::time::{Duration, Instant};

/// Time to stop and wake the thread that faults, which no clock of the pager sees, in nanoseconds.
pub(crate) const WAKE_NS: u64 = 8_000;
/// Local memory is never less than this number of pages.
pub const LEAST_LOCAL: usize = 64;

/// Far memory over a store.
#[derive(Debug)]
pub struct Pager<K, S> {
    pub(crate) kernel: K,
    pub(crate) store: S,
    pub(crate) inner: RankedMutex<PagerState, STATE>,
    /// Something in flight has landed, or a page has left.
    pub(crate) io_done: CountingCondvar,
    /// The evictor has something to do.
    pub(crate) reclaim_needed: CountingCondvar,
    pub(crate) bounds: crate::Segments,
    /// Counts.
    pub counters: Counters,
    pub(crate) stall_time: StallTime,
    /// Of these, what happened in each segment.
    pub(crate) segments: Table<SegmentWords>,
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// A pager for the pages of `bounds`, of which `local` may be here. `None` when the kernel has no
    /// address space for the table.
    pub fn new(
        kernel: K,
        store: S,
        bounds: crate::Segments,
        local: usize,
        size: TransferSize,
        prefetch: bool,
    ) -> Option<Pager<K, S>> {
        let inner = PagerState {
            pages: PageTable::new(bounds.pages())?,
            queue: ReplacementQueue::new(),
            pins: Pins::default(),
            local: local.max(LEAST_LOCAL),
            mapped: 0,
            units: TransferUnits::new(size),
            streams: prefetch.then(Streams::new),
            mean_fill: 0.0,
            speculative: SpeculativePages::default(),
            reclaim_mode: ReclaimMode::default(),
            eviction_cost: EvictionCost::default(),
            full: None,
            deferred_since: None,
            asynchronous: false,
            leaving: 0,
            room_wanted: 0,
            stuck: 0,
            stuck_since_full: false,
            free_reserve: FreeReserve::default(),
            core: (0, 0),
        };
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
            segments,
        };
        pager.tell(&pager.lock());
        Some(pager)
    }

    /// Faults may be served on the processor of who waits, if that turns out better.
    pub(crate) fn allow_on_cpu(&self, may: bool) {
        self.lock().reclaim_mode.allow_on_cpu(may);
    }

    /// From now on transfers run while the threads that started them continue.
    pub(crate) fn transfer_asynchronously(&self, mechanism: Mechanism) {
        self.lock().asynchronous = true;
        self.counters.set(
            Count::Mechanism,
            match mechanism {
                Mechanism::IoUring => 1,
                Mechanism::Threads => 2,
            },
        );
    }

    /// Somebody waited there for too long.
    pub(crate) fn note_late_on_cpu(&self) {
        let mut inner = self.lock();
        inner.reclaim_mode.note_late_on_cpu();
        self.kernel.serve_on_cpu(inner.reclaim_mode.on_cpu());
    }

    /// The segment of `page` may hold so many bytes more.
    pub fn mapped_more(&self, page: PageNumber, bytes: usize) {
        self.count(page, Count::MappedBytes, bytes as u64);
    }

    /// What the segment of `page` is called, for readers of its words.
    pub fn set_label(&self, page: PageNumber, label: u64) {
        if let Some(words) = self.words_of(page) {
            words.label.store(label, Ordering::Relaxed); // Relaxed: for statistics
        }
    }

    /// The words of each segment, of which the first [`Count::Segments`] are in use.
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

    /// Returns the time in which at least one thread waited for a fault to be served, since the start. Threads that wait
    /// at the same time count once.
    pub fn stalled(&self) -> Duration {
        self.stall_time.total()
    }

    /// The kernel.
    pub const fn kernel(&self) -> &K {
        &self.kernel
    }

    /// Base pages that move together.
    pub fn set(&self) -> usize {
        self.lock().units.commonest()
    }

    /// From now on so many base pages move together (a power of two). Pages that came in other
    /// sets stay as they are. For tests, which change the size more often than any tuner.
    pub fn set_unit(&self, pages: usize) {
        debug_assert!(pages.is_power_of_two());
        self.lock().units = TransferUnits::Fixed(pages);
    }

    /// A compute core begins: what is swapped in from now on is its working set.
    pub fn core_begins(&self) {
        let mut inner = self.lock();
        inner.core = (inner.core.0.wrapping_add(1).max(1), 0);
    }

    /// It ends, after `took`; `core` decides the size of sets from here on.
    pub fn core_ends(&self, core: &mut ComputeCore, took: Duration) -> Iteration {
        let mut inner = self.lock();
        let now =
            Iteration { unit: inner.units.commonest(), working_set: inner.core.1, local: inner.local, took };
        inner.units = TransferUnits::Fixed(core.end(now));
        inner.core.1 = 0;
        self.tell(&inner);
        now
    }

    /// From now on at most so many pages are here.
    pub fn set_local(&self, pages: usize) {
        let pages = pages.max(LEAST_LOCAL);
        self.lock().local = pages;
        self.kernel.keep(max_prefetch(pages));
        self.reclaim_needed.notify_all();
    }

    /// Something happened to a page of a segment: counted in all, and there.
    pub(crate) fn count(&self, page: PageNumber, count: Count, more: u64) {
        self.counters.add(count, more);
        if let Some(words) = self.words_of(page) {
            words.counts.add(count, more);
        }
    }

    /// A word for "now" becomes less, in all and in the segment of a page.
    pub(crate) fn uncount(&self, page: PageNumber, count: Count, less: u64) {
        self.counters.sub(count, less);
        if let Some(words) = self.words_of(page) {
            words.counts.sub(count, less);
        }
    }

    pub(crate) fn words_of(&self, page: PageNumber) -> Option<&SegmentWords> {
        self.segments.get(self.bounds.place_of(page))
    }

    /// Brings the words for "now" up to date.
    pub(crate) fn tell(&self, inner: &PagerState) {
        self.counters.set(Count::LocalBytes, (inner.local * self.kernel.page()) as u64);
        self.publish_units(&self.counters, inner, &(0..usize::MAX));
    }

    /// What moves together among some pages.
    pub(crate) fn publish_units(&self, counters: &Counters, inner: &PagerState, within: &Range<PageNumber>) {
        let words = [Count::SetBytes, Count::LeastSetBytes, Count::MostSetBytes];
        for (count, set) in words.into_iter().zip(inner.units.sizes(within)) {
            counters.set(count, (set * self.kernel.page()) as u64);
        }
    }

    pub(crate) fn lock(&self) -> StateGuard<'_> {
        self.inner.lock()
    }
}

pub(crate) fn nanoseconds(since: Instant) -> u64 {
    as_nanoseconds(since.elapsed())
}

pub(crate) fn as_nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
