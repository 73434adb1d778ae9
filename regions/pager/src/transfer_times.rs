//! How long transfers from and to the store take, and how many of them are in flight at once.
//!
//! A transfer that ends in the call that makes it is [timed](Pager::timed) by that call. Of one that runs while its
//! thread continues, the owner of its queue [notes](Pager::note_ended) the time.

use crate::Count;
use crate::counters::Counters;
use crate::lock::{RankedMutex, TIMES};
use crate::pager::{Pager, as_nanoseconds};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use largesse_policy::{Latencies, ServiceTime};
use largesse_store::Direction;
use std::time::Instant;

/// The distribution of the times of all transfers in one direction.
#[derive(Debug, Default)]
pub(crate) struct TransferTimes {
    distribution: RankedMutex<Distribution, TIMES>,
    /// Number of calls of [`timed`](Pager::timed) that have not returned.
    calls: AtomicU64,
}

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

const READS: Counted = Counted {
    number: Count::Reads,
    sum: Count::ReadNs,
    median: Count::ReadMedianNs,
    percentile_99: Count::ReadP99Ns,
    busy: Count::ReadBusyNs,
    most: Count::MostReads,
};
const WRITES: Counted = Counted {
    number: Count::Writes,
    sum: Count::WriteNs,
    median: Count::WriteMedianNs,
    percentile_99: Count::WriteP99Ns,
    busy: Count::WriteBusyNs,
    most: Count::MostWrites,
};

const fn counted(direction: Direction) -> &'static Counted {
    match direction {
        Direction::Read => &READS,
        Direction::Write => &WRITES,
    }
}

impl Distribution {
    fn add(&mut self, counters: &Counters, direction: Direction, latency: Duration, service: Duration) {
        let to = counted(direction);
        self.latencies.add(latency);
        counters.add(to.number, 1);
        counters.add(to.sum, as_nanoseconds(latency));
        counters.add(to.busy, as_nanoseconds(service));
        counters.set(to.median, self.latencies.median());
        counters.set(to.percentile_99, self.latencies.percentile_99());
    }
}

impl<K, S> Pager<K, S> {
    /// Notes that `transfers` transfers of a direction are in flight.
    pub(crate) fn note_in_flight(&self, direction: Direction, transfers: usize) {
        self.counters.raise(counted(direction).most, transfers as u64);
    }

    /// Notes the end of a transfer that ran while its thread continued: its [latency and service time](ServiceTime).
    pub(crate) fn note_ended(&self, direction: Direction, latency: Duration, service: Duration) {
        self.times(direction).distribution.lock().add(&self.counters, direction, latency, service);
    }

    /// Makes a transfer that blocks the calling thread, and notes its time.
    pub(crate) fn timed<T>(&self, direction: Direction, transfer: impl FnOnce() -> T) -> T {
        let times = self.times(direction);
        let began = Instant::now();
        // Relaxed: statistics
        let before = times.calls.fetch_add(1, Ordering::Relaxed);
        let result = transfer();
        times.calls.fetch_sub(1, Ordering::Relaxed);
        let ended = Instant::now();
        self.counters.raise(counted(direction).most, before + 1);
        let mut distribution = times.distribution.lock();
        let service = distribution.calls.ended(began, ended);
        distribution.add(&self.counters, direction, ended.saturating_duration_since(began), service);
        result
    }

    const fn times(&self, direction: Direction) -> &TransferTimes {
        match direction {
            Direction::Read => &self.read_times,
            Direction::Write => &self.write_times,
        }
    }
}
