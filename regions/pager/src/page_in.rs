//! The way in: faults are served, foreseen pages fetched.

use crate::page::{PageState, checksum, runs};
use crate::pager::{Buffer, Pager, Touch, nanoseconds, number};
use crate::state::{FillPlan, LARGE_UNIT, PagerState, WRITE_AHEAD};
use crate::{Count, FillOrder, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::PageRun;
use largesse_policy::streams::Access;
use largesse_policy::transfer::{TransferUnits, first_unit};
use largesse_store::PageStore;
use std::sync::MutexGuard;
use std::time::Instant;

/// Stopping and waking the thread that faults, which no clock here sees: nanoseconds.
const WAKE_NS: u64 = 8_000;
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
            if small || buffer.own {
                upto = inner.coalesce(touch.page, access, &mut buffer.prefetch_queue);
                drop(inner);
                while let Some(next) = buffer.prefetch_queue.pop() {
                    self.prefetch(next, true, buffer)?;
                }
                inner = self.lock();
            }
        }
        let waking = if buffer.own { SIGNAL_NS } else { WAKE_NS };
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
        let upto = if at_any_price { inner.coalesce(page, access, &mut buffer.prefetch_queue) } else { 0 };
        let set = inner.fill_range(page, access, 0, &self.bounds.around(page));
        if !at_any_price && inner.resident + set.len() > inner.local {
            return Ok(());
        }
        let waiting = self.page_in_range(inner, (Touch { page, write: false }, access), upto, 0, buffer)?;
        self.kernel.wake(waiting);
        Ok(())
    }

    /// Brings the set of a page, and what follows it `upto` there, which costs `waking` beside what is seen here: nothing where
    /// nobody waits, so that the set is foreseen as all that follows it. Returns the pages for which somebody waits, and was
    /// not woken.
    fn page_in_range<'a>(
        &'a self,
        mut inner: MutexGuard<'a, PagerState>,
        (touch, access): (Touch, Access),
        mut upto: PageNumber,
        waking: u64,
        buffer: &mut Buffer,
    ) -> Result<Range<PageNumber>, PagerError> {
        let mapped = usize::try_from(self.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
        inner.mapped = mapped / self.kernel.page();
        let (range, from) = loop {
            let page = &mut inner.pages[touch.page];
            match page.state {
                PageState::Filling | PageState::Leaving => {
                    page.waited = true;
                    return Ok(0..0);
                }
                PageState::Dirty | PageState::Outside => return Ok(touch.page..touch.page + 1),
                PageState::Clean => {
                    self.touch_clean(inner, touch)?;
                    return Ok(touch.page..touch.page + 1);
                }
                PageState::Zero | PageState::SwappedOut => {}
            }
            let range = inner.fill_range(touch.page, access, upto, &self.bounds.around(touch.page));
            if inner.resident + range.len() <= inner.local {
                break (range, inner.pages[touch.page].state);
            }
            let waited = Instant::now();
            let roomy;
            (inner, roomy) = self.make_room(inner, range.len())?;
            self.count(touch.page, Count::RoomNs, nanoseconds(waited));
            if !roomy && upto > 0 {
                upto = 0; // there may be room for the set alone
            } else if !roomy {
                // Everything is in flight or pinned: one page over the limit, and counted.
                self.count(touch.page, Count::OverLimit, 1);
                let from = inner.pages[touch.page].state;
                if !from.is_resident() {
                    break (touch.page..touch.page + 1, from);
                }
            }
        };
        let bytes = (range.len() * self.kernel.page()) as u64;
        let units = inner.units_in(&range, access);
        let backs: Vec<_> =
            units.iter().map(|set| inner.back(touch.page.clamp(set.start, set.end - 1))).collect();
        // Where the store has no room, what was not changed must be known for that: it alone can leave.
        let reuses = self.kernel.reuses(range.len()) && !inner.store_is_full();
        let plan: Vec<_> = range.clone().map(|page| inner.plan(page, touch, reuses)).collect();
        if from == PageState::SwappedOut {
            for (set, back) in units.iter().zip(&backs) {
                inner.note_refault_of_unit(set.start);
                inner.refaulted(set.len(), *back);
            }
            self.uncount(range.start, Count::StoredBytes, bytes);
        }
        for set in &units {
            let prefetched = from == PageState::SwappedOut && (waking == 0 || !set.contains(&touch.page));
            for page in &mut inner.pages[set.clone()] {
                (page.state, page.prefetched, page.access) = (PageState::Filling, prefetched, access);
            }
            if prefetched {
                self.count(set.start, Count::Prefetched, set.len() as u64);
            }
        }
        inner.resident += range.len();
        inner.filled(range.len());
        self.kernel.serve_on_cpu(inner.reclaim_mode.on_cpu());
        self.count(range.start, Count::ResidentBytes, bytes);
        let behind = inner.resident + inner.low_watermark() > inner.local || inner.has_untouched_to_check();
        drop(inner);
        if behind {
            self.reclaim_needed.notify_all();
        }
        let served = Instant::now();
        // Who waits on another processor wakes up while the rest is done, which takes as long; also for a page of a few, while
        // the others come. Of many the thread would overtake those who come, and wait again.
        let apart = waking > 0 && !buffer.own;
        let asked = touch.page..touch.page + 1;
        let first = if apart && range.len() <= FEW { asked.clone() } else { range.start..range.start };
        let order = FillOrder::new(&range, first, if apart { asked } else { 0..0 });
        match from {
            PageState::Zero => self.fill_zero(&order, touch.write, buffer)?,
            _ => self.fill(&order, &plan, buffer)?,
        }

        let mut inner = self.lock();
        let mut waited = false;
        for number in range.clone() {
            let page = &mut inner.pages[number];
            let dirty = if from == PageState::Zero { touch.write } else { plan[number - range.start].dirty };
            page.state = if dirty { PageState::Dirty } else { PageState::Clean };
            waited |= core::mem::take(&mut page.waited);
        }
        let costs = inner.eviction_cost.costs(self.lap(touch.page));
        let (local, mapped) = (inner.local, inner.mapped);
        let took = nanoseconds(served) + waking;
        let unseen = from == PageState::Zero && backs.iter().all(Option::is_none);
        let later = unseen && inner.check_later(range.clone());
        for (set, back) in units.iter().zip(backs).filter(|_| !later) {
            inner.queue.insert(PageRun { first: number(set.start), pages: number(set.len()) }, local, back);
            // New pages come once, and say nothing of what comes back.
            if let (TransferUnits::Auto(regions), PageState::SwappedOut) = (&mut inner.units, from) {
                let ns = took * set.len() as u64 / range.len() as u64;
                let within = self.bounds.around(set.start);
                regions.filled((set.start, set.len()), access, &within, ns, first_unit(local, mapped), costs);
            }
        }
        inner.tidy();
        self.tell(&inner);
        if let Some(words) = self.words_of(touch.page) {
            self.publish_units(&words.counts, &inner, &self.bounds.around(touch.page));
        }
        drop(inner);
        self.io_done.notify_all();
        Ok(if waited || waking > 0 && !apart { range } else { 0..0 })
    }

    /// A lap of the trial in the segment of a page: as many pages as hold something there, here or away.
    fn lap(&self, page: PageNumber) -> usize {
        let counts = self.words_of(page).map_or(&self.counters, |words| &words.counts);
        let bytes = counts.get(Count::StoredBytes) + counts.get(Count::ResidentBytes);
        usize::try_from(bytes).unwrap_or(0) / self.kernel.page()
    }

    /// The page is here: a write makes it and its next neighbours dirty, a read only came too late.
    fn touch_clean(&self, mut inner: MutexGuard<'_, PagerState>, touch: Touch) -> Result<(), PagerError> {
        if !touch.write {
            return Ok(());
        }
        self.count(touch.page, Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let set = inner.units.at(touch.page, Access::Dense);
        let first = (touch.page / set * set).max(bounds.start);
        let end = (first + set).min(bounds.end);
        let near = touch.page..touch.page + WRITE_AHEAD;
        let written = runs(first..end, |number| {
            let page = &inner.pages[number];
            (page.state == PageState::Clean && (near.contains(&number) || page.changed > 0)).then_some(())
        });
        for (range, ()) in written {
            // Under the lock: nobody may take the pages for clean ones in between.
            for page in range.clone() {
                inner.pages[page].state = PageState::Dirty;
            }
            self.kernel.protect(range, false)?;
        }
        Ok(())
    }

    /// Makes new pages. `dirty`: who writes to one new page writes to its neighbours, so
    /// that all of them may be written, without a second fault for each.
    fn fill_zero(&self, order: &FillOrder, dirty: bool, buffer: &Buffer) -> Result<(), PagerError> {
        order.each(&self.kernel, |part| {
            let len = part.len() * self.kernel.page();
            self.kernel.fill(part.start, &buffer.zeros[..len], !dirty)
        })?;
        let range = order.range();
        self.count(range.start, Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Brings pages from the store; those of `plan` that are dirty at once writable.
    fn fill(&self, order: &FillOrder, plan: &[FillPlan], buffer: &mut Buffer) -> Result<(), PagerError> {
        let (range, page) = (&order.range(), self.kernel.page());
        let bytes = &mut buffer.bytes[..range.len() * page];
        if plan.iter().all(|page| page.dirty) {
            return self.kernel.page_in(order, bytes, &mut |room| self.fetch(range, plan, room));
        }
        self.fetch(range, plan, bytes)?;
        order.each(&self.kernel, |part| {
            for (part, dirty) in runs(part.clone(), |number| Some(plan[number - range.start].dirty)) {
                let at = (part.start - range.start) * page;
                self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Reads pages from the store: what is not what was sent ends the program.
    fn fetch(&self, range: &Range<PageNumber>, plan: &[FillPlan], room: &mut [u8]) -> Result<(), PagerError> {
        let page = self.kernel.page();
        self.store.read((range.start * page) as u64, room)?;
        self.count(range.start, Count::Fills, range.len() as u64);
        self.count(range.start, Count::BytesIn, room.len() as u64);
        for ((number, plan), bytes) in range.clone().zip(plan).zip(room.chunks_exact(page)) {
            let read = checksum(bytes);
            if read != plan.sum {
                return Err(PagerError::Damaged { page: number, sent: plan.sum, read });
            }
        }
        Ok(())
    }
}
