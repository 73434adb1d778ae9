//! The way in: faults are served, foreseen pages fetched.

use crate::page::{State, checksum, runs};
use crate::pager::{Buffer, Pager, Touch, nanoseconds, number};
use crate::state::{Coming, Inner, LARGE_SET, WRITE_AHEAD};
use crate::{Arrival, Count, Kernel, Trouble};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Run;
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
    pub fn serve(&self, touch: Touch, buffer: &mut Buffer) -> Result<Range<PageNumber>, Trouble> {
        let began = Instant::now();
        self.count(touch.page, Count::Faults, 1);
        let mut inner = self.lock();
        let (mut access, mut upto) = (Access::Dense, 0);
        if !inner.pages[touch.page].state.is_resident() {
            buffer.ahead.clear();
            let hits;
            (access, hits) = inner.look_ahead(touch, &self.bounds.around(touch.page), &mut buffer.ahead);
            self.count(touch.page, Count::PrefetchHits, hits as u64);
            let small = inner.set_at(touch.page, access) < LARGE_SET;
            if small || buffer.own {
                upto = inner.stretch(touch.page, access, &mut buffer.ahead);
                drop(inner);
                while let Some(ahead) = buffer.ahead.pop() {
                    self.foresee(ahead, true, buffer)?;
                }
                inner = self.lock();
            }
        }
        let waking = if buffer.own { SIGNAL_NS } else { WAKE_NS };
        let waiting = self.bring(inner, (touch, access), upto, waking, buffer)?;
        self.count(touch.page, Count::WaitNs, nanoseconds(began));
        self.stalled.waited(began, Instant::now());
        Ok(waiting)
    }

    /// What to do while nobody waits: fetch a set that is foreseen, or let pages leave. `false`: nothing.
    pub fn idle(&self, buffer: &mut Buffer) -> Result<bool, Trouble> {
        match buffer.ahead.pop() {
            Some(ahead) => self.foresee(ahead, false, buffer).map(|()| true),
            None => self.relieve(),
        }
    }

    /// Fetches the set of a page that nobody waits for yet, `at_any_price`: others leave for it.
    fn foresee(
        &self,
        (page, access): (PageNumber, Access),
        at_any_price: bool,
        buffer: &mut Buffer,
    ) -> Result<(), Trouble> {
        let inner = self.lock();
        if inner.pages[page].state != State::Away {
            return Ok(()); // it came, or there is nothing to fetch
        }
        let upto = if at_any_price { inner.stretch(page, access, &mut buffer.ahead) } else { 0 };
        let set = inner.set_around(page, access, 0, &self.bounds.around(page));
        if !at_any_price && inner.resident + set.len() > inner.local {
            return Ok(());
        }
        let waiting = self.bring(inner, (Touch { page, write: false }, access), upto, 0, buffer)?;
        self.kernel.wake(waiting);
        Ok(())
    }

    /// Brings the set of a page, and what follows it `upto` there, which costs `waking` beside what is seen here: nothing where
    /// nobody waits, so that the set is foreseen as all that follows it. Returns the pages for which somebody waits, and was
    /// not woken.
    fn bring<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        (touch, access): (Touch, Access),
        mut upto: PageNumber,
        waking: u64,
        buffer: &mut Buffer,
    ) -> Result<Range<PageNumber>, Trouble> {
        let mapped = usize::try_from(self.counters.get(Count::MappedBytes)).unwrap_or(usize::MAX);
        inner.mapped = mapped / self.kernel.page();
        let (range, from) = loop {
            let page = &mut inner.pages[touch.page];
            match page.state {
                State::Filling | State::Leaving => {
                    page.waited = true;
                    return Ok(0..0);
                }
                State::Dirty | State::Outside => return Ok(touch.page..touch.page + 1),
                State::Clean => {
                    self.touch_clean(inner, touch)?;
                    return Ok(touch.page..touch.page + 1);
                }
                State::Zero | State::Away => {}
            }
            let range = inner.set_around(touch.page, access, upto, &self.bounds.around(touch.page));
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
        let sets = inner.sets_in(&range, access);
        let backs: Vec<_> =
            sets.iter().map(|set| inner.back(touch.page.clamp(set.start, set.end - 1))).collect();
        // Where the store has no room, what was not changed must be known for that: it alone can leave.
        let reuses = self.kernel.reuses(range.len()) && !inner.store_is_full();
        let coming: Vec<_> = range.clone().map(|page| inner.coming(page, touch, reuses)).collect();
        if from == State::Away {
            for (set, back) in sets.iter().zip(&backs) {
                inner.swapped_in(set.start);
                inner.came_back(set.len(), *back);
            }
            self.uncount(range.start, Count::StoredBytes, bytes);
        }
        for set in &sets {
            let foreseen = from == State::Away && (waking == 0 || !set.contains(&touch.page));
            for page in &mut inner.pages[set.clone()] {
                (page.state, page.foreseen, page.access) = (State::Filling, foreseen, access);
            }
            if foreseen {
                self.count(set.start, Count::Prefetched, set.len() as u64);
            }
        }
        inner.resident += range.len();
        inner.came(range.len());
        self.kernel.serve_beside(inner.timing.beside());
        self.count(range.start, Count::ResidentBytes, bytes);
        let behind = inner.resident + inner.evictor_starts() > inner.local || inner.looks_for_untouched();
        drop(inner);
        if behind {
            self.crowded.tell_all();
        }
        let served = Instant::now();
        // Who waits on another processor wakes up while the rest is done, which takes as long; also for a page of a few, while
        // the others come. Of many the thread would overtake those who come, and wait again.
        let apart = waking > 0 && !buffer.own;
        let asked = touch.page..touch.page + 1;
        let first = if apart && range.len() <= FEW { asked.clone() } else { range.start..range.start };
        let arrival = Arrival::new(&range, first, if apart { asked } else { 0..0 });
        match from {
            State::Zero => self.fill_zero(&arrival, touch.write, buffer)?,
            _ => self.fill(&arrival, &coming, buffer)?,
        }

        let mut inner = self.lock();
        let mut waited = false;
        for number in range.clone() {
            let page = &mut inner.pages[number];
            let dirty = if from == State::Zero { touch.write } else { coming[number - range.start].dirty };
            page.state = if dirty { State::Dirty } else { State::Clean };
            waited |= core::mem::take(&mut page.waited);
        }
        let costs = inner.leaving.costs(self.lap(touch.page));
        let (local, mapped) = (inner.local, inner.mapped);
        let took = nanoseconds(served) + waking;
        let unseen = from == State::Zero && backs.iter().all(Option::is_none);
        let later = unseen && inner.looked_at_later(range.clone());
        for (set, back) in sets.iter().zip(backs).filter(|_| !later) {
            inner.queue.arrive(Run { first: number(set.start), pages: number(set.len()) }, local, back);
            // New pages come once, and say nothing of what comes back.
            if let (TransferUnits::Auto(regions), State::Away) = (&mut inner.sets, from) {
                let ns = took * set.len() as u64 / range.len() as u64;
                let within = self.bounds.around(set.start);
                regions.filled((set.start, set.len()), access, &within, ns, first_unit(local, mapped), costs);
            }
        }
        inner.tidy();
        self.tell(&inner);
        if let Some(words) = self.words_of(touch.page) {
            self.tell_sets(&words.counts, &inner, &self.bounds.around(touch.page));
        }
        drop(inner);
        self.landed.tell_all();
        Ok(if waited || waking > 0 && !apart { range } else { 0..0 })
    }

    /// A lap of the trial in the segment of a page: as many pages as hold something there, here or away.
    fn lap(&self, page: PageNumber) -> usize {
        let counts = self.words_of(page).map_or(&self.counters, |words| &words.counts);
        let bytes = counts.get(Count::StoredBytes) + counts.get(Count::ResidentBytes);
        usize::try_from(bytes).unwrap_or(0) / self.kernel.page()
    }

    /// The page is here: a write makes it and its next neighbours dirty, a read only came too late.
    fn touch_clean(&self, mut inner: MutexGuard<'_, Inner>, touch: Touch) -> Result<(), Trouble> {
        if !touch.write {
            return Ok(());
        }
        self.count(touch.page, Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let set = inner.sets.at(touch.page, Access::Dense);
        let first = (touch.page / set * set).max(bounds.start);
        let end = (first + set).min(bounds.end);
        let near = touch.page..touch.page + WRITE_AHEAD;
        let written = runs(first..end, |number| {
            let page = &inner.pages[number];
            (page.state == State::Clean && (near.contains(&number) || page.changed > 0)).then_some(())
        });
        for (range, ()) in written {
            // Under the lock: nobody may take the pages for clean ones in between.
            for page in range.clone() {
                inner.pages[page].state = State::Dirty;
            }
            self.kernel.protect(range, false)?;
        }
        Ok(())
    }

    /// Makes new pages. `dirty`: who writes to one new page writes to its neighbours, so
    /// that all of them may be written, without a second fault for each.
    fn fill_zero(&self, arrival: &Arrival, dirty: bool, buffer: &Buffer) -> Result<(), Trouble> {
        arrival.each(&self.kernel, |part| {
            let len = part.len() * self.kernel.page();
            self.kernel.fill(part.start, &buffer.zeros[..len], !dirty)
        })?;
        let range = arrival.range();
        self.count(range.start, Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Brings pages from the store; those of `coming` that are dirty at once writable.
    fn fill(&self, arrival: &Arrival, coming: &[Coming], buffer: &mut Buffer) -> Result<(), Trouble> {
        let (range, page) = (&arrival.range(), self.kernel.page());
        let bytes = &mut buffer.bytes[..range.len() * page];
        if coming.iter().all(|page| page.dirty) {
            return self.kernel.bring(arrival, bytes, &mut |room| self.fetch(range, coming, room));
        }
        self.fetch(range, coming, bytes)?;
        arrival.each(&self.kernel, |part| {
            for (part, dirty) in runs(part.clone(), |number| Some(coming[number - range.start].dirty)) {
                let at = (part.start - range.start) * page;
                self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Reads pages from the store: what is not what was sent ends the program.
    fn fetch(&self, range: &Range<PageNumber>, coming: &[Coming], room: &mut [u8]) -> Result<(), Trouble> {
        let page = self.kernel.page();
        self.store.read((range.start * page) as u64, room)?;
        self.count(range.start, Count::Fills, range.len() as u64);
        self.count(range.start, Count::BytesIn, room.len() as u64);
        for ((number, coming), bytes) in range.clone().zip(coming).zip(room.chunks_exact(page)) {
            let came = checksum(bytes);
            if came != coming.sum {
                return Err(Trouble::Damaged { page: number, sent: coming.sum, came });
            }
        }
        Ok(())
    }
}
