//! The time line of far memory, for the report: its words at the ends of equal intervals.
//!
//! A thread of this process reads the words. Another process could as well, as `largesse status` does,
//! but not for everybody: `largesse run` becomes the program, so that nobody stays who may read the
//! memory of a child, and who is no ancestor often may not. A forked child has no time line.
//!
//! The number of intervals is bounded: when there are too many, every two become one, and later ones
//! are as long.

use crate::start::warn;
use crate::{far, helper, record};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use largesse_pager::{COUNTS, Count};
use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Intervals at most.
const MOST: usize = 512;
/// The first intervals.
const SHORTEST: Duration = Duration::from_millis(10);

/// The words at one moment.
#[derive(Clone, Copy)]
struct Row {
    at: Duration,
    words: [u64; COUNTS],
}

struct Timeline {
    began: Instant,
    interval: Duration,
    rows: Vec<Row>,
}

static TIMELINE: Mutex<Option<Timeline>> = Mutex::new(None);

impl Timeline {
    fn new() -> Timeline {
        // Room for all of it now: the thread never allocates.
        Timeline { began: Instant::now(), interval: SHORTEST, rows: Vec::with_capacity(MOST + 1) }
    }

    /// An interval ends. When there is no room for another one, every two become one.
    fn add(&mut self, row: Row) {
        if self.rows.len() > MOST {
            let mut place = 0;
            self.rows.retain(|_| {
                place += 1;
                place % 2 == 1 // the beginning, and the end of every second interval
            });
            self.interval *= 2;
        }
        self.rows.push(row);
    }

    fn look(&mut self) {
        if let Some(words) = far::counters() {
            self.add(Row { at: self.began.elapsed(), words: words.all() });
        }
    }
}

/// Begins, when a report is to be written and there is far memory.
pub(crate) fn start() {
    if !record::is_of_this_program() || far::counters().is_none() {
        return;
    }
    with(|timeline| timeline.insert(Timeline::new()).look());
    start_thread();
}

/// Starts the thread that looks, once in a process. Before there is a time line it waits.
pub(crate) fn start_thread() {
    static STARTED: AtomicBool = AtomicBool::new(false);
    // Relaxed: it orders nothing else.
    if !STARTED.swap(true, Ordering::Relaxed) && !helper::spawn(follow) {
        warn("no thread for the report's time line: it shows the beginning and the end only");
    }
}

/// Looks at the end of every interval, as long as the process lives.
fn follow() {
    loop {
        let interval = with(|timeline| timeline.as_ref().map_or(SHORTEST, |it| it.interval));
        std::thread::sleep(interval);
        with(|timeline| timeline.as_mut().map(Timeline::look));
    }
}

fn with<R>(f: impl FnOnce(&mut Option<Timeline>) -> R) -> R {
    f(&mut TIMELINE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends the last interval now, and returns all of them for the report.
pub(crate) fn finish() -> Option<Vec<Value>> {
    with(|timeline| {
        let timeline = timeline.as_mut()?;
        timeline.look();
        Some(timeline.rows.windows(2).map(interval).collect())
    })
}

/// What is, at the end of an interval; everything else is counted in it.
const NOW: [Count; 8] = [
    Count::LocalBytes,
    Count::ResidentBytes,
    Count::StoredBytes,
    Count::MappedBytes,
    Count::SetBytes,
    Count::LeastSetBytes,
    Count::MostSetBytes,
    Count::UncoveredBytes,
];

/// One interval of the report.
fn interval(pair: &[Row]) -> Value {
    let [before, now] = pair else { return Value::Null };
    let mut row = Map::new();
    row.insert("seconds".into(), (now.at.as_micros() as f64 * 1e-6).into());
    for (place, name) in Count::NAMES.into_iter().enumerate() {
        let is_now = NOW.iter().any(|&count| count as usize == place);
        let value =
            if is_now { now.words[place] } else { now.words[place].wrapping_sub(before.words[place]) };
        row.insert(name.into(), value.into());
    }
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time line of a program that ran so long, with a fault every 10 ms.
    fn after(faults: u32) -> Timeline {
        let mut timeline = Timeline::new();
        let mut at = Duration::ZERO;
        while at <= SHORTEST * faults {
            let mut words = [0; COUNTS];
            words[Count::Faults as usize] = (at.as_millis() / SHORTEST.as_millis()) as u64;
            words[Count::SetBytes as usize] = 4096;
            timeline.add(Row { at, words });
            at += timeline.interval;
        }
        timeline
    }

    #[test]
    fn intervals_double_when_there_are_too_many_and_nothing_is_lost() {
        for (faults, shortest) in [(1, 1), (512, 1), (513, 2), (5008, 16)] {
            let timeline = after(faults);
            assert!(timeline.rows.len() <= MOST + 1);
            assert_eq!(timeline.interval, SHORTEST * shortest, "{faults}");
            let shown: Vec<Value> = timeline.rows.windows(2).map(interval).collect();
            let sum: u64 = shown.iter().map(|row| row["faults"].as_u64().unwrap()).sum();
            let last = timeline.rows.last().unwrap().words[Count::Faults as usize];
            assert!(sum == last && last + u64::from(shortest) > u64::from(faults), "{sum} of {faults}");
            assert!(shown.iter().all(|row| row["set_bytes"] == 4096));
            let longest = timeline.rows.windows(2).map(|pair| pair[1].at - pair[0].at).max();
            assert!(longest <= Some(timeline.interval));
        }
    }
}
