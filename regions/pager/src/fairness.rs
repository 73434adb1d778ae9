//! Rests of the thread that serves faults, where it shares a processor with those who fault.
//!
//! Whom it wakes takes the processor from it, faults, and gives it back: tens of thousands of times a second, and always
//! one of them can run. Linux 6.18 then keeps everybody else of that processor waiting, for minutes (EEVDF: each change
//! renews the slice of their group): another session's or control group's threads, a store's process, and kernel threads
//! that a fork or the end of a process waits for. When all of them sleep for a moment the group gives way.
//!
//! Where another thread of the program has work meanwhile, they do not all sleep; but a group in which nobody changes
//! places for a slice gives way too. So from time to time the rest is as long as that. One that has is who
//! waits for the end of a process: the kernel lets it spin until the last thread of that process has cleared away what
//! was looked up below `/proc/PID`, and that one had no turn.

use largesse_machine::thread::{involuntary_switches, process_cpu_time};
use std::time::{Duration, Instant};

/// So often it is looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// Turns within an interval that are too short: each change of threads is one.
const SHORT: i64 = 50;
const REST: Duration = Duration::from_micros(100);
/// A slice (2.8 ms at most) is seen to be over when the clock of the kernel ticks (each 4 ms in most kernels).
const LONG_REST: Duration = Duration::from_millis(8);
const SELDOM: Duration = Duration::from_millis(500);

/// The turns of the calling thread.
pub(crate) struct FairnessThrottle {
    since: Instant,
    taken: i64,
    /// The last long rest.
    rested: Instant,
}

impl FairnessThrottle {
    pub(crate) fn new() -> FairnessThrottle {
        let now = Instant::now();
        FairnessThrottle { since: now, taken: involuntary_switches(), rested: now }
    }

    /// At most about a fortieth of the time, and none where nobody takes the processor away.
    pub(crate) fn rest_if_short(&mut self, now: Instant) {
        if now.duration_since(self.since) < INTERVAL {
            return;
        }
        let taken = involuntary_switches();
        if taken - self.taken > SHORT {
            let worked = process_cpu_time();
            std::thread::sleep(REST);
            let somebody_works = process_cpu_time().saturating_sub(worked) > REST / 2;
            if somebody_works && now.duration_since(self.rested) > SELDOM {
                std::thread::sleep(LONG_REST);
                self.rested = now;
            }
        }
        (self.since, self.taken) = (Instant::now(), taken);
    }
}
