//! Checks whether an answer is right, before any of its times count.

use super::definition::Bench;
use super::runner::{Measured, Run};
use std::fmt;

/// The reason why an answer is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Wrong {
    /// The answer is not the one that the definition expects.
    Answer { got: Vec<f64>, expected: Vec<f64> },
    /// The bytes differ from those of the baseline in the same comparison.
    Bits { got: String, baseline: String },
    /// The program printed no answer.
    Missing,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Answer { got, expected } => write!(f, "the answer is {got:?}, expected {expected:?}"),
            Wrong::Bits { got, baseline } => {
                write!(f, "the result's bytes differ from the baseline's ({got}, {baseline})")
            }
            Wrong::Missing => write!(f, "the program did not report this test"),
        }
    }
}

/// Checks `test` in `run` against the definition, and to the bit against a run of the baseline.
pub(super) fn judge<'a>(
    bench: &Bench,
    test: &str,
    scale: f64,
    run: &'a Run,
    baseline: &Run,
) -> Result<&'a Measured, Wrong> {
    let measured = answered(run, test, bench.expected(test, scale))?;
    let same = baseline.tests.iter().find(|measured| measured.test == test);
    match same {
        Some(same) if same.bits != measured.bits => {
            Err(Wrong::Bits { got: measured.bits.clone(), baseline: same.bits.clone() })
        }
        _ => Ok(measured),
    }
}

/// Returns the result of `test` in `run` if its answer is within the tolerance of `expected`.
pub(super) fn answered<'a>(
    run: &'a Run,
    test: &str,
    expected: Option<(&[f64], f64)>,
) -> Result<&'a Measured, Wrong> {
    let measured = run.tests.iter().find(|measured| measured.test == test).ok_or(Wrong::Missing)?;
    match expected {
        Some((expected, tolerance)) if !agrees(&measured.answer, expected, tolerance) => {
            Err(Wrong::Answer { got: measured.answer.clone(), expected: expected.to_vec() })
        }
        _ => Ok(measured),
    }
}

fn agrees(got: &[f64], expected: &[f64], tolerance: f64) -> bool {
    let near = |(got, expected): (&f64, &f64)| (got - expected).abs() <= tolerance * expected.abs();
    got.len() == expected.len() && got.iter().zip(expected).all(near)
}

#[cfg(test)]
mod tests {
    use super::super::definition::{read_all, tests::shipped};
    use super::super::runner::tests::run_of;
    use super::*;

    #[track_caller]
    fn check(got: &[f64], expected: &[f64], want: bool) {
        assert_eq!(agrees(got, expected, 1e-8), want);
    }

    #[test]
    fn answers_agree_within_a_relative_tolerance() {
        check(&[1e15, 2.0], &[1e15 + 1.0, 2.0], true);
        check(&[1.0 + 1e-7], &[1.0], false);
        check(&[0.0], &[0.0], true);
        check(&[1e-300], &[0.0], false);
        check(&[1.0], &[1.0, 2.0], false);
        check(&[f64::NAN], &[1.0], false);
    }

    #[test]
    fn fast_wrong_answers_fail() {
        let bench = read_all(&shipped()).unwrap().into_iter().find(|bench| bench.name == "fifteen").unwrap();
        let (right, _) = bench.expected("regression", 1.0).unwrap();
        let stock = run_of("regression", 1.0, right[0], "aa");
        let judged = |run: &Run| judge(&bench, "regression", 1.0, run, &stock).cloned();
        assert!(judged(&stock).is_ok());
        assert!(matches!(
            judged(&run_of("regression", 0.1, right[0] * 1.01, "aa")),
            Err(Wrong::Answer { .. })
        ));
        assert!(matches!(judged(&run_of("regression", 0.1, right[0], "ab")), Err(Wrong::Bits { .. })));
        assert_eq!(judged(&run_of("sort", 0.1, right[0], "aa")), Err(Wrong::Missing));
    }
}
