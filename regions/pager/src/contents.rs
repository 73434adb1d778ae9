//! Hands out pages of far memory to the program, takes them back, and lets the program map something else in their
//! place.

use crate::page::{PageState, number, runs};
use crate::pager::Pager;
use crate::{Count, Kernel, PagerError};
use core::ops::Range;
use largesse_policy::replacement::PageRun;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_store::{PageStore, StoreError};

impl<K: Kernel, S: PageStore> Pager<K, S> {
    /// Hands out pages to the program: reserves their room in the store, and keeps their contents from now on.
    pub fn enter(&self, range: Range<PageNumber>) -> Result<(), StoreError> {
        let size = self.kernel.page();
        self.store.reserve((range.start * size) as u64, (range.len() * size) as u64)?;
        let mut inner = self.lock();
        for page in range {
            inner.pages.set_wanted(page, true);
        }
        Ok(())
    }

    /// Takes over pages that the program used before they became far memory: those in `here` are resident, all others
    /// zero. The resident pages may exceed local memory until the next evictions. The pages of a large page are evicted
    /// together, those with the greatest [age](largesse_policy::Coldness::age) first, which `age` returns for a page.
    pub fn adopt(&self, here: impl Iterator<Item = Range<PageNumber>>, age: impl Fn(PageNumber) -> u8) {
        let mut inner = self.lock();
        let (local, mut runs) = (inner.local, Vec::new());
        for mut rest in here {
            while !rest.is_empty() {
                let end = rest.end.min((rest.start + 1).next_multiple_of(MAX_TRANSFER));
                let run = PageRun { first: number(rest.start), pages: number(end - rest.start) };
                inner.pages.adopt(rest.start..end);
                self.count(rest.start, Count::ResidentBytes, (run.range().len() * self.kernel.page()) as u64);
                runs.push((run, age(rest.start)));
                rest.start = end;
            }
        }
        inner.queue.adopt(runs, local);
        self.tell(&inner);
        drop(inner);
        self.reclaim_needed.notify_all();
    }

    /// Sets whether the program still needs the contents of the pages. If it does not, they are evicted without being
    /// written, and may be filled with zeros later.
    pub fn set_wanted(&self, range: Range<PageNumber>, wanted: bool) {
        let mut inner = self.lock();
        for number in range {
            inner.pages.set_wanted(number, wanted);
            if inner.pages.forget_unwanted(number) {
                self.uncount(number, Count::StoredBytes, self.kernel.page() as u64);
            }
        }
    }

    /// Drops the contents of the pages, which read as zero from now on. Frees their room in local memory and in the
    /// store.
    pub fn drop_contents(&self, range: Range<PageNumber>) -> Result<(), PagerError> {
        self.empty(range, PageState::Zero)
    }

    /// Takes pages out of far memory for good, because the program maps something else there.
    pub fn leave_out(&self, range: Range<PageNumber>) -> Result<(), PagerError> {
        self.empty(range, PageState::Outside)
    }

    /// Drops the contents of pages, and leaves the pages in the state `then`: `Zero` or `Outside`.
    fn empty(&self, range: Range<PageNumber>, then: PageState) -> Result<(), PagerError> {
        let size = self.kernel.page();
        let mut inner = self.lock();
        loop {
            for page in range.clone() {
                inner.pages.set_wanted(page, false); // an eviction in flight does not write them
            }
            // A write in flight could otherwise end after its room in the store was discarded.
            if !range.clone().any(|page| inner.pages[page].is_busy()) {
                break;
            }
            inner = self.io_done.wait(inner);
        }
        let here = runs(range.clone(), |page| inner.pages[page].state.is_resident().then_some(()));
        for (run, ()) in &here {
            // Under the lock, so that no thread fills them again in between.
            self.kernel.forget(core::slice::from_ref(run))?;
            self.uncount(run.start, Count::ResidentBytes, (run.len() * size) as u64);
            self.count(run.start, Count::Dropped, run.len() as u64);
        }
        // `Leaving` until the store has discarded them: otherwise a page that is filled, written and evicted in between
        // would be discarded, too.
        for number in range.clone() {
            if inner.pages.begin_drop(number) == PageState::SwappedOut {
                self.uncount(number, Count::StoredBytes, size as u64);
            }
        }
        drop(inner);
        self.store.discard((range.start * size) as u64, (range.len() * size) as u64);
        let mut inner = self.lock();
        for number in range.clone() {
            inner.pages.end_drop(number, then);
        }
        self.tell(&inner);
        self.io_done.notify_all();
        self.wake_waiting(&mut inner, range);
        Ok(())
    }
}
