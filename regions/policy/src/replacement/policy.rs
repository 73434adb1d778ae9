//! The interface of replacement policies to the pager.

use super::page_run::{PageRun, Protection};
use super::refaults::Refaults;
use crate::PageNumber;
use core::fmt::Debug;
use core::ops::Range;

/// An order of eviction of all resident pages.
pub trait Replacement: Debug + Send {
    /// Returns the number of pages that were ever evicted, which is the clock of refault distances.
    fn clock(&self) -> u32;

    /// Returns the counts of refaulted pages by refault distance, since the start.
    fn refaults(&self) -> &Refaults;

    /// Returns the number of runs in the queue, some of whose pages may not be resident any more.
    fn runs(&self) -> usize;

    /// Returns whether the queue has no runs, apart from deferred ones.
    fn is_empty(&self) -> bool;

    /// Adds a run that was filled, with `local` pages of local memory. `previous` says from which part and at which
    /// time of the [clock](Replacement::clock) it was evicted before, if it was.
    fn insert(&mut self, run: PageRun, local: usize, previous: Option<(Protection, u32)>);

    /// Removes the run to evict next from the queue and returns it with its part. `local` is the size of local memory
    /// in pages.
    fn select_victim(&mut self, local: usize) -> Option<(PageRun, Protection)>;

    /// Puts aside a run that was selected from `part` but cannot be evicted, until
    /// [`retry_deferred`](Replacement::retry_deferred).
    fn defer(&mut self, run: PageRun, part: Protection);

    /// Adds the deferred runs that overlap `pages` to the queue again, behind all others.
    fn retry_deferred(&mut self, pages: &Range<PageNumber>, local: usize);

    /// Counts the eviction of speculative pages that were never written, whichever part they were in.
    fn evicted_speculative(&mut self, pages: usize);

    /// Removes the runs for which `alive` is false, because their pages are not resident any more.
    fn retain(&mut self, alive: &mut dyn FnMut(PageRun) -> bool);
}
