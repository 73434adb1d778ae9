//! Prints one line on standard error if a program waits for far memory for most of a minute.
//!
//! The totals of the last minute are kept at steps of a few seconds, so that a minute is measured whenever it begins:
//!
//! ```text
//!   kept totals   │ │ │ │ │ │ │ │ │ │ │ │ now
//!                 └─ at most PERIOD ──────┘   reported if at least REPORTED_WAIT of it was waited
//! ```

use crate::notices::{Notice, warn_once};
use crate::{heap, limit_state};
use core::time::Duration;
use largesse_pager::Count;
use largesse_pages::base_page;
use largesse_policy::replacement::Refaults;
use std::collections::VecDeque;
use std::time::Instant;

/// Longest period in which waiting time is measured.
const PERIOD: Duration = Duration::from_secs(60);
/// Time between the beginnings of two periods that are measured.
const STEP: Duration = Duration::from_secs(5);
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

/// Measures the program's waits for far memory in the last [`PERIOD`].
#[derive(Debug)]
pub(crate) struct WaitMonitor {
    began: Instant,
    /// Totals at the beginnings of the periods that are measured, oldest first.
    beginnings: VecDeque<WaitTotals>,
    is_reported: bool,
}

impl WaitMonitor {
    pub(crate) fn new() -> WaitMonitor {
        let beginnings = VecDeque::from([WaitTotals::default()]);
        WaitMonitor { began: Instant::now(), beginnings, is_reported: false }
    }

    /// Prints the line about long waits for far memory, once: when threads waited for at least [`REPORTED_WAIT`] in
    /// the last [`PERIOD`].
    pub(crate) fn check(&mut self) {
        let Some(far) = heap::far().filter(|_| !self.is_reported) else { return };
        let pager = far.pager();
        let (at, evictions) = (self.began.elapsed(), pager.counters.get(Count::Evictions));
        let now = WaitTotals { at, waited: pager.stalled(), evictions, refaults: pager.refaults() };
        if let Some(period) = self.step(now) {
            let sizes = [Count::LocalBytes, Count::ResidentBytes, Count::StoredBytes];
            let [local, resident, stored] = sizes.map(|size| pager.counters.get(size));
            let text = message(&period, local, resident.saturating_add(stored), limit_state::is_watched());
            warn_once(Notice::LongWaits, &text);
        }
    }

    /// Returns the totals of the last period if it is the first one to be reported; `now` has the totals since the
    /// start.
    fn step(&mut self, now: WaitTotals) -> Option<WaitTotals> {
        let age = |before: &WaitTotals| now.at.saturating_sub(before.at);
        while self.beginnings.front().is_some_and(|first| age(first) > PERIOD) {
            self.beginnings.pop_front();
        }
        let period = self.beginnings.front().map(|first| now.since(first));
        if self.beginnings.back().is_none_or(|last| age(last) >= STEP) {
            self.beginnings.push_back(now);
        }
        let reported = period.filter(|period| !self.is_reported && period.waited >= REPORTED_WAIT);
        self.is_reported |= reported.is_some();
        reported
    }
}

