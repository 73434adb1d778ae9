//! Defines the statistics of a heap.

use crate::partial::Scope;
use crate::{Histogram, Layout};
use std::time::Duration;

/// The number of cells of one layout and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Layout of the cells.
    pub layout: Layout,
    /// Number of words of a cell.
    pub words: usize,
    /// Number of cells.
    pub cells: u64,
}

/// The number of cells that one thread can hand out without visiting the keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated {
    /// Number of the thread, in order of registration.
    pub thread: u64,
    /// Number of cells of the thread, by layout and size.
    pub cells: Vec<Cells>,
}

/// Durations and counts of all collections of a heap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collections {
    /// Durations from the request to stop until threads resumed.
    pub pauses: Histogram,
    /// Part of the pauses spent on waiting for threads to stop.
    pub stopping: Duration,
    /// Part of the pauses spent marking.
    pub marking: Duration,
    /// Part of the pauses spent sweeping.
    pub sweeping: Duration,
    /// Number of objects marked.
    pub objects: u64,
    /// The collections that visited all reachable objects.
    pub full: FarCollections,
    /// The collections that visited no old object in far memory that had not changed.
    pub partial: FarCollections,
}

/// Number of collections of one kind, and what they read of far memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarCollections {
    /// Number of collections.
    pub count: u64,
    /// Number of bytes that were in the store, and not resident, at the start of a collection: the sum of all.
    pub far_bytes: u64,
    /// Number of bytes that were read from the store during the collections.
    pub bytes_read: u64,
}

impl Collections {
    /// Counts a collection at whose start `far_bytes` bytes were in the store, of which `bytes_read` were read.
    pub(crate) fn add(&mut self, scope: Scope, far_bytes: u64, bytes_read: u64) {
        let of = match scope {
            Scope::Full => &mut self.full,
            Scope::Partial => &mut self.partial,
        };
        of.count += 1;
        of.far_bytes += far_bytes;
        of.bytes_read += bytes_read;
    }
}

/// The statistics of a heap at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Number of cells handed out to date, by layout and size: the request mix.
    pub requests: Vec<Cells>,
    /// Number of large objects allocated to date.
    pub large_requests: u64,
    /// Number of words of all large objects allocated to date.
    pub large_words: u64,
    /// Number of requests that reached the keep.
    pub keep_visits: u64,
    /// Number of cells that each thread can hand out now without visiting the keep.
    pub delegated: Vec<Delegated>,
    /// Durations and counts of all collections.
    pub collections: Collections,
    /// Time since the heap was created.
    pub age: Duration,
    /// Number of objects alive after the last collection.
    pub live_objects: u64,
    /// Number of bytes of the cells of live objects.
    pub live_bytes: usize,
    /// Number of bytes allocated between the last collection and the next.
    pub budget_bytes: usize,
    /// Number of bytes of blocks that are not free.
    pub used_bytes: usize,
    /// Number of bytes of spans that may have physical memory.
    pub warm_bytes: usize,
    /// Largest number of bytes that may be in use.
    pub limit_bytes: usize,
    /// Number of threads that collect; fewer than requested when the system refused threads.
    pub gc_threads: usize,
}

impl Statistics {
    /// Returns the number of objects allocated to date.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.requests.iter().map(|it| it.cells).sum::<u64>() + self.large_requests
    }

    /// Returns the number of visits to the keep per 1000 allocations, or zero if there were no allocations.
    #[must_use]
    pub fn visits_per_thousand(&self) -> f64 {
        ratio(self.keep_visits as f64 * 1000.0, self.allocations() as f64)
    }

    /// Returns the share of time in which threads were stopped for collections, 0 to 1.
    #[must_use]
    pub fn gc_share(&self) -> f64 {
        ratio(self.collections.pauses.total().as_secs_f64(), self.age.as_secs_f64())
    }

    /// Returns the number of objects marked per second of marking.
    #[must_use]
    pub fn mark_rate(&self) -> f64 {
        ratio(self.collections.objects as f64, self.collections.marking.as_secs_f64())
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
