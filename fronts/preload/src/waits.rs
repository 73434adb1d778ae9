//! Prints one line on standard error if a program waits for far memory for most of a minute.

use crate::message::warn;
use crate::{heap, limit_state, settings};
use core::time::Duration;
use largesse_pager::{Count, Counters};
use largesse_pages::base_page;
use largesse_policy::replacement::Refaults;
use std::time::Instant;

/// Length of the periods in which waiting time is measured.
const PERIOD: Duration = Duration::from_secs(60);
/// Waiting time from which on a period is reported. Threads that wait at the same time count once.
const REPORTED_WAIT: Duration = Duration::from_secs(45);
/// More local memory is advised if at least one in this number of evicted pages was refaulted.
const EVICTIONS_PER_REFAULT: u64 = 4;

/// Totals since the start of the process, or of one period.
#[derive(Clone, Copy, Debug, Default)]
struct WaitTotals {
    /// Time since the start, or length of the period.
    at: Duration,
    /// Time in which at least one thread waited.
    waited: Duration,
    /// Number of evicted pages.
    evictions: u64,
    refaults: Refaults,
}

impl WaitTotals {
    /// Returns the differences from `before`.
    fn since(&self, before: &WaitTotals) -> WaitTotals {
        WaitTotals {
            at: self.at.saturating_sub(before.at),
            waited: self.waited.saturating_sub(before.waited),
            evictions: self.evictions.saturating_sub(before.evictions),
            refaults: self.refaults.since(&before.refaults),
        }
    }
}

/// Measures the program's waits for far memory in periods of [`PERIOD`].
#[derive(Debug)]
pub(crate) struct WaitMonitor {
    began: Instant,
    /// Totals at the start of the period.
    period: WaitTotals,
    is_reported: bool,
}

impl WaitMonitor {
    pub(crate) fn new() -> WaitMonitor {
        WaitMonitor { began: Instant::now(), period: WaitTotals::default(), is_reported: false }
    }

    /// Prints the line about long waits for far memory, once in a process: when a period has ended in which threads
    /// waited for at least [`REPORTED_WAIT`].
    pub(crate) fn check(&mut self) {
        let at = self.began.elapsed();
        let Some(far) = heap::far().filter(|_| self.is_due(at)) else { return };
        let pager = far.pager();
        let evictions = pager.counters.get(Count::Evictions);
        let now = WaitTotals { at, waited: pager.stalled(), evictions, refaults: pager.refaults() };
        if let Some(period) = self.step(now)
            && settings::is_launched()
        {
            warn(&message(&period, &pager.counters, limit_state::is_watched()));
        }
    }

    /// Returns whether a period ends at `at` and none was reported before.
    fn is_due(&self, at: Duration) -> bool {
        !self.is_reported && at - self.period.at >= PERIOD
    }

    /// Ends the present period if it is over; `now` has the totals since the start. Returns the totals of the period if
    /// it is the first one to be reported.
    fn step(&mut self, now: WaitTotals) -> Option<WaitTotals> {
        if !self.is_due(now.at) {
            return None;
        }
        let period = now.since(&core::mem::replace(&mut self.period, now));
        self.is_reported = period.waited >= REPORTED_WAIT;
        self.is_reported.then_some(period)
    }
}

/// Returns the line about a period; `limited` says that far memory is bounded by `--limit` instead of `--local`.
fn message(period: &WaitTotals, words: &Counters, limited: bool) -> String {
    let local = words.get(Count::LocalBytes);
    let waited = format!(
        "this program waited for far memory in {} of {} s",
        period.waited.as_secs(),
        period.at.as_secs()
    );
    if period.refaults.pages() < period.evictions / EVICTIONS_PER_REFAULT || period.refaults.pages() == 0 {
        let more =
            if limited { "higher --limit".to_owned() } else { format!("--local above {} MiB", local >> 20) };
        return format!(
            "{waited}; it rarely reused evicted pages, so a faster store (--far) helps more than a {more}"
        );
    }
    // The working set cannot exceed all data of far memory.
    let all = words.get(Count::ResidentBytes).saturating_add(words.get(Count::StoredBytes));
    let needed =
        (local + period.refaults.missing() * base_page() as u64).min(all.max(local)).div_ceil(1 << 20);
    let local = local >> 20;
    if limited {
        let more = needed.saturating_sub(local);
        return format!(
            "{waited}; the working set of its large blocks is about {needed} MiB, and --limit leaves them {local} MiB: a \
             limit that is {more} MiB higher avoids most waits"
        );
    }
    format!(
        "{waited}; its working set is about {needed} MiB, and --local is {local} MiB: --local {needed}M avoids most waits"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that a message is due exactly at the steps where `want` is true. A step is a time in seconds, and the
    /// seconds waited since the step before.
    #[track_caller]
    fn check(steps: &[(u64, u64)], want: &[bool]) {
        let mut waits = WaitMonitor::new();
        let mut waited = 0;
        let due = steps.iter().map(|&(at, more)| {
            waited += more;
            let waited = Duration::from_secs(waited);
            waits.step(WaitTotals { at: Duration::from_secs(at), waited, ..WaitTotals::default() }).is_some()
        });
        assert_eq!(due.collect::<Vec<_>>(), want, "{steps:?}");
    }

    #[test]
    fn long_waits_are_reported_once() {
        check(&[(30, 30), (60, 15), (120, 60)], &[false, true, false]);
        check(&[(60, 44), (90, 40), (120, 10)], &[false, false, true]);
        check(&[(60, 0), (120, 44), (180, 44)], &[false, false, false]);
    }

    #[test]
    fn few_refaults_advise_a_faster_store() {
        let waited = Duration::from_secs(51);
        let period = WaitTotals { at: PERIOD, waited, evictions: 1000, ..WaitTotals::default() };
        let text = message(&period, &Counters::default(), false);
        assert!(text.contains("in 51 of 60 s") && text.contains("a faster store"), "{text}");
        let text = message(&period, &Counters::default(), true);
        assert!(text.contains("a faster store") && text.ends_with("a higher --limit"), "{text}");
    }
}
