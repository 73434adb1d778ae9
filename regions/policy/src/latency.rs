//! The distribution of the times of transfers: a log-linear histogram, as HdrHistogram has (Tene 2012), whose
//! median and 99th percentile are known after each value.
//!
//! ```text
//!   bucket        0 … 15 | 16 … 31  | 32 … 47     | 48 …            16 buckets for each doubling
//!   nanoseconds   0 … 15 | 16 … 31  | 32, 34 … 62 | 64, 68 …        so that a bucket is at most 1/16 wide
//! ```
//! A percentile is a bucket and the number of values below it. An added value moves it by few buckets, mostly by none,
//! so that recording a value costs about as much as counting it.

use std::time::Duration;

/// Number of buckets for each doubling, as its logarithm to base 2.
const STEPS: u32 = 4;
/// Number of buckets. The last one holds the longest time that fits into 64 bits.
const BUCKETS: usize = (u64::BITS as usize - STEPS as usize + 1) << STEPS;

/// The distribution of the times of transfers since the start, in nanoseconds.
#[derive(Debug)]
pub struct Latencies {
    counts: Box<[u64]>,
    number: u64,
    median: Percentile,
    percentile_99: Percentile,
}

/// A percentile of the distribution: the bucket that contains its value.
#[derive(Debug)]
struct Percentile {
    per_cent: u64,
    bucket: usize,
    /// Number of values in the buckets below `bucket`.
    below: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        let percentile = |per_cent| Percentile { per_cent, bucket: 0, below: 0 };
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Latencies { counts, number: 0, median: percentile(50), percentile_99: percentile(99) }
    }
}

impl Latencies {
    /// Adds the time of one transfer.
    pub fn add(&mut self, latency: Duration) {
        let bucket = bucket_of(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        self.counts[bucket] += 1;
        self.number += 1;
        for percentile in [&mut self.median, &mut self.percentile_99] {
            percentile.added(bucket, &self.counts, self.number);
        }
    }

    /// Returns the median in nanoseconds, with a relative error of at most 1/32; 0 if there are no transfers.
    #[must_use]
    pub fn median(&self) -> u64 {
        middle_of(self.median.bucket)
    }

    /// Returns the time in nanoseconds in which 99 % of the transfers ended, with a relative error of at most 1/32; 0
    /// if there are no transfers.
    #[must_use]
    pub fn percentile_99(&self) -> u64 {
        middle_of(self.percentile_99.bucket)
    }
}

impl Percentile {
    /// Moves to the bucket that contains the percentile now, after a value was added to `bucket`. `number` is the
    /// number of all values.
    fn added(&mut self, bucket: usize, counts: &[u64], number: u64) {
        self.below += u64::from(bucket < self.bucket);
        let rank = (number * self.per_cent).div_ceil(100);
        while self.below >= rank {
            self.bucket -= 1;
            self.below -= counts[self.bucket];
        }
        while self.below + counts[self.bucket] < rank {
            self.below += counts[self.bucket];
            self.bucket += 1;
        }
    }
}

fn bucket_of(ns: u64) -> usize {
    let doubling = (ns | 1 << STEPS).ilog2() - STEPS;
    ((doubling as usize) << STEPS) + usize::try_from(ns >> doubling).unwrap_or(0)
}

/// Returns the middle of a bucket in nanoseconds.
fn middle_of(bucket: usize) -> u64 {
    let doubling = (bucket >> STEPS).saturating_sub(1);
    let least = ((bucket - (doubling << STEPS)) as u64) << doubling;
    least + (1 << doubling) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for shift in 0..64 {
            for ns in [1_u64 << shift, (1 << shift) + (1 << shift) / 3, (1 << shift) | ((1 << shift) - 1)] {
                let middle = middle_of(bucket_of(ns));
                assert!(middle.abs_diff(ns) <= ns / 32 + 1, "{ns} is shown as {middle}");
                assert!(bucket_of(ns) <= bucket_of(ns.saturating_add(1)), "{ns}");
            }
        }
        assert_eq!((bucket_of(0), bucket_of(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn percentiles_are_those_of_sorted_values() {
        let mut random = 12345_u64;
        let mut values = Vec::new();
        let mut latencies = Latencies::default();
        assert_eq!((latencies.median(), latencies.percentile_99()), (0, 0));
        for step in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Long ones first and short ones then, so that percentiles move both ways, and few very long ones.
            let ns = (random >> 40) / (1 + step / 7) + if step % 90 == 0 { 1 << 30 } else { 60_000 };
            latencies.add(Duration::from_nanos(ns));
            values.insert(values.partition_point(|&other| other < ns), ns);
            let of = |per_cent: usize| values[(values.len() * per_cent).div_ceil(100) - 1];
            let want = [of(50), of(99)].map(|ns| middle_of(bucket_of(ns)));
            assert_eq!([latencies.median(), latencies.percentile_99()], want, "after {step}");
        }
    }
}
