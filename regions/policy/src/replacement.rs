//! Decides which resident pages to evict, by a segmented LRU whose parts are checked by refault rates.
//!
//! The pager does not learn that a resident page is read, since no accessed bit is available. First in, first out
//! would be the usual policy without one, and is the worst for numerical programs: a loop over slightly more pages
//! than fit misses every time, because each page is evicted just before its next use. Local memory is therefore
//! divided into a *protected* and a *probationary* part, as in segmented LRU (Karedla, Love and Wherry, 1994):
//!
//! ```text
//!   fill ──► probationary (1/4) ──► evicted              a loop over N > local: the protected part hits
//!               │  ▲
//!   promotion   ▼  │ a probe now and then
//!            protected (3/4) ──► evicted
//! ```
//!
//! Whether the protected part still deserves protection is measured by refault rates: the share of evicted pages of
//! either part that were soon filled again. *Probes* keep the rates up to date: one evicted page in 64 is taken from
//! the protected part. When pages of the probationary part refault more often, the program uses other pages than
//! before: the oldest protected pages are evicted, and probationary pages take their place.
//!
//! The *refault distance* of a page is the number of other evictions between its eviction and its refault:
//! [`ReplacementQueue::insert`] subtracts the value of the eviction clock at the eviction from that at the refault.
//! Some loops use for a while a range of pages that is larger than the probationary part. These pages refault at much
//! shorter distances than protected pages would, as probes show. A page that refaults at such a distance is protected
//! in place of another one (`replacement/protected.rs`).

mod fifo;
mod page_run;
mod policy;
mod protected;
mod refault_distance;
mod refaults;

use crate::PageNumber;
use core::ops::Range;
use protected::ProtectedPages;
use refault_distance::RefaultDistance;
use std::collections::VecDeque;

pub use fifo::Fifo;
pub use page_run::{PageRun, Protection};
pub use policy::Replacement;
pub use refaults::Refaults;

/// One evicted page in this number is taken from the protected part as a *probe*, which keeps that part's refault rate
/// known.
const PROBE: u32 = 64;
/// Largest number of consecutive pages that one probe evicts. Probes of single pages would cut the protected range into
/// pieces, and a transfer ends at each resident piece.
const PROBE_PAGES: usize = 128;
/// Divisor of local memory: a probe evicts at most this part of it.
const PROBE_SHARE: usize = 64;
/// Divisor of local memory: the probationary part is this part of it.
const PROBATIONARY_SHARE: usize = 4;
/// Share of local memory that the protected part may take.
pub const PROTECTED_SHARE: f64 = 1.0 - 1.0 / PROBATIONARY_SHARE as f64;
/// Number of evictions after which the counts of a refault rate are halved, so that old events lose weight.
const FADE: u32 = 4096;
/// Pages are evicted from the protected part while its refault rate is below `MARGIN`/16 of that of the probationary
/// part.
const MARGIN: u64 = 8;
/// Largest refault distance that counts as a refault, in multiples of local memory. Of a loop over more pages than
/// that, only a small share could be protected.
const MAX_LOOP: usize = 8;
/// A refaulting page is protected when its refault distance is below this share of the mean distance of protected
/// pages.
const SHORTER: f64 = 0.65;

/// How many pages were evicted from one part of local memory, and how many of them refaulted soon.
#[derive(Clone, Copy, Debug, Default)]
struct RefaultRate {
    evicted: u32,
    refaulted: u32,
}

impl RefaultRate {
    fn evicted(&mut self, pages: u32) {
        self.evicted += pages;
        if self.evicted >= FADE {
            self.evicted /= 2;
            self.refaulted /= 2;
        }
    }

    /// Uncounts evictions of pages that could not be evicted after all.
    fn not_evicted(&mut self, pages: u32) {
        self.evicted = self.evicted.saturating_sub(pages);
    }

    /// Returns the number of refaulted pages per 65536 evicted pages.
    fn share(self) -> u64 {
        u64::from(self.refaulted.min(self.evicted)) * 65536 / u64::from(self.evicted.max(1))
    }
}

/// Segmented replacement: keeps all resident pages in the order in which they will be evicted.
#[derive(Debug)]
pub struct ReplacementQueue {
    protected: ProtectedPages,
    probationary: VecDeque<PageRun>,
    /// Runs that were selected but could not be evicted, such as pinned ones.
    deferred: Vec<PageRun>,
    /// The refault rates of the parts, by [`Protection`].
    rates: [RefaultRate; 2],
    /// The refault distance of pages that were evicted from the protected part.
    refault_distance: RefaultDistance,
    refaults: Refaults,
    /// Number of evictions until the next probe; 0 during a probe.
    until_probe: u32,
    /// Number of pages that the present probe has evicted until now.
    probed: u32,
    /// Number of evicted pages since the start, which is the clock of refault distances.
    clock: u32,
}

impl Default for ReplacementQueue {
    fn default() -> ReplacementQueue {
        // The first protected pages are taken to be in use until probes show otherwise.
        let rates = [RefaultRate { evicted: PROBE, refaulted: PROBE }, RefaultRate::default()];
        ReplacementQueue {
            protected: ProtectedPages::new(),
            probationary: VecDeque::new(),
            deferred: Vec::new(),
            rates,
            refault_distance: RefaultDistance::default(),
            refaults: Refaults::default(),
            until_probe: PROBE - 1,
            probed: 0,
            clock: 0,
        }
    }
}

impl Replacement for ReplacementQueue {
    fn clock(&self) -> u32 {
        self.clock
    }

    fn refaults(&self) -> &Refaults {
        &self.refaults
    }

