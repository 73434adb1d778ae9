//! The time for which a device works on a transfer, while others are in flight.
//!
//! ```text
//!   transfer 1   |-----------|
//!   transfer 2      |------------|           latency: from its start to its end
//!   transfer 3        |---------------|
//!                            |---|----|      service time: from the end before to its own
//! ```
//! The sum of service times is the time in which the device was busy. So the service time of a transfer is what it
//! costs if the device is the bottleneck; its latency is what it costs a thread that waits for it.

use std::time::{Duration, Instant};

/// Computes the service times of the transfers of one device from their starts and ends.
#[derive(Debug, Default)]
pub struct ServiceTime {
    last_end: Option<Instant>,
}

impl ServiceTime {
    /// Notes that a transfer ended at `now`, and returns its service time.
    pub fn ended(&mut self, began: Instant, now: Instant) -> Duration {
        let since = self.last_end.map_or(began, |last| last.max(began));
        self.last_end = Some(now);
        now.saturating_duration_since(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_times_add_up_to_the_time_in_which_the_device_was_busy() {
        let start = Instant::now();
        let at = |us| start + Duration::from_micros(us);
        let mut service = ServiceTime::default();
        let ended = [(0, 100), (10, 110), (20, 150), (400, 450)]
            .map(|(began, end)| service.ended(at(began), at(end)).as_micros());
        assert_eq!(ended, [100, 10, 40, 50]);
    }
}
