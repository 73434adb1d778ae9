//! The interface of replacement policies to the pager.

use super::page_run::{PageRun, Protection};
use super::refaults::Refaults;
use crate::PageNumber;
use core::fmt::Debug;
use core::ops::Range;

/// A replacement policy: keeps all resident pages in the order in which they will be evicted.
pub trait Replacement: Debug + Send {
    /// Returns the number of pages that were ever evicted, modulo 2^32, which is the clock of refault distances.
    fn clock(&self) -> u32;

    /// Returns the counts of refaulted pages by refault distance, since the start.
    fn refaults(&self) -> &Refaults;

    /// Returns the number of runs in the queue, some of whose pages may not be resident any more.
    fn runs(&self) -> usize;

    /// Returns whether the queue has no runs except deferred ones.
    fn is_empty(&self) -> bool;

    /// Adds a run that was filled. Local memory has `local` pages. If the run was evicted before, `previous` is the
    /// part from which it was evicted, and the [clock](Replacement::clock) at that time.
    fn insert(&mut self, run: PageRun, local: usize, previous: Option<(Protection, u32)>);

    /// Adds runs that were resident before far memory took them over, each with its [age](crate::Coldness::age). The
    /// oldest are evicted first, those of equal age in their order. Local memory has `local` pages.
    fn adopt(&mut self, mut runs: Vec<(PageRun, u8)>, local: usize) {
        runs.sort_by_key(|&(_, age)| core::cmp::Reverse(age));
        runs.into_iter().for_each(|(run, _)| self.insert(run, local, None));
    }

    /// Removes the run to evict next from the queue, and returns it with the part of local memory that it was in. Local
    /// memory has `local` pages.
    fn select_victim(&mut self, local: usize) -> Option<(PageRun, Protection)>;

    /// Puts aside a run that was selected from `part` but cannot be evicted now, until
    /// [`retry_deferred`](Replacement::retry_deferred).
    fn defer(&mut self, run: PageRun, part: Protection);

    /// Returns the deferred runs that overlap `pages` to the queue, behind all others. Local memory has `local` pages.
    fn retry_deferred(&mut self, pages: &Range<PageNumber>, local: usize);

    /// Counts `pages` speculative pages that were evicted because they were never written. They are not in the queue.
    fn evicted_speculative(&mut self, pages: usize);

    /// Removes the runs for which `alive` is false, because their pages are not resident any more.
    fn retain(&mut self, alive: &mut dyn FnMut(PageRun) -> bool);
}
