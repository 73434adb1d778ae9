//! The time in which the program waited, however many of its threads did.

use core::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The length of the union of intervals in which threads waited, at least: of two intervals of which one lies within the
/// other and ends before it, the part before the inner one is not counted.
#[derive(Debug)]
pub struct Stalled {
    began: Instant,
    /// Nanoseconds from `began` to the end of the last interval.
    upto: AtomicU64,
    /// Sum in nanoseconds.
    total: AtomicU64,
}

// Relaxed throughout: `upto` only grows, each of its steps is counted by the thread that made it, and nothing else is
// read by way of it.
impl Stalled {
    pub fn new(began: Instant) -> Stalled {
        Stalled { began, upto: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// Counts a thread's wait from `start` to `end`, as far as it is after all waits that ended before.
    pub fn waited(&self, start: Instant, end: Instant) {
        let since = |at: Instant| u64::try_from((at - self.began).as_nanos()).unwrap_or(u64::MAX);
        let (start, end) = (since(start), since(end));
        let before = self.upto.fetch_max(end, Ordering::Relaxed);
        self.total.fetch_add(end.saturating_sub(before.max(start)), Ordering::Relaxed);
    }

    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_once_count_once() {
        for (waits, want) in [
            (&[(0, 10), (20, 30)][..], 20),
            (&[(0, 10), (0, 10), (0, 10)], 10),
            (&[(0, 10), (5, 15), (10, 20)], 20),
            (&[(10, 20), (0, 20)], 10),
            (&[(5, 10), (0, 20)], 15),
        ] {
            let stalled = Stalled::new(Instant::now());
            let at = |ms| stalled.began + Duration::from_millis(ms);
            waits.iter().for_each(|&(start, end)| stalled.waited(at(start), at(end)));
            assert_eq!(stalled.total(), Duration::from_millis(want), "waits {waits:?} in ms");
        }
    }
}
