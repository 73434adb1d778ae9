//! Evicts pages to a store whose transfers take time: ahead of need, with several writes in flight.
//!
//! ```text
//!   step: victims, in the order of their pages ──► clean: dropped at once
//!                                              └─► dirty: moved out, copied to the queue ──► write ──► evicted
//! ```
//! A write is made from a copy that does not change, and the checksum is that of the copy. A page is `Leaving` until
//! its write has ended, or until a touch fills it again from the copy (`refill.rs`). There is never more than one write
//! of a page in flight.

use crate::counters::as_nanoseconds;
use crate::in_flight::{EndedTransfer, InFlight};
use crate::page::{PageState, runs};
use crate::page_table::Contents;
use crate::pager::{Pager, between};
use crate::state::{BATCH, IDLE_SLEEP, StateGuard};
use crate::victims::TRIES;
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::eviction_cost::WriteCosts;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_store::{Direction, PageStore, TransferQueue};
use std::time::{Duration, Instant};

/// Largest number of writes in flight.
pub(crate) const WRITE_DEPTH: usize = 16;
/// Largest size in pages of the memory that the writes in flight share.
pub(crate) const WRITE_PAGES: usize = MAX_TRANSFER;
/// Largest number of victims that are selected at once. A touch may have to wait for the writes of all of them.
const MOST_AT_ONCE: usize = 512;

/// Evicts pages to a store whose writes run while the evicting thread continues. It belongs to that thread.
#[derive(Debug)]
pub struct AsyncEvictor {
    writes: InFlight<Write>,
    /// Largest number of pages of one write: half of the queue's memory.
    most: usize,
}

#[derive(Debug)]
struct Write {
    range: Range<PageNumber>,
    /// The checksum of each page of `range`.
    sums: Vec<u64>,
}

impl AsyncEvictor {
    /// Makes an evictor over a queue whose memory has room for `pages` pages of `page` bytes each.
    #[must_use]
    pub fn new(queue: Box<dyn TransferQueue>, pages: usize, page: usize) -> AsyncEvictor {
        AsyncEvictor { writes: InFlight::new(queue, pages * page), most: (pages / 2).max(1) }
    }

    /// Evicts some pages, if local memory has little room, and ends the evictions of pages whose writes have ended.
    /// Returns whether there was anything to do.
    pub fn step<K: Kernel, S: PageStore>(&mut self, pager: &Pager<K, S>) -> Result<bool, PagerError> {
        // New pages that were filled along with others and never written are evicted first (`speculative.rs`).
        if pager.check_untouched()? {
            return Ok(true);
        }
        let evicted = self.evict(pager, pager.lock(), Instant::now())?;
        Ok(self.reap(pager, Duration::ZERO)? || evicted)
    }

