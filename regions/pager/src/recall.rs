//! Fetches swapped-out pages back in the background, once there is room for all of them.
//!
//! The handler thread does so while no fault waits, a run of pages at a time, slowly enough that the store and a CPU
//! are left to the program. It stops when local memory has no room: no page is evicted for one that no thread needs.

use crate::async_fill::AsyncFiller;
use crate::incoming::{Admission, FillReason, FillRequest, FrameSource};
use crate::page::{PageState, Touch};
use crate::pager::Pager;
use crate::state::{IDLE_SLEEP, PagerState};
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use core::sync::atomic::Ordering;
use largesse_policy::PageNumber;
use largesse_policy::streams::Access;
use largesse_store::PageStore;
use std::time::{Duration, Instant};

/// Largest number of pages of one read.
const RUN: usize = 128;
/// Number of pages whose states are looked at together.
const LOOK: usize = 1 << 14;
/// Largest number of pages that are fetched back in a second: 256 MiB with pages of 4 KiB.
const PER_SECOND: f64 = 65_536.0;
/// Milliseconds for which the handler thread sleeps between two runs, at most.
const SLEEP: u16 = 2;

impl PagerState {
    /// Returns the next pages to fetch back, all swapped out. `None` if there are none among the next ones.
    fn next_recalled(&mut self) -> Option<Range<PageNumber>> {
        let Range { start, end } = self.recall.clone();
        let is_out = |page: &PageNumber| self.pages[*page].state == PageState::SwappedOut;
        let looked = end.min(start + LOOK);
        let first = (start..looked).find(is_out);
        self.recall.start = first.unwrap_or(looked);
        let first = first?;
        let most = end.min(first + RUN);
        Some(first..(first..most).find(|page| !is_out(page)).unwrap_or(most))
    }

    /// Returns whether local memory has room for `pages` more, with the reserve for faults.
    fn has_room_for(&self, pages: usize) -> bool {
        self.occupied() + pages + self.free_reserve.pages(self.local) <= self.local
    }
}

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Fetches the swapped-out ones of `pages` back in the background; no more if they are empty. A call while pages
    /// are fetched back does not begin again.
    pub(crate) fn recall(&self, pages: Range<PageNumber>) {
        let mut inner = self.lock();
        let start = if inner.recall.is_empty() { pages.start } else { inner.recall.start.max(pages.start) };
        inner.recall = start..pages.end;
        self.recalls.store(!inner.recall.is_empty(), Ordering::Relaxed); // Relaxed: the lock orders it
    }

    /// Returns the longest time in milliseconds for which the handler thread may sleep while no fault waits.
    pub(crate) fn longest_sleep(&self) -> u16 {
        // Relaxed: a hint.
        if self.recalls.load(Ordering::Relaxed) { SLEEP } else { IDLE_SLEEP }
    }
}

impl AsyncFiller {
    /// Starts the read of the next pages to fetch back, if there are any and it is time. Returns whether it did.
    pub fn recall<K: Kernel, S: PageStore>(&mut self, pager: &Pager<K, S>) -> Result<bool, PagerError> {
        // Relaxed: a hint.
        if !pager.recalls.load(Ordering::Relaxed) || !self.may_recall() {
            return Ok(false);
        }
        let now = Instant::now();
        if now < self.recall_at {
            return Ok(false);
        }
        let mut inner = pager.lock();
        let Some(pages) = inner.next_recalled() else {
            pager.recalls.store(!inner.recall.is_empty(), Ordering::Relaxed); // Relaxed: as above
            return Ok(false);
        };
        let touch = Touch { page: pages.start, write: false };
        let (reason, frames) = (FillReason::Recall, FrameSource::Allocated);
        let request = FillRequest { touch, access: Access::Dense, upto: pages.end, reason, frames };
        let room = inner.has_room_for(pages.len());
        let admission = if room { pager.admit(&mut inner, &request, now)? } else { Admission::NoRoom(0) };
        let Admission::Begun(incoming) = admission else {
            inner.recall = 0..0;
            pager.recalls.store(false, Ordering::Relaxed); // Relaxed: as above
            return Ok(false);
        };
        drop(inner);
        let filled = incoming.plan.range.len();
        pager.count(pages.start, Count::Recalled, filled as u64);
        self.recall_at = now + Duration::from_secs_f64(filled as f64 / PER_SECOND);
        self.start_recall(pager, incoming)?;
        Ok(true)
    }
}
