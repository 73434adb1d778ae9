//! How often a rank looks around: at once while there is something to do, seldom when not; and for how long.

use std::time::{Duration, Instant};

/// So long after the last thing to do, the processor is only offered to others.
pub(crate) const AWAKE: Duration = Duration::from_millis(2);
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);

/// Of the time between two looks no more counts: this process was stopped, or the machine slept.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// For how long somebody has looked in vain.
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
    /// Another look, every two seconds at least, in vain as the ones before; how long that makes.
    pub fn again(&mut self) -> Duration {
        let passed = self.last.elapsed();
        self.last += passed;
        self.so_far += passed.min(LONGEST_LOOK);
        self.so_far
    }
}

/// The pauses of a loop that waits.
#[derive(Debug)]
pub(crate) struct Pace {
    busy: Instant,
    nap: Duration,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { busy: Instant::now(), nap: SHORTEST }
    }

    /// There was something to do.
    pub(crate) fn busy(&mut self) {
        *self = Pace::new();
    }

    /// There was nothing.
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
    fn time_in_which_nobody_could_look_does_not_count() {
        let hour = Duration::from_secs(3600);
        let Some(before) = Instant::now().checked_sub(hour) else { return };
        let mut vain = Vain { last: before, so_far: Duration::from_secs(3) };
        let first = vain.again();
        assert_eq!(first, Duration::from_secs(5));
        assert!(vain.again() < first + Duration::from_secs(1));
    }
}
