//! Rests of the thread that serves faults, where it shares a processor with those who fault.
//!
//! Whom it wakes takes the processor from it, faults, and gives it back: tens of thousands of times a second, and always
//! one of them can run. Linux 6.18 then keeps everybody else of that processor waiting, for minutes (EEVDF: each change
//! renews the slice of their group): another session's or control group's threads, a store's process, and kernel threads
//! that a fork or the end of a process waits for. When all of them sleep for a moment the group gives way.

use largesse_machine::thread::taken_away;
use std::time::{Duration, Instant};

/// So often it is looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// Turns within an interval that are too short: each change of threads is one.
const SHORT: i64 = 50;
const REST: Duration = Duration::from_micros(100);

/// The turns of the calling thread.
pub(crate) struct Turns {
    since: Instant,
    taken: i64,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns { since: Instant::now(), taken: taken_away() }
    }

    /// At most a hundredth of the time, and none where nobody takes the processor away.
    pub(crate) fn rest_if_short(&mut self, now: Instant) {
        if now.duration_since(self.since) < INTERVAL {
            return;
        }
        let taken = taken_away();
        if taken - self.taken > SHORT {
            std::thread::sleep(REST);
        }
        *self = Turns { since: Instant::now(), taken };
    }
}
