//! One line on standard error when a program waits for far memory for most of a minute.

use crate::{serve, start};
use core::time::Duration;
use largesse_pager::{Count, Counters};
use largesse_pages::base_page;
use largesse_policy::replacement::Refaults;
use std::time::Instant;

/// How long the program is watched before its waits are judged.
const WINDOW: Duration = Duration::from_secs(60);
/// Waiting this long within a window is worth a line. Threads that wait at the same time count once.
const MOST_OF_IT: Duration = Duration::from_secs(45);
/// Refaults advise more local memory when they are at least one in this number of evictions.
const REFAULTS: u64 = 4;

/// The totals at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// Time since the start.
    at: Duration,
    /// Time in which at least one thread waited.
    waited: Duration,
    /// Number of evicted pages.
    evictions: u64,
    refaults: Refaults,
}

impl Moment {
    /// Returns what happened since `before`.
    fn since(&self, before: &Moment) -> Moment {
        Moment {
            at: self.at.saturating_sub(before.at),
            waited: self.waited.saturating_sub(before.waited),
            evictions: self.evictions.saturating_sub(before.evictions),
            refaults: self.refaults.since(&before.refaults),
        }
    }
}

/// The program's waits, looked at now and then.
#[derive(Debug)]
pub(crate) struct Waits {
    began: Instant,
    window: Moment,
    said: bool,
}

impl Waits {
    pub(crate) fn new() -> Waits {
        Waits { began: Instant::now(), window: Moment::default(), said: false }
    }

    /// Looks at the waits of far memory, and says once that there are too many.
    pub(crate) fn look(&mut self) {
        let at = self.began.elapsed();
        let Some(far) = serve::far().filter(|_| self.is_due(at)) else { return };
        let pager = far.pager();
        let evictions = pager.counters.get(Count::Evictions);
        let now = Moment { at, waited: pager.stalled(), evictions, refaults: pager.refaults() };
        if let Some(window) = self.step(now)
            && start::is_launched()
        {
            start::warn(&line(&window, &pager.counters));
        }
    }

    /// Whether a window ends at `at`.
    fn is_due(&self, at: Duration) -> bool {
        !self.said && at - self.window.at >= WINDOW
    }

    /// Returns what happened in the window that ends `now`; `None` unless it is the first with waits of
    /// [`MOST_OF_IT`].
    fn step(&mut self, now: Moment) -> Option<Moment> {
        if !self.is_due(now.at) {
            return None;
        }
        let window = now.since(&core::mem::replace(&mut self.window, now));
        self.said = window.waited >= MOST_OF_IT;
        self.said.then_some(window)
    }
}

fn line(window: &Moment, words: &Counters) -> String {
    let local = words.get(Count::LocalBytes);
    let waited = format!(
        "within {} s this program waited {} s for far memory",
        window.at.as_secs(),
        window.waited.as_secs()
    );
    if window.refaults.pages() < window.evictions / REFAULTS || window.refaults.pages() == 0 {
        return format!(
            "{waited}; it seldom used memory again that had left --local ({} MiB), so that a faster store (--far) would help more than a larger --local",
            local >> 20
        );
    }
    // Data that is nowhere needs no local memory.
    let all = words.get(Count::ResidentBytes).saturating_add(words.get(Count::StoredBytes));
    let needed =
        (local + window.refaults.missing() * base_page() as u64).min(all.max(local)).div_ceil(1 << 20);
    format!(
        "{waited}; its working set is about {needed} MiB, and --local is {} MiB: with --local {needed}M it would hardly wait",
        local >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares whether a line is due at each of `steps`: the second, and the seconds waited since the step before.
    #[track_caller]
    fn check(steps: &[(u64, u64)], want: &[bool]) {
        let mut waits = Waits::new();
        let mut waited = 0;
        let due = steps.iter().map(|&(at, more)| {
            waited += more;
            let waited = Duration::from_secs(waited);
            waits.step(Moment { at: Duration::from_secs(at), waited, ..Moment::default() }).is_some()
        });
        assert_eq!(due.collect::<Vec<_>>(), want, "{steps:?}");
    }

    #[test]
    fn most_of_a_minute_is_said_once() {
        check(&[(30, 30), (60, 15), (120, 60)], &[false, true, false]);
        check(&[(60, 44), (90, 40), (120, 10)], &[false, false, true]);
        check(&[(60, 0), (120, 44), (180, 44)], &[false, false, false]);
    }

    #[test]
    fn program_without_refaults_needs_a_faster_store() {
        let window = Moment { waited: Duration::from_secs(51), evictions: 1000, ..Moment::default() };
        let text = line(&window, &Counters::default());
        assert!(text.contains("waited 51 s") && text.contains("a faster store"), "{text}");
    }
}
