//! Measures the time in which faults stalled at least one thread of the program.

use core::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Measures for how long at least one thread waited, as a lower bound: if the wait of one thread lies within that of
/// another, the part of the longer wait before the shorter one is not counted.
#[derive(Debug)]
pub struct StallTime {
    began: Instant,
    /// Nanoseconds from `began` to the latest end of any wait.
    end_of_last: AtomicU64,
    /// Counted time in nanoseconds.
    total: AtomicU64,
}

// All accesses are Relaxed: `end_of_last` only grows, each increase is counted by the thread that made it, and no other
// data depend on it.
impl StallTime {
    /// Makes a counter of 0 nanoseconds. All waits must begin after `began`.
    #[must_use]
    pub fn new(began: Instant) -> StallTime {
        StallTime { began, end_of_last: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// Adds the wait of a thread from `start` to `end`, except the part before the latest end of all earlier waits.
    pub fn add(&self, start: Instant, end: Instant) {
        let since = |at: Instant| u64::try_from((at - self.began).as_nanos()).unwrap_or(u64::MAX);
        let (start, end) = (since(start), since(end));
        let before = self.end_of_last.fetch_max(end, Ordering::Relaxed);
        self.total.fetch_add(end.saturating_sub(before.max(start)), Ordering::Relaxed);
    }

    /// Returns the counted time since the start.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_waits_count_once() {
        for (waits, want) in [
            (&[(0, 10), (20, 30)][..], 20),
            (&[(0, 10), (0, 10), (0, 10)], 10),
            (&[(0, 10), (5, 15), (10, 20)], 20),
            (&[(10, 20), (0, 20)], 10),
            (&[(5, 10), (0, 20)], 15),
        ] {
            let time = StallTime::new(Instant::now());
            let at = |ms| time.began + Duration::from_millis(ms);
            waits.iter().for_each(|&(start, end)| time.add(at(start), at(end)));
            assert_eq!(time.total(), Duration::from_millis(want), "waits {waits:?} in ms");
        }
    }
}
