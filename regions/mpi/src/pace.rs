//! Decides how often a rank polls for messages and transfers: often while there is work, at intervals of up to 2 ms
//! while there is none.

use std::time::{Duration, Instant};

/// Time after the last work in which a rank yields between two polls instead of sleeping.
pub(crate) const AWAKE: Duration = Duration::from_millis(2);
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);

/// Longest time between two polls that counts as waiting. After a longer one, this process was stopped, or the machine
/// slept.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Measures for how long polls for one event have failed.
#[derive(Debug)]
pub struct Vain {
    last: Instant,
    so_far: Duration,
}

impl Default for Vain {
    fn default() -> Vain {
        Vain { last: Instant::now(), so_far: Duration::ZERO }
    }
}

impl Vain {
    /// Records another failed poll, which counts for at most two seconds. Returns the time for which polls have failed.
    pub fn again(&mut self) -> Duration {
        let passed = self.last.elapsed();
        self.last += passed;
        self.so_far += passed.min(LONGEST_LOOK);
        self.so_far
    }
}

/// The pauses between the polls of one thread.
#[derive(Debug)]
pub(crate) struct Pace {
    busy: Instant,
    nap: Duration,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { busy: Instant::now(), nap: SHORTEST }
    }

    /// Records that a poll found work.
    pub(crate) fn busy(&mut self) {
        *self = Pace::new();
    }

    /// Pauses after a poll that found no work: yields at first, then sleeps for longer each time.
    pub(crate) fn rest(&mut self) {
        if self.busy.elapsed() < AWAKE {
            return std::thread::yield_now();
        }
        std::thread::sleep(self.nap);
        self.nap = LONGEST.min(self.nap * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspended_time_does_not_count() {
        let hour = Duration::from_secs(3600);
        let Some(before) = Instant::now().checked_sub(hour) else { return };
        let mut vain = Vain { last: before, so_far: Duration::from_secs(3) };
        let first = vain.again();
        assert_eq!(first, Duration::from_secs(5));
        assert!(vain.again() < first + Duration::from_secs(1));
    }
}
