//! First in, first out: the baseline of replacement policies.

use super::page_run::{PageRun, Protection};
use super::policy::Replacement;
use super::refaults::Refaults;
use crate::PageNumber;
use core::ops::Range;
use std::collections::VecDeque;

/// Evicts pages in the order of their fills. A loop over slightly more pages than fit faults on every page.
#[derive(Debug, Default)]
pub struct Fifo {
    runs: VecDeque<PageRun>,
    /// Runs that were selected but could not be evicted.
    deferred: Vec<PageRun>,
    refaults: Refaults,
    clock: u32,
}

impl Replacement for Fifo {
    fn clock(&self) -> u32 {
        self.clock
    }

    fn refaults(&self) -> &Refaults {
        &self.refaults
    }

    fn runs(&self) -> usize {
        self.runs.len() + self.deferred.len()
    }

    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    fn insert(&mut self, run: PageRun, _local: usize, previous: Option<(Protection, u32)>) {
        if let Some((_, evicted)) = previous {
            self.refaults.add(run.pages, self.clock.wrapping_sub(evicted));
        }
        self.runs.push_back(run);
    }

    fn select_victim(&mut self, _local: usize) -> Option<(PageRun, Protection)> {
        let run = self.runs.pop_front()?;
        self.clock = self.clock.wrapping_add(run.pages);
        Some((run, Protection::Probationary))
    }

    fn defer(&mut self, run: PageRun, _part: Protection) {
        self.deferred.push(run);
    }

    fn retry_deferred(&mut self, pages: &Range<PageNumber>, _local: usize) {
        let again = self.deferred.extract_if(.., |run| run.overlaps(pages));
        self.runs.extend(again);
    }

    fn evicted_speculative(&mut self, _pages: usize) {}

    fn retain(&mut self, alive: &mut dyn FnMut(PageRun) -> bool) {
        self.runs.retain(|run| alive(*run));
        self.deferred.retain(|run| alive(*run));
    }
}