    fn runs(&self) -> usize {
        self.protected.runs() + self.probationary.len() + self.deferred.len()
    }

    fn is_empty(&self) -> bool {
        self.protected.runs() + self.probationary.len() == 0
    }

    fn insert(&mut self, run: PageRun, local: usize, previous: Option<(Protection, u32)>) {
        let pages = run.pages as usize;
        let mut protect = self.protected.pages() + pages <= local - local / PROBATIONARY_SHARE;
        if let Some((part, evicted)) = previous {
            let distance = self.clock.wrapping_sub(evicted);
            self.refaults.add(run.pages, distance);
            let age = distance as usize;
            if age <= local * MAX_LOOP {
                let rate = &mut self.rates[part as usize];
                rate.refaulted = rate.refaulted.saturating_add(run.pages);
            }
            self.protected.refaulted(run, self.clock, local);
            match part {
                Protection::Protected => self.refault_distance.refaulted(run.pages),
                Protection::Probationary => {
                    protect |= (age as f64) < self.refault_distance.mean(local) * SHORTER
                }
            }
        }
        if protect {
            self.protected.push(run);
        } else {
            self.probationary.push_back(run);
        }
    }

    /// Protects the youngest runs, the last ones of equal age first: as many as the protected part holds, and none that
    /// is older than half of the oldest one. The others are probationary, the oldest first.
    fn adopt(&mut self, mut runs: Vec<(PageRun, u8)>, local: usize) {
        runs.sort_by_key(|&(_, age)| core::cmp::Reverse(age));
        let mut room = (local - local / PROBATIONARY_SHARE).saturating_sub(self.protected.pages());
        let most = runs.first().map_or(0, |&(_, oldest)| oldest / 2);
        let fits = |&(run, age): &&(PageRun, u8)| {
            let left = room.checked_sub(run.pages as usize).filter(|_| *age <= most);
            room = left.unwrap_or(0);
            left.is_some()
        };
        let probationary = runs.len() - runs.iter().rev().take_while(fits).count();
        for (place, (run, _)) in runs.into_iter().enumerate() {
            if place < probationary {
                self.probationary.push_back(run);
            } else {
                self.protected.push(run);
            }
        }
    }

    /// Selects a probationary run, unless the protected part is too large, a probe is due, or probationary pages
    /// refault more often. Then it selects a protected run, and the oldest probationary run becomes protected, if there
    /// is room.
    fn select_victim(&mut self, local: usize) -> Option<(PageRun, Protection)> {
        let protected_is_full = self.protected.pages() > local - local / PROBATIONARY_SHARE;
        let probe = self.until_probe == 0;
        let victim = if protected_is_full && !probe {
            self.protected.take_victim(self.clock, local)
        } else if probe || self.probationary.is_empty() || self.protected_is_stale() {
            self.protected.oldest()
        } else {
            None
        };
        if let Some(run) = victim {
            self.refault_distance.evicted(run.pages);
            self.note_eviction(run, Protection::Protected, local);
            if !protected_is_full && let Some(promoted) = self.probationary.pop_front() {
                self.protected.push(promoted);
            }
            return Some((run, Protection::Protected));
        }
        let run = self.probationary.pop_front()?;
        self.note_eviction(run, Protection::Probationary, local);
        Some((run, Protection::Probationary))
    }

    fn defer(&mut self, run: PageRun, part: Protection) {
        self.rates[part as usize].not_evicted(run.pages);
        if part == Protection::Protected {
            self.refault_distance.not_evicted(run.pages);
        }
        self.protected.not_evicted(run);
        self.deferred.push(run);
    }

    fn retry_deferred(&mut self, pages: &Range<PageNumber>, local: usize) {
        let again: Vec<PageRun> = self.deferred.extract_if(.., |run| run.overlaps(pages)).collect();
        again.into_iter().for_each(|run| self.insert(run, local, None));
    }

    fn evicted_speculative(&mut self, pages: usize) {
        self.rates[Protection::Probationary as usize].evicted(u32::try_from(pages).unwrap_or(u32::MAX));
    }

    fn retain(&mut self, alive: &mut dyn FnMut(PageRun) -> bool) {
        self.protected.retain(&mut *alive);
        self.probationary.retain(|run| alive(*run));
        self.deferred.retain(|run| alive(*run));
    }
}

impl ReplacementQueue {
    /// Makes an empty queue.
    #[must_use]
    pub fn new() -> ReplacementQueue {
        ReplacementQueue::default()
    }

    fn note_eviction(&mut self, run: PageRun, part: Protection, local: usize) {
        self.probes(run.pages, local);
        self.clock = self.clock.wrapping_add(run.pages);
        self.refault_distance.advance(self.clock, local);
        self.protected.evicted(run, self.clock, local);
        self.rates[part as usize].evicted(run.pages);
    }

    /// Counts evicted pages towards the start of the next probe, or towards the end of the current one.
    fn probes(&mut self, pages: u32, local: usize) {
        if self.until_probe > 0 {
            self.until_probe = self.until_probe.saturating_sub(pages);
            return;
        }
        self.probed += pages;
        if self.probed as usize >= (local / PROBE_SHARE).min(PROBE_PAGES) {
            (self.until_probe, self.probed) = (self.probed * (PROBE - 1), 0);
        }
    }

    /// Returns whether probationary pages refault clearly more often than protected ones.
    fn protected_is_stale(&self) -> bool {
        let [protected, probationary] = [self.rates[0].share(), self.rates[1].share()];
        protected * 16 < probationary * MARGIN && probationary > 65536 / 16
    }
}

#[cfg(test)]
mod tests;