    fn evict<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        mut inner: StateGuard<'_>,
        now: Instant,
    ) -> Result<bool, PagerError> {
        let wanted = inner.wanted_evictions(now);
        if wanted == 0 {
            return Ok(false);
        }
        let batch = wanted.clamp(BATCH[1].min(inner.local / 64), MOST_AT_ONCE);
        let mut tries = TRIES; // counted down
        let victims = inner.select_victims(batch, &mut tries, now).runs;
        inner.leaving += victims.iter().map(|(range, _)| range.len()).sum::<usize>();
        inner.note_victims(!victims.is_empty(), now);
        drop(inner);
        if victims.is_empty() {
            return Ok(false);
        }
        let began = Instant::now();
        let mut gone = pager.forget_clean(&victims)?;
        pager.finish_leaving(
            pager.lock(),
            &gone,
            gone.len(),
            between(began, Instant::now()),
            WriteCosts::default(),
        );
        for (range, _) in victims.iter().filter(|(_, state)| *state != PageState::Clean) {
            gone.clear();
            let (mut next, mut stay) = (range.start, Vec::new());
            pager.kernel.take(range.clone(), &mut |first, bytes| {
                if next < first {
                    stay.push(next..first);
                }
                next = first + bytes.len() / pager.kernel.page();
                self.write_changed(pager, first, bytes, &mut gone)
            })?;
            if next < range.end {
                stay.push(next..range.end);
            }
            pager.finish_leaving(pager.lock(), &gone, 0, 0, WriteCosts::default());
            for pages in &stay {
                pager.stay(pages, Count::Pinned, now);
            }
        }
        self.writes.flush();
        Ok(true)
    }

    /// Starts the writes of changed pages that were moved out of the program. Adds the pages that need no write to
    /// `gone`.
    fn write_changed<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        first: PageNumber,
        bytes: &[u8],
        gone: &mut Vec<Range<PageNumber>>,
    ) -> Result<(), PagerError> {
        let size = pager.kernel.page();
        let contents = pager.contents_of(first, bytes);
        let all = first..first + bytes.len() / size;
        for (run, changed) in runs(all, |page| Some(contents[page - first].changed)) {
            let part = &contents[run.start - first..run.end - first];
            if !changed {
                pager.lock().pages.note_contents(run.start, part);
                gone.push(run);
                continue;
            }
            for start in run.clone().step_by(self.most) {
                let pages = start..run.end.min(start + self.most);
                let sums = part[pages.start - run.start..pages.end - run.start].iter();
                let sums = sums.map(|page| page.sum.unwrap_or(0)).collect();
                let at = (pages.start - first) * size..(pages.end - first) * size;
                self.start(pager, pages, sums, &bytes[at])?;
            }
        }
        Ok(())
    }

    fn start<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        range: Range<PageNumber>,
        sums: Vec<u64>,
        bytes: &[u8],
    ) -> Result<(), PagerError> {
        let memory = loop {
            match self.writes.take(bytes.len()) {
                Some(memory) => break memory,
                None => _ = self.reap(pager, Duration::from_secs(1))?,
            }
        };
        // SAFETY: the transfer of this memory is started below.
        let copy = unsafe { self.writes.bytes(&memory) };
        copy.copy_from_slice(bytes);
        let copy = copy.as_ptr();
        let at = (range.start * pager.kernel.page()) as u64;
        self.writes.start(Direction::Write, at, memory, Write { range: range.clone(), sums });
        pager.write_times.in_flight(&pager.counters, self.writes.len());
        let inner = pager.begin_write(&range, copy);
        pager.landed(inner, core::slice::from_ref(&range)); // threads that wait for these pages touch them again
        Ok(())
    }

    /// Ends the evictions of pages whose writes have ended. If no write has ended, waits until one does, for at most
    /// `wait`. Returns whether a write has ended.
    pub fn reap<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        wait: Duration,
    ) -> Result<bool, PagerError> {
        let ended = self.writes.reap(wait);
        let any = !ended.is_empty();
        for write in ended {
            self.finish(pager, write)?;
        }
        Ok(any)
    }

    fn finish<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        EndedTransfer { of: Write { range, sums }, memory, result, ended, latency, service }: EndedTransfer<
            Write,
        >,
    ) -> Result<(), PagerError> {
        let len = memory.len() as u64;
        match result {
            Ok(()) => {
                let ns = as_nanoseconds(service);
                pager.write_times.ended(&pager.counters, latency, service);
                let contents: Vec<_> =
                    sums.into_iter().map(|sum| Contents { sum: Some(sum), changed: true }).collect();
                let (mut inner, gone) = pager.end_write(&range);
                inner.pages.note_contents(range.start, &contents);
                pager.count(range.start, Count::WriteBacks, range.len() as u64);
                pager.count(range.start, Count::BytesOut, len);
                let mut writes = WriteCosts::default();
                writes.add_write(range.len(), ns);
                pager.finish_leaving(inner, &gone, 1, ns, writes);
            }
            Err(error) if error.is_full() => {
                let (mut inner, leaving) = pager.end_write(&range);
                inner.pages.forget_stored(range.clone());
                inner.full = Some(ended);
                drop(inner);
                let size = pager.kernel.page();
                for run in &leaving {
                    let at = memory.start + (run.start - range.start) * size;
                    // SAFETY: the transfer of these bytes has ended, and none other has them before they are given
                    // back.
                    let bytes = unsafe { self.writes.bytes(&(at..at + run.len() * size)) };
                    pager.kernel.fill(run.start, bytes, false)?;
                    pager.stay(run, Count::NoRoom, ended);
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.writes.give_back(&memory);
        Ok(())
    }

    /// Waits until all writes in flight have ended.
    pub fn drain<K: Kernel, S: PageStore>(&mut self, pager: &Pager<K, S>) -> Result<(), PagerError> {
        while self.writes.len() > 0 {
            self.reap(pager, Duration::from_secs(1))?;
        }
        Ok(())
    }

    /// Sleeps until a write has ended or a fault has taken free pages. If `hurry` returns true, it sleeps for at most a
    /// millisecond. A thread that changes the answer of `hurry` to true takes the pager's lock before it notifies the
    /// evicting thread.
    pub fn wait<K: Kernel, S: PageStore>(
        &mut self,
        pager: &Pager<K, S>,
        hurry: impl Fn() -> bool,
    ) -> Result<(), PagerError> {
        if self.writes.len() > 0 {
            return self.reap(pager, Duration::from_millis(1)).map(drop);
        }
        let inner = pager.lock();
        // If there is something to do and it could not be done, all resident pages are pinned or in flight.
        let nothing_to_do = inner.wanted_evictions(Instant::now()) == 0 && !inner.has_untouched_to_check();
        let milliseconds = if nothing_to_do && !hurry() { IDLE_SLEEP.into() } else { 1 };
        drop(pager.reclaim_needed.wait_at_most(inner, milliseconds));
        Ok(())
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Ends the evictions of the `Leaving` pages `gone`. They took `ns` nanoseconds for `units` transfer units.
    fn finish_leaving(
        &self,
        mut inner: StateGuard<'_>,
        gone: &[Range<PageNumber>],
        units: usize,
        ns: u64,
        writes: WriteCosts,
    ) {
        if gone.is_empty() {
            return;
        }
        let pages = gone.iter().map(Range::len).sum();
        inner.leaving -= pages;
        inner.free_reserve.evicted(pages);
        inner.eviction_cost.evicted(units, pages, ns, writes);
        self.finish_eviction(&mut inner, gone);
        self.landed(inner, gone);
    }

    /// Makes `Leaving` pages that cannot be evicted now resident again, and counts the `cause`.
    fn stay(&self, pages: &Range<PageNumber>, cause: Count, now: Instant) {
        let mut inner = self.lock();
        inner.leaving -= pages.len();
        for (run, part) in runs(pages.clone(), |page| Some(inner.pages[page].part())) {
            inner.stay(&run, part, now);
        }
        self.count(pages.start, cause, pages.len() as u64);
        self.landed(inner, core::slice::from_ref(pages));
    }

    /// Wakes the threads that wait for pages whose transition has ended.
    fn landed(&self, mut inner: StateGuard<'_>, pages: &[Range<PageNumber>]) {
        self.tell(&inner);
        self.io_done.notify_all();
        pages.iter().for_each(|range| self.wake_waiting(&mut inner, range.clone()));
    }
}
