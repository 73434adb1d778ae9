//! The way in: faults are served, foreseen pages fetched.

use crate::inner::{Coming, Inner, LARGE_SET, Sets, WRITE_AHEAD};
use crate::page::{State, checksum, runs};
use crate::pager::{Buffer, Pager, Touch, nanoseconds, number};
use crate::replace::Run;
use crate::{Count, Kernel, PageNumber, PageStore, Trouble};
use core::ops::Range;
use std::sync::MutexGuard;
use std::time::Instant;

/// Stopping and waking the thread that faults, which no clock here sees: nanoseconds.
const WAKE_NS: u64 = 8_000;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Serves one fault. When it returns, the thread that waited runs again, or will when a page in
    /// flight lands.
    ///
    /// Small sets that the thread is foreseen to touch next come before it runs: it would stop again at
    /// once, and each waking costs as much as several pages. Large ones are left to [`Pager::idle`],
    /// which fetches them while the thread runs.
    pub fn serve(&self, touch: Touch, buffer: &mut Buffer) -> Result<(), Trouble> {
        let began = Instant::now();
        self.count(touch.page, Count::Faults, 1);
        let mut inner = self.lock();
        if !inner.pages[touch.page].state.is_resident() {
            buffer.ahead.clear();
            let hits = inner.look_ahead(touch, &self.bounds.around(touch.page), &mut buffer.ahead);
            self.count(touch.page, Count::PrefetchHits, hits as u64);
            if inner.sets.now() < LARGE_SET {
                drop(inner);
                while let Some(page) = buffer.ahead.pop_front() {
                    self.foresee(page, true, buffer)?;
                }
                inner = self.lock();
            }
        }
        self.bring(inner, touch, WAKE_NS, buffer)?;
        self.count(touch.page, Count::WaitNs, nanoseconds(began));
        Ok(())
    }

    /// What to do while nobody waits: fetch a set that is foreseen, or let pages leave. `false`: nothing.
    pub fn idle(&self, buffer: &mut Buffer) -> Result<bool, Trouble> {
        match buffer.ahead.pop_front() {
            Some(page) => self.foresee(page, false, buffer).map(|()| true),
            None => self.relieve(),
        }
    }

    /// Fetches the set of a page that nobody waits for yet, `at_any_price`: others leave for it.
    fn foresee(&self, page: PageNumber, at_any_price: bool, buffer: &mut Buffer) -> Result<(), Trouble> {
        let inner = self.lock();
        if inner.pages[page].state != State::Away {
            return Ok(()); // it came, or there is nothing to fetch
        }
        let set = inner.set_around(page, &self.bounds.around(page));
        if !at_any_price && inner.resident + set.len() > inner.local {
            return Ok(());
        }
        let before = self.counters.get(Count::Fills);
        self.bring(inner, Touch { page, write: false }, 0, buffer)?;
        self.count(page, Count::Prefetched, self.counters.get(Count::Fills) - before);
        for page in &mut self.lock().pages[set] {
            page.foreseen = page.state.is_resident();
        }
        Ok(())
    }

    /// Brings the set of a page, which costs `waking` beside what is seen here.
    fn bring<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        touch: Touch,
        waking: u64,
        buffer: &mut Buffer,
    ) -> Result<(), Trouble> {
        let (range, from) = loop {
            let page = &mut inner.pages[touch.page];
            match page.state {
                State::Filling | State::Leaving => {
                    page.waited = true;
                    return Ok(());
                }
                State::Dirty | State::Outside => {
                    drop(inner);
                    self.kernel.wake(touch.page..touch.page + 1);
                    return Ok(());
                }
                State::Clean => return self.touch_clean(inner, touch),
                State::Zero | State::Away => {}
            }
            let range = inner.set_around(touch.page, &self.bounds.around(touch.page));
            if inner.resident + range.len() <= inner.local {
                break (range, inner.pages[touch.page].state);
            }
            let waited = Instant::now();
            let roomy;
            (inner, roomy) = self.make_room(inner, range.len())?;
            self.count(touch.page, Count::RoomNs, nanoseconds(waited));
            if !roomy {
                // Everything is in flight or pinned: one page over the limit, and counted.
                self.count(touch.page, Count::OverLimit, 1);
                let from = inner.pages[touch.page].state;
                if !from.is_resident() {
                    break (touch.page..touch.page + 1, from);
                }
            }
        };
        let bytes = (range.len() * self.kernel.page()) as u64;
        let back = inner.back(touch.page);
        let coming: Vec<_> = range.clone().map(|page| inner.coming(page, touch)).collect();
        if from == State::Away {
            inner.leaving.back += range.len() as f64;
            inner.swapped_in(touch.page);
            self.uncount(range.start, Count::StoredBytes, bytes);
        }
        for page in range.clone() {
            inner.pages[page].state = State::Filling;
            inner.pages[page].foreseen = false;
        }
        inner.resident += range.len();
        self.count(range.start, Count::ResidentBytes, bytes);
        let behind = inner.resident + inner.evictor_starts() > inner.local;
        drop(inner);
        if behind {
            self.crowded.notify_one();
        }
        let served = Instant::now();

        match from {
            State::Zero => self.fill_zero(&range, touch.write, buffer)?,
            _ => self.fill(&range, &coming, buffer)?,
        }

        let mut inner = self.lock();
        let mut waited = false;
        for number in range.clone() {
            let page = &mut inner.pages[number];
            let dirty = if from == State::Zero { touch.write } else { coming[number - range.start].dirty };
            page.state = if dirty { State::Dirty } else { State::Clean };
            waited |= core::mem::take(&mut page.waited);
        }
        let local = inner.local;
        inner.queue.arrive(Run { first: number(range.start), pages: number(range.len()) }, local, back);
        inner.tidy();
        let costs = inner.leaving.costs();
        if let Sets::Auto(trial) = &mut inner.sets {
            trial.filled(touch.page, range.len(), nanoseconds(served) + waking, costs);
        }
        self.tell(&inner);
        if let Some(words) = self.words_of(touch.page) {
            words.counts.set(Count::SetBytes, (inner.sets.now() * self.kernel.page()) as u64);
        }
        drop(inner);
        self.landed.notify_all();
        if waited {
            self.kernel.wake(range);
        }
        Ok(())
    }

    /// The page is here: a write makes it and its next neighbours dirty, a read only came too late.
    fn touch_clean(&self, mut inner: MutexGuard<'_, Inner>, touch: Touch) -> Result<(), Trouble> {
        if !touch.write {
            drop(inner);
            self.kernel.wake(touch.page..touch.page + 1);
            return Ok(());
        }
        self.count(touch.page, Count::WriteFaults, 1);
        let bounds = self.bounds.around(touch.page);
        let set = inner.sets.at(touch.page);
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

    /// Makes new pages. `dirty`: who writes to one new page writes to its neighbours, so that all of
    /// them may be written, without a second fault for each.
    fn fill_zero(&self, range: &Range<PageNumber>, dirty: bool, buffer: &Buffer) -> Result<(), Trouble> {
        let len = range.len() * self.kernel.page();
        self.kernel.fill(range.start, &buffer.zeros[..len], !dirty)?;
        self.count(range.start, Count::ZeroFills, range.len() as u64);
        Ok(())
    }

    /// Brings pages from the store, those of `coming` that are dirty at once writable.
    fn fill(&self, range: &Range<PageNumber>, coming: &[Coming], buffer: &mut Buffer) -> Result<(), Trouble> {
        let page = self.kernel.page();
        let len = range.len() * page;
        let bytes = &mut buffer.bytes[..len];
        self.store.read((range.start * page) as u64, bytes)?;
        self.count(range.start, Count::Fills, range.len() as u64);
        self.count(range.start, Count::BytesIn, len as u64);
        for ((number, coming), bytes) in range.clone().zip(coming).zip(bytes.chunks_exact(page)) {
            let came = checksum(bytes);
            if came != coming.sum {
                return Err(Trouble::Damaged { page: number, sent: coming.sum, came });
            }
        }
        for (part, dirty) in runs(range.clone(), |number| Some(coming[number - range.start].dirty)) {
            let at = (part.start - range.start) * page;
            self.kernel.fill(part.start, &bytes[at..at + part.len() * page], !dirty)?;
        }
        Ok(())
    }
}
