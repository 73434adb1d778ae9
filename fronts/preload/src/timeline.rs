//! Records the time line of far memory for the report: its counters at the ends of equal intervals.
//!
//! A thread of this process reads the counters. Another process could do so, too, as `largesse status` does, but often
//! lacks the permission: only an ancestor may always read the memory of a process, and `largesse run` becomes the
//! program itself. A forked child has no time line.
//!
//! The number of intervals is bounded: when there are too many, pairs are merged, and later ones are twice as long.

use crate::message::warn;
use crate::{far_counters, record, service_thread};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use largesse_pager::{COUNTS, Count};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Largest number of intervals of a time line.
const MOST: usize = 512;
/// Length of the first intervals.
const SHORTEST: Duration = Duration::from_millis(10);

/// The values of the counters at one time.
#[derive(Clone, Copy)]
struct Reading {
    at: Duration,
    words: [u64; COUNTS],
}

struct Timeline {
    began: Instant,
    interval: Duration,
    readings: Vec<Reading>,
}

static TIMELINE: Mutex<Option<Timeline>> = Mutex::new(None);

impl Timeline {
    fn new() -> Timeline {
        // Allocated now, so that the thread never allocates.
        Timeline { began: Instant::now(), interval: SHORTEST, readings: Vec::with_capacity(MOST + 1) }
    }

    /// Adds the reading at the end of an interval. If there is no room for it, pairs of intervals are merged.
    fn add(&mut self, reading: Reading) {
        if self.readings.len() > MOST {
            let mut place = 0;
            self.readings.retain(|_| {
                place += 1;
                place % 2 == 1 // the beginning, and the end of every second interval
            });
            self.interval *= 2;
        }
        self.readings.push(reading);
    }

    fn read(&mut self) {
        if let Some(words) = far_counters::all() {
            self.add(Reading { at: self.began.elapsed(), words: words.all() });
        }
    }
}

/// Begins the time line, if a report is to be written and there is far memory.
pub(crate) fn start() {
    if !record::is_of_this_program() || far_counters::all().is_none() {
        return;
    }
    with(|timeline| timeline.get_or_insert_with(Timeline::new).read());
    start_thread();
}

/// Starts the thread that reads the counters, once in a process. It waits until the time line begins.
pub(crate) fn start_thread() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    // Relaxed: no other memory depends on it.
    if !STARTED.swap(true, Ordering::Relaxed) && !service_thread::start(follow) {
        warn("the report's time line has no thread, so it shows only the beginning and the end");
    }
}

/// Reads the counters at the end of every interval until the process ends.
fn follow() {
    loop {
        let interval = with(|timeline| timeline.as_ref().map_or(SHORTEST, |it| it.interval));
        std::thread::sleep(interval);
        with(|timeline| timeline.as_mut().map(Timeline::read));
    }
}

fn with<R>(f: impl FnOnce(&mut Option<Timeline>) -> R) -> R {
    f(&mut TIMELINE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends the last interval, and writes each interval as a line of JSON to a new file; writes none without a time line.
/// The lines are not collected, since a process that fills its control group has no room for all of them.
pub(crate) fn write(path: &str) {
    with(|timeline| {
        let Some(timeline) = timeline.as_mut() else { return };
        timeline.read();
        let write_rows = |file| {
            let mut to = BufWriter::new(file);
            timeline.readings.windows(2).try_for_each(|pair| writeln!(to, "{}", interval(pair)))?;
            to.flush()
        };
        // An error is ignored: without the watcher's folder there is no reader either.
        let _ = File::create(path).and_then(write_rows);
    });
}

/// The counters that are levels: the report shows their values at the end of an interval. Of all others it shows the
/// increase.
const NOW: [Count; 12] = [
    Count::LocalBytes,
    Count::ResidentBytes,
    Count::StoredBytes,
    Count::MappedBytes,
    Count::SetBytes,
    Count::LeastSetBytes,
    Count::MostSetBytes,
    Count::UncoveredBytes,
    Count::ReadMedianNs,
    Count::ReadP99Ns,
    Count::WriteMedianNs,
    Count::WriteP99Ns,
];

/// Returns the interval between two readings for the report.
fn interval(pair: &[Reading]) -> Value {
    let [before, now] = pair else { return Value::Null };
    let mut fields = Map::new();
    fields.insert("seconds".into(), (now.at.as_micros() as f64 * 1e-6).into());
    for (place, name) in Count::NAMES.into_iter().enumerate() {
        let is_now = NOW.iter().any(|&count| count as usize == place);
        let value =
            if is_now { now.words[place] } else { now.words[place].wrapping_sub(before.words[place]) };
        fields.insert(name.into(), value.into());
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time line of a program with a fault every 10 ms.
    fn after(faults: u32) -> Timeline {
        let mut timeline = Timeline::new();
        let mut at = Duration::ZERO;
        while at <= SHORTEST * faults {
            let mut words = [0; COUNTS];
            words[Count::Faults as usize] = (at.as_millis() / SHORTEST.as_millis()) as u64;
            words[Count::SetBytes as usize] = 4096;
            timeline.add(Reading { at, words });
            at += timeline.interval;
        }
        timeline
    }

    #[test]
    fn merged_intervals_keep_their_sums() {
        for (faults, shortest) in [(1, 1), (512, 1), (513, 2), (5008, 16)] {
            let timeline = after(faults);
            assert!(timeline.readings.len() <= MOST + 1);
            assert_eq!(timeline.interval, SHORTEST * shortest, "{faults}");
            let shown: Vec<Value> = timeline.readings.windows(2).map(interval).collect();
            let sum: u64 = shown.iter().map(|fields| fields["faults"].as_u64().unwrap()).sum();
            let last = timeline.readings.last().unwrap().words[Count::Faults as usize];
            assert!(sum == last && last + u64::from(shortest) > u64::from(faults), "{sum} of {faults}");
            assert!(shown.iter().all(|fields| fields["set_bytes"] == 4096));
            let longest = timeline.readings.windows(2).map(|pair| pair[1].at - pair[0].at).max();
            assert!(longest <= Some(timeline.interval));
        }
    }
}
