//! Counts the pauses for collections by length, and the objects that collections marked.

use crate::engine::Measured;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Length of a histogram's longest bar, in characters.
const BAR: u64 = 40;

/// The pauses for collections in one or more runs, counted by length, and what the collections marked.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Number of pauses by length in nanoseconds. The length is at most a sixteenth too long.
    counts: BTreeMap<u64, u64>,
    /// Number of marked objects. (`seconds` is the time spent marking them.)
    objects: f64,
    marking: f64,
}

impl Pauses {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of less than a day")]
    pub(super) fn of<'r>(runs: impl Iterator<Item = &'r Measured>) -> Pauses {
        let mut all = Pauses::default();
        for run in runs {
            for (micros, count) in &run.pauses {
                *all.counts.entry((micros * 1e3) as u64).or_default() += count;
            }
            let (objects, marking) = run.marked.unwrap_or_default();
            (all.objects, all.marking) = (all.objects + objects, all.marking + marking);
        }
        all
    }

    fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the milliseconds that `percent` of the pauses do not exceed, or `None` if there was no pause.
    fn quantile(&self, percent: u64) -> Option<f64> {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        self.counts.iter().find_map(|(nanos, count)| {
            seen += count;
            (seen >= wanted).then_some(*nanos as f64 / 1e6)
        })
    }

    /// Returns a text about the pauses that begins with `of`: their number and quantiles, and a histogram of their
    /// lengths. The text is empty if there was no pause.
    pub(super) fn text(&self, of: &str) -> String {
        let (Some(median), Some(most)) = (self.quantile(50), self.quantile(90)) else { return String::new() };
        let mut text = format!("{of}: {} pauses, half of them within {median:.2} ms", self.count());
        let _ = write!(text, ", nine of ten within {most:.2} ms");
        if self.marking > 0.0 {
            let rate = self.objects / self.marking / 1e6;
            let _ = write!(text, "; {rate:.0} million objects marked a second");
        }
        text.push('\n');
        let highest = self.counts.values().max().copied().unwrap_or(1);
        for (nanos, count) in &self.counts {
            let (ms, bar) = (*nanos as f64 / 1e6, usize::try_from((count * BAR).div_ceil(highest)));
            let _ = writeln!(text, "{ms:>10.2} ms {} {count}", "#".repeat(bar.unwrap_or(0)));
        }
        text
    }

    /// Returns the counts as JSON keys.
    pub(super) fn keys(&self) -> Value {
        let mut keys = json!({});
        if let Some(median) = self.quantile(50) {
            let seconds = self.counts.iter().map(|(nanos, count)| (*nanos as f64 / 1e9, count));
            keys["pauses"] = json!(seconds.collect::<Vec<_>>());
            keys["pause_median"] = (median / 1e3).into();
        }
        if self.marking > 0.0 {
            keys["marked_per_second"] = (self.objects / self.marking).into();
        }
        keys
    }
}
