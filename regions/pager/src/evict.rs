//! The way out: pages leave when others need their place.

use crate::inner::{Inner, LARGE_SET};
use crate::page::{State, runs};
use crate::pager::{Pager, nanoseconds};
use crate::replace::Part;
use crate::{Count, Kernel, PageNumber, PageStore, Trouble};
use core::ops::Range;
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Lets pages leave until `wanted` more fit. `false`: nothing can leave.
    pub(crate) fn make_room<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        wanted: usize,
    ) -> Result<(MutexGuard<'a, Inner>, bool), Trouble> {
        let mut patience = 200;
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
        loop {
            let local = inner.local;
            let Some((run, part)) = inner.queue.leave(local) else { return Ok((inner, false)) };
            let range = run.first as usize..(run.first + run.pages) as usize;
            let going = runs(range, |page| {
                let page = inner.pages[page];
                matches!(page.state, State::Clean | State::Dirty).then_some(page.state)
            });
            if going.is_empty() {
                continue; // they left another way
            }
            for (range, state) in &going {
                for page in range.clone() {
                    let page = &mut inner.pages[page];
                    page.changes &= *state == State::Dirty;
                    page.state = State::Leaving;
                }
            }
            drop(inner);
            let began = Instant::now();
            let outcome = self.carry_out(&going);
            let mut inner = self.lock();
            let gone = going.iter().map(|(range, _)| range.len()).sum();
            inner.leaving.left(gone, nanoseconds(began));
            let mut waited = Vec::new();
            let clock = inner.queue.clock();
            for (range, _) in &going {
                for number in range.clone() {
                    let page = &mut inner.pages[number];
                    if outcome.is_err() {
                        page.state = State::Dirty;
                    } else {
                        page.state = if page.stored && !page.idle { State::Away } else { State::Zero };
                        page.left = clock;
                        page.from_kept = part == Part::Kept;
                    }
                    if core::mem::take(&mut page.waited) {
                        waited.push(number);
                    }
                }
                if outcome.is_ok() {
                    inner.resident -= range.len();
                    self.counters.add(Count::Evictions, range.len() as u64);
                }
            }
            outcome?;
            self.tell(&inner);
            self.landed.notify_all();
            for page in waited {
                self.kernel.wake(page..page + 1);
            }
            return Ok((inner, true));
        }
    }

    /// Writes what must be written of pages that are leaving, and forgets them here.
    fn carry_out(&self, going: &[(Range<PageNumber>, State)]) -> Result<(), Trouble> {
        for (range, state) in going {
            if *state == State::Dirty {
                self.kernel.protect(range.clone(), true)?;
                self.write_back(range)?;
            }
            self.kernel.forget(range.clone())?;
        }
        Ok(())
    }

    /// Sends protected, resident pages to the store: none that is zero, none that nobody wants.
    fn write_back(&self, range: &Range<PageNumber>) -> Result<(), Trouble> {
        let size = self.kernel.page();
        // SAFETY: the pages are `Leaving`: resident, protected, and nobody else's until they land.
        let bytes = unsafe { self.kernel.contents(range.clone()) };
        let wanted: Vec<_> = {
            let inner = self.lock();
            range.clone().map(|page| !inner.pages[page].idle).collect()
        };
        let sums: Vec<Option<u32>> = bytes
            .chunks_exact(size)
            .zip(&wanted)
            .map(|(bytes, &wanted)| (wanted && !is_zero(bytes)).then(|| crc32fast::hash(bytes)))
            .collect();
        for (run, ()) in runs(range.clone(), |page| sums[page - range.start].map(|_| ())) {
            let bytes = &bytes[(run.start - range.start) * size..(run.end - range.start) * size];
            self.store.write((run.start * size) as u64, bytes)?;
            self.counters.add(Count::WriteBacks, run.len() as u64);
            self.counters.add(Count::BytesOut, bytes.len() as u64);
        }
        let mut inner = self.lock();
        for (number, sum) in range.clone().zip(sums) {
            let page = &mut inner.pages[number];
            // A guess for the next time only: what looks the same is written all the same.
            page.changes = sum.is_some_and(|sum| !page.stored || sum != page.sum);
            page.stored = sum.is_some();
            page.sum = sum.unwrap_or(0);
        }
        Ok(())
    }

    /// Lets one run of pages leave if there is little room. `false`: there was nothing to do.
    pub fn relieve(&self) -> Result<bool, Trouble> {
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
