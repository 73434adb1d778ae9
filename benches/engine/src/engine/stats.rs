//! Computes medians, spreads and noise.

use serde::Serialize;

/// The median of some values, and their spread: the largest value less the smallest, divided by the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) spread: f64,
    pub(crate) runs: usize,
}

impl Summary {
    /// Summarizes `values`, or returns `None` if there are none.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let [least, median, most] = [0.0, 0.5, 1.0].map(|share| quantile(values, share));
        let (median, span) = (median?, most? - least?);
        let spread = if median > 0.0 { span / median } else { 0.0 };
        Some(Summary { median, spread, runs: values.len() })
    }

    /// Adds the spread in per cent to `text`, which shows the median.
    pub(crate) fn spread_after(self, text: String) -> String {
        format!("{text} ({:.0}%)", self.spread * 100.0)
    }

    /// Adds the spread in per cent to `text`, unless there was only one run.
    pub(crate) fn with_spread(self, text: String) -> String {
        if self.runs == 1 { text } else { self.spread_after(text) }
    }
}

/// Returns the least distance of a ratio from 1 that counts as a difference. It is the distance of the medians of two
/// series of the same runs or, if that is larger, the interquartile range of all these runs divided by the root of
/// their number: the medians may agree by chance.
pub(crate) fn noise(first: &[f64], again: &[f64]) -> Option<f64> {
    let apart = quantile(again, 0.5)? / quantile(first, 0.5)? - 1.0;
    let both = [first, again].concat();
    let half = (quantile(&both, 0.75)? - quantile(&both, 0.25)?) / quantile(&both, 0.5)?;
    let noise = apart.abs().max(half / (both.len() as f64).sqrt());
    noise.is_finite().then_some(noise)
}

/// Returns the words that replace a verdict if there are fewer than three runs.
pub(crate) fn no_claim(runs: usize) -> Option<&'static str> {
    match runs {
        3.. => None,
        2 => Some("two runs: no claim"),
        _ => Some("one run: no claim"),
    }
}

/// Returns the quantile `share` (0 to 1) of `values`, interpolated linearly between the two nearest values.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful of runs")]
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(below + (above - below) * place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_medians_do_not_hide_scatter() {
        assert_eq!(Summary::of(&[4.0, 2.0]), Some(Summary { median: 3.0, spread: 2.0 / 3.0, runs: 2 }));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(noise(&[1.0, 1.0, 1.0], &[1.25, 1.25, 1.25]), Some(0.25));
        assert_eq!(noise(&[1.0], &[]), None);
        let scatter = noise(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!(scatter > 0.2, "{scatter}");
    }
}
