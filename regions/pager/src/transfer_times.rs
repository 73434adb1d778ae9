//! How long transfers from and to the store take, and how many of them are in flight at once.
//!
//! A transfer that ends in the call that makes it is [timed](TransferTimes::timed) by that call. Of one that runs while
//! its thread continues, the owner of its queue [tells](TransferTimes::ended) the time.

use crate::Count;
use crate::counters::{Counters, as_nanoseconds};
use crate::lock::{RankedMutex, TIMES};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use largesse_policy::{Latencies, ServiceTime};
use largesse_store::Direction;
use std::time::Instant;

/// The times of the transfers of one direction.
#[derive(Debug)]
pub(crate) struct TransferTimes {
    direction: Direction,
    distribution: RankedMutex<Distribution, TIMES>,
    /// Number of calls of [`timed`](TransferTimes::timed) that have not returned.
    calls: AtomicU64,
}

/// The distribution of times, and the end of the last timed call.
#[derive(Debug, Default)]
struct Distribution {
    latencies: Latencies,
    /// Service time of transfers that block their threads, which several threads may make at once.
    calls: ServiceTime,
}

/// The counters that describe the transfers of one direction.
struct Counted {
    number: Count,
    sum: Count,
    median: Count,
    percentile_99: Count,
    busy: Count,
    most: Count,
}

const fn counted(direction: Direction) -> Counted {
    match direction {
        Direction::Read => Counted {
            number: Count::Reads,
            sum: Count::ReadNs,
            median: Count::ReadMedianNs,
            percentile_99: Count::ReadP99Ns,
            busy: Count::ReadBusyNs,
            most: Count::MostReads,
        },
        Direction::Write => Counted {
            number: Count::Writes,
            sum: Count::WriteNs,
            median: Count::WriteMedianNs,
            percentile_99: Count::WriteP99Ns,
            busy: Count::WriteBusyNs,
            most: Count::MostWrites,
        },
    }
}

impl TransferTimes {
    /// Makes the times of a direction without any transfer.
    pub(crate) fn new(direction: Direction) -> TransferTimes {
        TransferTimes { direction, distribution: RankedMutex::default(), calls: AtomicU64::new(0) }
    }

    /// Raises the counter of the largest number of transfers in flight at once to `transfers`, if it is lower.
    pub(crate) fn in_flight(&self, counters: &Counters, transfers: usize) {
        counters.raise(counted(self.direction).most, transfers as u64);
    }

    /// Counts a transfer that has ended, with its [latency and service time](ServiceTime).
    pub(crate) fn ended(&self, counters: &Counters, latency: Duration, service: Duration) {
        self.add(&mut self.distribution.lock(), counters, latency, service);
    }

    /// Makes a transfer by a call, and counts it and its time.
    pub(crate) fn timed<T>(&self, counters: &Counters, transfer: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let before = self.calls.fetch_add(1, Ordering::Relaxed); // Relaxed: statistics
        let result = transfer();
        self.calls.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        let ended = Instant::now();
        counters.raise(counted(self.direction).most, before + 1);
        let mut distribution = self.distribution.lock();
        let service = distribution.calls.ended(began, ended);
        self.add(&mut distribution, counters, ended.saturating_duration_since(began), service);
        result
    }

    fn add(&self, to: &mut Distribution, counters: &Counters, latency: Duration, service: Duration) {
        let words = counted(self.direction);
        to.latencies.add(latency);
        counters.add(words.number, 1);
        counters.add(words.sum, as_nanoseconds(latency));
        counters.add(words.busy, as_nanoseconds(service));
        counters.set(words.median, to.latencies.median());
        counters.set(words.percentile_99, to.latencies.percentile_99());
    }
}
