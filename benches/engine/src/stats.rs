//! Computes medians, spreads and noise.

/// The median of some values, and how far they are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    /// Largest value less the smallest, divided by the median.
    pub(super) spread: f64,
    pub(super) runs: usize,
}

impl Summary {
    /// Summarizes `values`; `None` if there are none.
    pub(super) fn of(values: &[f64]) -> Option<Summary> {
        let median = quantile(values, 0.5)?;
        let span = quantile(values, 1.0)? - quantile(values, 0.0)?;
        let spread = if median > 0.0 { span / median } else { 0.0 };
        Some(Summary { median, spread, runs: values.len() })
    }
}

/// Returns the least distance of a ratio from 1 that counts as a difference: the distance of two series of the same
/// runs, or, where their medians agree by chance, the interquartile range of all these runs divided by the root of
/// their number.
pub(super) fn noise(first: &[f64], again: &[f64]) -> Option<f64> {
    let apart = quantile(again, 0.5)? / quantile(first, 0.5)? - 1.0;
    let both = [first, again].concat();
    let half = (quantile(&both, 0.75)? - quantile(&both, 0.25)?) / quantile(&both, 0.5)?;
    let runs = f64::from(u32::try_from(both.len()).unwrap_or(u32::MAX));
    let noise = apart.abs().max(half / runs.sqrt());
    noise.is_finite().then_some(noise)
}

/// Least number of runs from which a difference is claimed.
pub(super) const LEAST_RUNS: usize = 3;

/// Returns the words that replace a verdict if there are fewer runs than [`LEAST_RUNS`].
pub(super) fn no_claim(runs: usize) -> Option<&'static str> {
    match runs {
        LEAST_RUNS.. => None,
        2 => Some("two runs: no claim"),
        _ => Some("one run: no claim"),
    }
}

/// Interpolates the quantile `share` of `values` linearly between the two nearest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a handful of runs"
)]
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

    #[track_caller]
    fn check(values: &[f64], median: f64, spread: f64) {
        let summary = Summary::of(values).unwrap();
        assert_eq!((summary.median, summary.spread, summary.runs), (median, spread, values.len()));
    }

    #[test]
    fn median_of_an_even_number_lies_between() {
        check(&[3.0], 3.0, 0.0);
        check(&[4.0, 2.0], 3.0, 2.0 / 3.0);
        check(&[5.0, 1.0, 4.0], 4.0, 1.0);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn noise_is_the_distance_of_equal_runs() {
        assert_eq!(noise(&[1.0, 1.0, 1.0], &[1.25, 1.25, 1.25]).unwrap(), 0.25);
        assert_eq!(noise(&[1.0], &[]), None);
    }

    #[test]
    fn equal_medians_do_not_hide_scatter() {
        let noise = noise(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!(noise > 0.2, "{noise}");
    }
}
