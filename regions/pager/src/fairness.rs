//! Sleeps of the handler thread, where it shares a CPU with the faulting threads.
//!
//! On such a CPU, a woken thread takes the CPU from the handler, faults, and gives it back: tens of thousands of times
//! a second, and one of the two is always ready to run. Linux 6.18 then lets all other threads of that CPU wait for
//! minutes, because each switch renews the time slice of their group (EEVDF): threads of other sessions and control
//! groups, the process of a store, and kernel threads for which a fork or the end of a process waits. When all threads
//! of the group sleep for a moment, others get their turn.
//!
//! If another thread of the program works, the group does not sleep. But the kernel also takes the CPU from a group
//! that switches no threads for a time slice, so that the handler sleeps for that long now and then. This helps, for
//! example, a thread that waits for the end of a process: the kernel lets it spin until the last thread of that process
//! has freed its entries below `/proc/PID`.

use largesse_machine::thread::{involuntary_switches, process_cpu_time};
use std::time::{Duration, Instant};

/// Shortest time between two checks of whether the handler should sleep.
const INTERVAL: Duration = Duration::from_millis(10);
/// Number of involuntary context switches of the handler between two checks above which it sleeps.
const SHORT: i64 = 50;
/// Duration of a usual sleep of the handler.
const REST: Duration = Duration::from_micros(100);
/// Duration of a long sleep of the handler. A time slice has at most 2.8 ms, and the kernel notices its end at a tick
/// of its clock, which comes each 4 ms in most kernels.
const LONG_REST: Duration = Duration::from_millis(8);
/// Shortest time from the end of a long sleep to the start of the next.
const LONG_REST_INTERVAL: Duration = Duration::from_millis(500);

/// Makes the calling thread sleep if the threads of its CPU take it from each other too often.
pub(crate) struct FairnessThrottle {
    since: Instant,
    taken: i64,
    /// When the last long sleep ended.
    rested: Instant,
}

impl FairnessThrottle {
    pub(crate) fn new() -> FairnessThrottle {
        let now = Instant::now();
        FairnessThrottle { since: now, taken: involuntary_switches(), rested: now }
    }

    /// Sleeps if the CPU was often taken from the calling thread since the last check. Sleeps take at most about a
    /// fortieth of the time.
    pub(crate) fn rest_if_short(&mut self, now: Instant) {
        if now.duration_since(self.since) < INTERVAL {
            return;
        }
        let taken = involuntary_switches();
        if taken - self.taken > SHORT {
            let worked = process_cpu_time();
            std::thread::sleep(REST);
            let others_work = process_cpu_time().saturating_sub(worked) > REST / 2;
            if others_work && now.duration_since(self.rested) > LONG_REST_INTERVAL {
                std::thread::sleep(LONG_REST);
                self.rested = Instant::now();
            }
        }
        (self.since, self.taken) = (Instant::now(), taken);
    }
}