/// Returns the line about a period. Far memory has `all` bytes, of which `local` may be resident; `limited` says that
/// it is bounded by `--limit` instead of `--local`.
fn message(period: &WaitTotals, local: u64, all: u64, limited: bool) -> String {
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
    let needed = working_set(local, &period.refaults, all).div_ceil(1 << 20);
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

/// Returns the size in bytes of the program's working set, of which `local` bytes may be resident: what refaulted would
/// be resident, too, if there was room for it. It cannot exceed `all` bytes of far memory.
fn working_set(local: u64, refaults: &Refaults, all: u64) -> u64 {
    local.saturating_add(refaults.missing() * base_page() as u64).min(all.max(local))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at a program each second for the time of all `parts`, which are a number of seconds and the share of the
    /// time that the program waits, in percent. Returns the seconds at which a message is due, and the seconds waited
    /// that it tells.
    fn reports(parts: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut waits = WaitMonitor::new();
        let mut now = WaitTotals::default();
        let mut due = Vec::new();
        for percent in parts.iter().flat_map(|&(seconds, percent)| (0..seconds).map(move |_| percent)) {
            now.at += Duration::from_secs(1);
            now.waited += Duration::from_millis(percent * 10);
            due.extend(waits.step(now).map(|period| (now.at.as_secs(), period.waited.as_secs())));
        }
        due
    }

    #[test]
    fn long_waits_are_reported_once() {
        assert_eq!(reports(&[(200, 100)]), [(45, 45)], "from the start on");
        assert_eq!(reports(&[(20, 0), (80, 100), (100, 0)]), [(65, 45)], "from second 20 to 100");
        assert_eq!(reports(&[(33, 0), (60, 80), (300, 80)]), [(90, 45)], "most of the time");
    }

    #[test]
    fn short_waits_are_not_reported() {
        assert_eq!(reports(&[(300, 70)]), [], "42 of 60 s");
        assert_eq!(reports(&[(20, 0), (44, 100), (200, 5)]), [], "44 s, and little before and after");
        assert_eq!(reports(&[(30, 100), (40, 0), (30, 100)]), [], "far apart");
    }

    #[test]
    fn late_look_measures_no_longer_period() {
        let mut waits = WaitMonitor::new();
        let at = |at, waited| {
            let [at, waited] = [at, waited].map(Duration::from_secs);
            WaitTotals { at, waited, ..WaitTotals::default() }
        };
        assert!(waits.step(at(600, 50)).is_none(), "when in these 600 s it waited is not known");
        assert!(waits.step(at(640, 94)).is_none(), "44 s since then");
        assert_eq!(waits.step(at(645, 95)).map(|period| period.at), Some(Duration::from_secs(45)));
    }

    #[test]
    fn few_refaults_advise_a_faster_store() {
        let waited = Duration::from_secs(51);
        let period = WaitTotals { at: PERIOD, waited, evictions: 1000, ..WaitTotals::default() };
        let text = message(&period, 8 << 20, 64 << 20, false);
        assert!(text.contains("in 51 of 60 s") && text.contains("a faster store"), "{text}");
        assert!(text.ends_with("a --local above 8 MiB"), "{text}");
        let text = message(&period, 8 << 20, 64 << 20, true);
        assert!(text.contains("a faster store") && text.ends_with("a higher --limit"), "{text}");
    }

    /// Returns the refaults of a loop over `pages` pages with room for `local` of them: each page is evicted once in a
    /// round, and refaults when the others that have no room were evicted after it.
    fn loop_over(pages: u32, local: u32) -> Refaults {
        let mut refaults = Refaults::default();
        refaults.add(pages, pages - local);
        refaults
    }

    #[test]
    fn working_set_is_local_memory_and_distance() {
        let bytes = |pages: u32| u64::from(pages) * base_page() as u64;
        let (all, local) = (bytes(1_000_000), bytes(2000));
        let refaults = loop_over(5000, 2000);
        assert_eq!(working_set(local, &refaults, all), bytes(5000), "all pages of the loop");
        assert_eq!(working_set(local, &refaults, bytes(4000)), bytes(4000), "no more than there is");
        assert_eq!(working_set(local, &Refaults::default(), all), local, "without refaults");
        assert_eq!(working_set(local, &Refaults::default(), 0), local, "without far pages");
    }

    #[test]
    fn refaults_advise_the_working_set() {
        let pages = |mib: u64| u32::try_from((mib << 20) / base_page() as u64).expect("few pages");
        let waited = Duration::from_secs(45);
        let refaults = loop_over(pages(64), pages(8));
        let period = WaitTotals { at: waited, waited, evictions: pages(64).into(), refaults };
        let text = message(&period, 8 << 20, 100 << 20, false);
        assert!(
            text.ends_with("is about 64 MiB, and --local is 8 MiB: --local 64M avoids most waits"),
            "{text}"
        );
        let text = message(&period, 8 << 20, 100 << 20, true);
        assert!(
            text.contains("about 64 MiB, and --limit leaves them 8 MiB: a limit that is 56 MiB higher"),
            "{text}"
        );
    }
}
