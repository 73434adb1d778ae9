//! What a heap can say about itself.

use crate::{Histogram, Layout};
use std::time::Duration;

/// Cells of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// What their words are.
    pub layout: Layout,
    /// Words of one.
    pub words: usize,
    /// How many.
    pub cells: u64,
}

/// Cells that one thread may hand out without asking the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegated {
    /// The thread's number, by enrolment.
    pub thread: u64,
    /// By size.
    pub cells: Vec<Cells>,
}

/// What collections did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collections {
    /// From the wish to stop until threads went on.
    pub pauses: Histogram,
    /// The part of it in which threads were still on their way.
    pub stopping: Duration,
    /// The part of it that was marking.
    pub marking: Duration,
    /// The part of it that was sweeping.
    pub sweeping: Duration,
    /// Objects that were marked.
    pub objects: u64,
}

/// A heap at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Cells that were handed out so far, by size: the request mix.
    pub requests: Vec<Cells>,
    /// Objects that were blocks of their own: how many.
    pub large_requests: u64,
    /// Their words.
    pub large_words: u64,
    /// How often the ledger was asked.
    pub ledger_visits: u64,
    /// Cells delegated at this moment.
    pub delegated: Vec<Delegated>,
    /// What collections did.
    pub collections: Collections,
    /// Since the heap was made.
    pub age: Duration,
    /// Objects alive after the last collection.
    pub live_objects: u64,
    /// Bytes of their cells.
    pub live_bytes: usize,
    /// Bytes that are handed out from the last collection to the next.
    pub budget_bytes: usize,
    /// Bytes of blocks that are not free.
    pub used_bytes: usize,
    /// Bytes that may have memory behind them.
    pub warm_bytes: usize,
    /// Bytes that may be in use.
    pub limit_bytes: usize,
    /// Threads that collect; fewer than was asked for when the system gave no more.
    pub gc_threads: usize,
}

impl Statistics {
    /// Objects that were allocated.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        self.requests.iter().map(|it| it.cells).sum::<u64>() + self.large_requests
    }

    /// How often the ledger was asked for 1000 allocations; zero when there were none.
    #[must_use]
    pub fn visits_per_thousand(&self) -> f64 {
        ratio(self.ledger_visits as f64 * 1000.0, self.allocations() as f64)
    }

    /// Share of time in which threads stood still for collections, 0 to 1.
    #[must_use]
    pub fn gc_share(&self) -> f64 {
        ratio(self.collections.pauses.total().as_secs_f64(), self.age.as_secs_f64())
    }

    /// Objects marked in a second of marking.
    #[must_use]
    pub fn mark_rate(&self) -> f64 {
        ratio(self.collections.objects as f64, self.collections.marking.as_secs_f64())
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
