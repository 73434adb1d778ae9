//! Implements histograms of durations, with sixteen buckets per doubling.

use std::time::Duration;

/// Number of buckets, from 16 ns to 2^40 ns (18 minutes).
const BUCKETS: usize = 640;

/// A histogram: the number of durations of each length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: Duration,
    longest: Duration,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        self.counts[bucket(time)] += 1;
        self.total += time;
        self.longest = self.longest.max(time);
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }

    /// Returns the longest duration.
    #[must_use]
    pub const fn longest(&self) -> Duration {
        self.longest
    }

    /// Returns a duration that a `share` (0 to 1) of all recorded durations do not exceed. It is at most 1/16 too
    /// long, and zero if no duration was recorded.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (end, count) in self.buckets() {
            seen += count;
            if count > 0 && seen >= wanted {
                return end.min(self.longest);
            }
        }
        self.longest
    }

    /// Returns the longest duration and the number of durations of each bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.counts.iter().enumerate().map(|(index, &count)| (end_of(index), count))
    }
}

/// Returns the bucket of a duration; there are sixteen between two powers of two.
fn bucket(time: Duration) -> usize {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(16);
    let power = nanos.ilog2();
    let part = nanos >> (power - 4) & 15;
    (power as usize * 16 + part as usize).min(BUCKETS - 1)
}

fn end_of(index: usize) -> Duration {
    let (power, part) = (index / 16, index as u64 % 16);
    Duration::from_nanos((17 + part) * (1 << power) / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_error_is_bounded() {
        for nanos in (16..4000).chain([1_000_000, 999_999_999, 123_456_789_012]) {
            let time = Duration::from_nanos(nanos);
            let end = end_of(bucket(time));
            assert!(time <= end && end <= time * 17 / 16 + Duration::from_nanos(1), "{time:?} in {end:?}");
        }
    }

    #[test]
    fn quantile_is_the_median() {
        let mut times = Histogram::default();
        assert_eq!(times.quantile(0.5), Duration::ZERO);
        for millis in [1, 2, 30, 40, 50] {
            times.add(Duration::from_millis(millis));
        }
        assert!((30..=36).contains(&times.quantile(0.5).as_millis()));
        assert_eq!((times.count(), times.longest()), (5, Duration::from_millis(50)));
        assert_eq!(times.total(), Duration::from_millis(123));
    }
}
