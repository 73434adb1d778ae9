//! Computes means and variances of numbers, as jskeus' functions in C do.

use super::matrix::numbers;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;

/// Returns the numbers of a sequence, which must not be empty.
fn some_numbers(cx: &mut Context, value: Value) -> Result<Vec<f64>, Exit> {
    let given = numbers(cx, value)?;
    if given.is_empty() { cx.type_error("sequence of at least one number", value) } else { Ok(given) }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub(super) fn mean_of(cx: &mut Context, args: Args<'_>) -> Answer {
    let numbers = some_numbers(cx, args[0])?;
    cx.float(mean(&numbers))
}

/// Implements `(variance numbers)`: the mean of the squared differences from the mean.
pub(super) fn variance(cx: &mut Context, args: Args<'_>) -> Answer {
    let numbers = some_numbers(cx, args[0])?;
    let mean = mean(&numbers);
    cx.float(numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / numbers.len() as f64)
}

/// Implements `(covariance numbers numbers)`: the estimate from samples, with one less than their number as divisor.
pub(super) fn covariance(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = (some_numbers(cx, args[0])?, some_numbers(cx, args[1])?);
    if a.len() != b.len() {
        return cx.fail(ErrorClass::Range, format!("{} numbers and {}", a.len(), b.len()));
    }
    let (a_mean, b_mean) = (mean(&a), mean(&b));
    let sum: f64 = a.iter().zip(&b).map(|(a, b)| (a - a_mean) * (b - b_mean)).sum();
    cx.float(sum / (a.len() as f64 - 1.0))
}

/// Implements `(c-isnan x)`.
pub(super) fn is_nan(cx: &mut Context, args: Args<'_>) -> Answer {
    let x = args.float(cx, 0)?;
    Ok(cx.truth(x.is_nan()))
}
