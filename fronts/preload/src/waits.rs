//! One line on standard error when a program waits for far memory for most of a minute.

use crate::{far, start};
use core::time::Duration;
use largesse_pager::{Count, Counters};
use std::time::Instant;

/// How long the program is watched before its waits are judged.
const WINDOW: Duration = Duration::from_secs(60);
/// Waits of this length in a window, all threads together, are worth a line.
const MOST_OF_IT: Duration = Duration::from_secs(45);

/// The totals at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// Time since the start.
    at: Duration,
    /// Time that threads have waited.
    waited: Duration,
    /// Bytes read from the store.
    read: u64,
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
        let Some(words) = far::counters() else { return };
        let now = Moment {
            at: self.began.elapsed(),
            waited: Duration::from_nanos(words.get(Count::WaitNs)),
            read: words.get(Count::BytesIn),
        };
        if let Some((waited, read)) = self.step(now)
            && start::is_launched()
        {
            start::warn(&line(waited, read, words));
        }
    }

    /// The time waited and the bytes read in the window that ends `now`; `None` unless it is the first with
    /// waits of [`MOST_OF_IT`].
    fn step(&mut self, now: Moment) -> Option<(Duration, u64)> {
        if self.said || now.at - self.window.at < WINDOW {
            return None;
        }
        let before = core::mem::replace(&mut self.window, now);
        let waited = now.waited.saturating_sub(before.waited);
        self.said = waited >= MOST_OF_IT;
        self.said.then_some((waited, now.read.saturating_sub(before.read)))
    }
}

fn line(waited: Duration, read: u64, words: &Counters) -> String {
    let local = words.get(Count::LocalBytes);
    let all = words.get(Count::ResidentBytes).saturating_add(words.get(Count::StoredBytes));
    // An upper bound: a page that was read several times within the window is counted each time.
    let used = local.saturating_add(read).min(all.max(local));
    format!(
        "in a minute this program's threads waited {} s for far memory; they used at most {} MiB in that time, and --local is {} MiB: with --local {}M it would not wait",
        waited.as_secs(),
        used >> 20,
        local >> 20,
        used.div_ceil(1 << 20)
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
            waits.step(Moment { at: Duration::from_secs(at), waited, read: 0 }).is_some()
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
    fn line_names_a_size_that_helps() {
        let words = Counters::default();
        let text = line(Duration::from_secs(51), 0, &words);
        assert!(text.starts_with("in a minute this program's threads waited 51 s"), "{text}");
    }
}
