//! Medians, spreads and what counts as noise.

/// The middle of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    /// Largest less smallest, over the median.
    pub(super) spread: f64,
    pub(super) runs: usize,
}

impl Summary {
    /// `None` of nothing.
    pub(super) fn of(values: &[f64]) -> Option<Summary> {
        let median = quantile(values, 0.5)?;
        let span = quantile(values, 1.0)? - quantile(values, 0.0)?;
        let spread = if median > 0.0 { span / median } else { 0.0 };
        Some(Summary { median, spread, runs: values.len() })
    }
}

/// The ratio's distance from 1 below which nothing is claimed: how far the same thing, run twice in
/// the same rounds, is from itself; or, where two medians agree by luck, what the middle half of
/// all those runs spans over the root of their number.
pub(super) fn noise(first: &[f64], again: &[f64]) -> Option<f64> {
    let apart = quantile(again, 0.5)? / quantile(first, 0.5)? - 1.0;
    let both = [first, again].concat();
    let half = (quantile(&both, 0.75)? - quantile(&both, 0.25)?) / quantile(&both, 0.5)?;
    let runs = f64::from(u32::try_from(both.len()).unwrap_or(u32::MAX));
    let noise = apart.abs().max(half / runs.sqrt());
    noise.is_finite().then_some(noise)
}

/// Fewer runs than this show a number, and claim nothing.
pub(super) const LEAST_RUNS: usize = 3;

/// Returns what to say of fewer runs than [`LEAST_RUNS`] instead of a verdict.
pub(super) fn no_claim(runs: usize) -> Option<&'static str> {
    match runs {
        LEAST_RUNS.. => None,
        2 => Some("two runs: no claim"),
        _ => Some("one run: no claim"),
    }
}

/// By linear interpolation between the two nearest.
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
    fn the_median_of_an_even_number_lies_between() {
        check(&[3.0], 3.0, 0.0);
        check(&[4.0, 2.0], 3.0, 2.0 / 3.0);
        check(&[5.0, 1.0, 4.0], 4.0, 1.0);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn noise_is_the_distance_of_the_same_thing_from_itself() {
        assert_eq!(noise(&[1.0, 1.0, 1.0], &[1.25, 1.25, 1.25]).unwrap(), 0.25);
        assert_eq!(noise(&[1.0], &[]), None);
    }

    #[test]
    fn medians_that_agree_by_luck_do_not_hide_scatter() {
        let noise = noise(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!(noise > 0.2, "{noise}");
    }
}
