//! Counts the pauses of collections by length, and how fast they marked.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Length of a histogram's longest bar, in characters.
const BAR: u64 = 40;

/// The pauses of one or more runs, counted by length.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    /// Numbers of pauses by length in nanoseconds, which is at most a sixteenth too long.
    counts: BTreeMap<u64, u64>,
    /// Number of marked objects.
    objects: f64,
    /// Seconds spent marking.
    marking: f64,
}

impl Pauses {
    /// Reads the numbers that a program prints: pairs of microseconds and a number of pauses; marked objects and
    /// seconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of less than a day")]
    pub(super) fn of(pauses: &[(f64, u64)], marked: Option<(f64, f64)>) -> Pauses {
        let (objects, marking) = marked.unwrap_or_default();
        let counts = pauses.iter().map(|&(micros, count)| ((micros * 1e3) as u64, count)).collect();
        Pauses { counts, objects, marking }
    }

    fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Returns the milliseconds that `percent` of the pauses do not exceed; `None` if there was no pause.
    fn quantile(&self, percent: u64) -> Option<f64> {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        self.counts.iter().find_map(|(nanos, count)| {
            seen += count;
            (seen >= wanted).then_some(*nanos as f64 / 1e6)
        })
    }

    /// Returns the number of objects marked in a second of marking.
    fn mark_rate(&self) -> Option<f64> {
        (self.marking > 0.0).then(|| self.objects / self.marking)
    }

    /// Returns a line and a histogram; empty if there was no pause.
    pub(super) fn show(&self, who: &str) -> String {
        let (Some(median), Some(most)) = (self.quantile(50), self.quantile(90)) else { return String::new() };
        let mut text = format!("{who}: {} pauses, half of them within {median:.2} ms", self.count());
        let _ = write!(text, ", nine of ten within {most:.2} ms");
        if let Some(rate) = self.mark_rate() {
            let _ = write!(text, "; {:.0} million objects marked a second", rate / 1e6);
        }
        text.push('\n');
        let highest = self.counts.values().max().copied().unwrap_or(1);
        for (nanos, count) in &self.counts {
            let bar: String = (0..(count * BAR).div_ceil(highest)).map(|_| '#').collect();
            let _ = writeln!(text, "{:>10.2} ms {bar} {count}", *nanos as f64 / 1e6);
        }
        text
    }

    /// Adds the counts to the JSON object of a cell.
    pub(super) fn tell(&self, cell: &mut Value) {
        if let Some(median) = self.quantile(50) {
            let counts: Vec<_> =
                self.counts.iter().map(|(nanos, count)| (*nanos as f64 / 1e9, count)).collect();
            cell["pauses"] = json!(counts);
            cell["pause_median"] = (median / 1e3).into();
        }
        if let Some(rate) = self.mark_rate() {
            cell["marked_per_second"] = rate.into();
        }
    }
}

impl<'a> std::iter::Sum<&'a Pauses> for Pauses {
    fn sum<I: Iterator<Item = &'a Pauses>>(all: I) -> Pauses {
        let mut sum = Pauses::default();
        for one in all {
            one.counts.iter().for_each(|(nanos, count)| *sum.counts.entry(*nanos).or_default() += count);
            sum.objects += one.objects;
            sum.marking += one.marking;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_of_all_runs_are_added() {
        let one = Pauses::of(&[(1000.0, 3), (9000.0, 1)], Some((2e6, 0.5)));
        let other = Pauses::of(&[(500.0, 1), (9000.0, 5)], Some((1e6, 0.5)));
        let both: Pauses = [&one, &other].into_iter().sum();
        assert_eq!((both.count(), both.quantile(50), both.quantile(90)), (10, Some(9.0), Some(9.0)));
        assert_eq!((one.quantile(50), both.mark_rate()), (Some(1.0), Some(3e6)));
        let text = both.show("safepoint, 2 threads");
        assert!(text.starts_with("safepoint, 2 threads: 10 pauses, half of them within 9.00 ms"), "{text}");
        assert!(text.contains("3 million objects"), "{text}");
        let bars: Vec<usize> = text.lines().skip(1).map(|line| line.matches('#').count()).collect();
        assert_eq!(bars, [7, 20, 40]);
        let mut cell = json!({});
        both.tell(&mut cell);
        assert_eq!((&cell["pause_median"], &cell["pauses"][0]), (&json!(0.009), &json!([0.0005, 1])));
    }

    #[test]
    fn systems_without_pauses_show_none() {
        let (none, mut cell) = (Pauses::of(&[], None), json!({}));
        none.tell(&mut cell);
        assert_eq!((none.show("go, 1 threads"), cell), (String::new(), json!({})));
    }
}
