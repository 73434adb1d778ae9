//! How often a rank looks around: at once while there is something to do, seldom when not.

use std::time::{Duration, Instant};

/// So long after the last thing to do, the processor is only offered to others.
pub(crate) const AWAKE: Duration = Duration::from_millis(2);
const SHORTEST: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);

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
