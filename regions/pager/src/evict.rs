//! The way out: pages leave when others need their place.

use crate::inner::{Inner, LARGE_SET};
use crate::page::{State, checksum, runs};
use crate::pager::{Pager, nanoseconds};
use crate::replace::Part;
use crate::{Count, Kernel, PageNumber, PageStore, Trouble};
use core::ops::Range;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Runs that are tried, one after the other, when none of their pages can leave.
const TRIES: usize = 32;

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Lets pages leave until `wanted` more fit. `false`: nothing can leave.
    pub(crate) fn make_room<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        wanted: usize,
    ) -> Result<(MutexGuard<'a, Inner>, bool), Trouble> {
        // Where much is pinned, waiting for others to carry pages out is likely to be in vain.
        let mut patience = if inner.pins.pages() * 2 > inner.local { 1 } else { 200 };
        while inner.resident + wanted > inner.local {
            let leaving;
            (inner, leaving) = self.evict_one(inner)?;
            if leaving {
                continue;
            }
            // Others are carrying pages out; if none are, nothing will ever change.
            if patience == 0 {
                return Ok((inner, false));
            }
            patience -= 1;
            inner = wait(&self.landed, inner, 1);
        }
        Ok((inner, true))
    }

    /// Lets one run of pages leave. `false`: there is none that could.
    fn evict_one<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> Result<(MutexGuard<'a, Inner>, bool), Trouble> {
        let mut tries = TRIES;
        loop {
            let local = inner.local;
            let Some((run, part)) = inner.queue.leave(local) else { return Ok((inner, false)) };
            let range = run.first as usize..(run.first + run.pages) as usize;
            let some_stay = inner.keep_pinned(&range);
            let going = runs(range, |number| {
                let page = inner.pages[number];
                let may = !some_stay || !inner.pins.hold(number);
                (may && matches!(page.state, State::Clean | State::Dirty)).then_some(page.state)
            });
            if going.is_empty() {
                // They left another way, or are pinned; when all that is here is, nothing can leave.
                tries -= usize::from(some_stay);
                if tries == 0 {
                    return Ok((inner, false));
                }
                continue;
            }
            for (range, state) in &going {
                for page in range.clone() {
                    let page = &mut inner.pages[page];
                    if *state == State::Clean {
                        page.changed = page.changed.saturating_sub(1);
                    }
                    page.state = State::Leaving;
                }
            }
            drop(inner);
            let began = Instant::now();
            // A trouble ends the program: until then nobody gets what did not reach the store.
            let gone = self.carry_out(&going)?;
            inner = self.lock();
            inner.leaving.left(gone.iter().map(Range::len).sum(), nanoseconds(began));
            let clock = inner.queue.clock();
            let size = self.kernel.page() as u64;
            for range in &gone {
                let mut stored = 0;
                for page in &mut inner.pages[range.clone()] {
                    page.state = if page.stored && !page.idle { State::Away } else { State::Zero };
                    page.left = clock;
                    page.from_kept = part == Part::Kept;
                    stored += u64::from(page.state == State::Away);
                }
                let gone = range.len() as u64;
                inner.resident -= range.len();
                self.uncount(range.start, Count::ResidentBytes, gone * size);
                self.count(range.start, Count::StoredBytes, stored * size);
                self.count(range.start, Count::Evictions, gone);
            }
            let mut waited = Vec::new();
            for (range, _) in &going {
                for number in range.clone() {
                    if core::mem::take(&mut inner.pages[number].waited) {
                        waited.push(number);
                    }
                }
                let stay =
                    runs(range.clone(), |page| (inner.pages[page].state == State::Leaving).then_some(()));
                for (run, ()) in stay {
                    inner.stay(&run);
                    self.count(run.start, Count::Pinned, run.len() as u64);
                }
            }
            self.tell(&inner);
            self.landed.notify_all();
            for page in waited {
                self.kernel.wake(page..page + 1);
            }
            if !gone.is_empty() {
                return Ok((inner, true));
            }
            tries -= 1;
            if tries == 0 {
                return Ok((inner, false));
            }
        }
    }

    /// Writes what must be written of pages that are leaving. Returns those that left: what a device may be
    /// writing to stays.
    fn carry_out(&self, going: &[(Range<PageNumber>, State)]) -> Result<Vec<Range<PageNumber>>, Trouble> {
        let mut gone = Vec::with_capacity(going.len());
        for (range, state) in going {
            if *state == State::Clean {
                self.kernel.forget(range.clone())?;
                gone.push(range.clone());
                continue;
            }
            self.kernel.take(range.clone(), &mut |first, bytes| {
                let part = first..first + bytes.len() / self.kernel.page();
                self.write_back(&part, bytes)?;
                gone.push(part);
                Ok(())
            })?;
        }
        Ok(gone)
    }

    /// Sends pages that left to the store: none that is zero, none that nobody wants.
    fn write_back(&self, range: &Range<PageNumber>, bytes: &[u8]) -> Result<(), Trouble> {
        let size = self.kernel.page();
        let before: Vec<_> = {
            let inner = self.lock();
            inner.pages[range.clone()]
                .iter()
                .map(|page| (page.idle, page.stored.then_some(page.sum)))
                .collect()
        };
        let sums: Vec<Option<u64>> = bytes
            .chunks_exact(size)
            .zip(&before)
            .map(|(bytes, &(idle, _))| (!idle && !is_zero(bytes)).then(|| checksum(bytes)))
            .collect();
        let changed = |page: PageNumber| {
            sums[page - range.start].is_some_and(|sum| before[page - range.start].1 != Some(sum))
        };
        for (run, ()) in runs(range.clone(), |page| changed(page).then_some(())) {
            let bytes = &bytes[(run.start - range.start) * size..(run.end - range.start) * size];
            self.store.write((run.start * size) as u64, bytes)?;
            self.count(run.start, Count::WriteBacks, run.len() as u64);
            self.count(run.start, Count::BytesOut, bytes.len() as u64);
        }
        let mut inner = self.lock();
        for number in range.clone() {
            let sum = sums[number - range.start];
            let page = &mut inner.pages[number];
            page.changed = if changed(number) { 2 } else { page.changed.saturating_sub(1) };
            page.stored = sum.is_some();
            page.sum = sum.unwrap_or(0);
        }
        Ok(())
    }

    /// Lets one run of pages leave if there is little room. `false`: there was nothing to do.
    pub(crate) fn relieve(&self) -> Result<bool, Trouble> {
        let inner = self.lock();
        if inner.sets.now() >= LARGE_SET || inner.resident + inner.ahead() <= inner.local {
            return Ok(false);
        }
        Ok(self.evict_one(inner)?.1)
    }

    /// Keeps a little room ahead of need, until `stop` says so. For a thread of its own.
    pub fn evict_ahead(&self, stop: impl Fn() -> bool) -> Result<(), Trouble> {
        let mut inner = self.lock();
        while !stop() {
            if inner.resident + inner.evictor_starts() <= inner.local {
                inner = wait(&self.crowded, inner, 500);
                continue;
            }
            let left;
            (inner, left) = self.evict_one(inner)?;
            if !left {
                inner = wait(&self.landed, inner, 1);
            }
        }
        Ok(())
    }
}

/// Sleeps until `news`, or for so many milliseconds.
fn wait<'a>(news: &Condvar, inner: MutexGuard<'a, Inner>, milliseconds: u64) -> MutexGuard<'a, Inner> {
    let woken = news.wait_timeout(inner, Duration::from_millis(milliseconds));
    woken.unwrap_or_else(PoisonError::into_inner).0
}

fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: any eight bytes are a number; the middle part is aligned.
    let (head, words, tail) = unsafe { bytes.align_to::<u64>() };
    head.iter().chain(tail).all(|&byte| byte == 0) && words.iter().all(|&word| word == 0)
}
