//! Sleeps of the handler thread, where it shares a CPU with the faulting threads.
//!
//! There, a woken thread takes the CPU from the handler, faults, and gives it back: tens of thousands of times a
//! second, and one of the two is always ready to run. Linux 6.18 then lets all other threads of that CPU wait for
//! minutes, because each switch renews the time slice of their group (EEVDF): threads of other sessions and control
//! groups, the process of a store, and kernel threads for which a fork or the end of a process waits. When all threads
//! of the group sleep for a moment, others get their turn.
//!
//! If another thread of the program works, they do not all sleep. But a group that switches no threads for a time slice
//! gives way as well, so that the handler sleeps that long now and then. This helps, for example, a thread that waits
//! for the end of a process: the kernel lets it spin until the last thread of that process has freed its entries below
//! `/proc/PID`.

use largesse_machine::thread::{involuntary_switches, process_cpu_time};
use std::time::{Duration, Instant};

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Number of involuntary switches in an interval from which on the handler sleeps.
const SHORT: i64 = 50;
/// Duration of a usual sleep.
const REST: Duration = Duration::from_micros(100);
/// Duration of a long sleep. A time slice has at most 2.8 ms, and the kernel notices its end at a tick of its clock,
/// each 4 ms in most kernels.
const LONG_REST: Duration = Duration::from_millis(8);
/// Shortest time between two long sleeps.
const SELDOM: Duration = Duration::from_millis(500);

/// The switches of the calling thread, and its sleeps.
pub(crate) struct FairnessThrottle {
    since: Instant,
    taken: i64,
    /// The end of the last long sleep.
    rested: Instant,
}

impl FairnessThrottle {
    pub(crate) fn new() -> FairnessThrottle {
        let now = Instant::now();
        FairnessThrottle { since: now, taken: involuntary_switches(), rested: now }
    }

    /// Sleeps, if the CPU was often taken from the calling thread: for about a fortieth of the time at most.
    pub(crate) fn rest_if_short(&mut self, now: Instant) {
        if now.duration_since(self.since) < INTERVAL {
            return;
        }
        let taken = involuntary_switches();
        if taken - self.taken > SHORT {
            let worked = process_cpu_time();
            std::thread::sleep(REST);
            let others_work = process_cpu_time().saturating_sub(worked) > REST / 2;
            if others_work && now.duration_since(self.rested) > SELDOM {
                std::thread::sleep(LONG_REST);
                self.rested = now;
            }
        }
        (self.since, self.taken) = (Instant::now(), taken);
    }
}
