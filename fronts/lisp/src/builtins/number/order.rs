//! Compares numbers.

use super::convert::{as_float, fraction, integer};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;
use num_integer::Integer as _;
use std::cmp::Ordering;

/// Compares two numbers; a NaN is greater than everything.
pub(crate) fn compare(cx: &mut Context, a: Value, b: Value) -> Result<Ordering, Exit> {
    if let (Some(x), Some(y)) = (a.as_fixnum(), b.as_fixnum()) {
        return Ok(x.cmp(&y));
    }
    if as_float(a).is_none()
        && as_float(b).is_none()
        && let (Some((at, ab)), Some((bt, bb))) = (fraction(a), fraction(b))
    {
        return Ok((at * bb).cmp(&(bt * ab)));
    }
    let (x, y) = (cx.number(a)?, cx.number(b)?);
    Ok(x.partial_cmp(&y).unwrap_or(Ordering::Greater))
}

/// Returns whether a comparison of two values is true although one of them is no number: as in EusLisp, every order holds,
/// and equality does not. Programs find such values by `(and (> x 0) (< x 0))`.
#[cold]
fn holds_unordered(a: Value, b: Value, holds: fn(Ordering) -> bool) -> bool {
    unordered(a, b) && (holds(Ordering::Less) || holds(Ordering::Greater))
}

fn unordered(a: Value, b: Value) -> bool {
    [a, b].into_iter().any(|value| as_float(value).is_some_and(f64::is_nan))
}

#[inline]
pub(super) fn chain(cx: &mut Context, args: Args<'_>, holds: fn(Ordering) -> bool) -> Answer {
    if args.len() == 1 {
        cx.number(args[0])?;
    }
    for pair in args.windows(2) {
        if !holds(compare(cx, pair[0], pair[1])?) && !holds_unordered(pair[0], pair[1], holds) {
            return Ok(Value::NIL);
        }
    }
    Ok(cx.truth(true))
}

pub(super) fn all_different(cx: &mut Context, args: Args<'_>) -> Answer {
    for (index, a) in args.iter().enumerate() {
        for b in &args[index + 1..] {
            if compare(cx, *a, *b)?.is_eq() {
                return Ok(Value::NIL);
            }
        }
    }
    Ok(cx.truth(true))
}

/// Returns the extreme number. Of several, it is a float unless all are small integers, as in EusLisp.
pub(super) fn extreme(cx: &mut Context, args: Args<'_>, better: fn(Ordering) -> bool) -> Answer {
    let mut best = args[0];
    cx.number(best)?;
    for value in &args[1..] {
        if better(compare(cx, *value, best)?) && !unordered(*value, best) {
            best = *value;
        }
    }
    if args.len() > 1 && !args.iter().all(|value| value.is_fixnum()) {
        let number = cx.number(best)?;
        return cx.float(number);
    }
    Ok(best)
}

pub(super) fn sign_is(cx: &mut Context, value: Value, holds: fn(Ordering) -> bool) -> Answer {
    let zero = Value::fixnum(0);
    let sign = compare(cx, value, zero)?;
    Ok(cx.truth(holds(sign) || holds_unordered(value, zero, holds)))
}

pub(super) fn is_even(cx: &mut Context, value: Value) -> Result<bool, Exit> {
    if let Some(number) = value.as_fixnum() {
        return Ok(number % 2 == 0);
    }
    integer(cx, value).map(|number| number.is_even())
}
