//! Implements functions on float-vectors of any length.
//!
//! A result is written to the float-vector given for it, which may be one of the operands: all operands are read at
//! an index before the result is written there, or before any of it is.

use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

/// Returns two operands of equal length.
fn pair<'a>(cx: &mut Context, args: Args<'a>, first: usize) -> Result<(&'a [f64], &'a [f64]), Exit> {
    let (a, b) = (args.floats(cx, first)?, args.floats(cx, first + 1)?);
    same_length(cx, a, b)?;
    Ok((a, b))
}

fn same_length(cx: &mut Context, a: &[f64], b: &[f64]) -> Result<(), Exit> {
    if a.len() == b.len() {
        return Ok(());
    }
    cx.error(ErrorClass::Range, format!("float-vectors of {} and {} elements", a.len(), b.len()))
}

/// Returns the three elements of an operand.
pub(super) fn point(cx: &mut Context, args: Args<'_>, index: usize) -> Result<[f64; 3], Exit> {
    match args.floats(cx, index)?.try_into() {
        Ok(point) => Ok(point),
        Err(_) => cx.type_error("float-vector of 3 elements", args[index]),
    }
}

fn each(cx: &mut Context, args: Args<'_>, first: usize, f: impl Fn(f64, f64) -> f64) -> Answer {
    let (a, b) = pair(cx, args, first)?;
    let out = args.result_floats(cx, first + 2, a.len())?;
    fill(out, |i| f(a[i], b[i]));
    Ok(out)
}

/// Writes each element; `of(i)` may read element i of the vector that is written.
pub(super) fn fill(out: Value, of: impl Fn(usize) -> f64) {
    for i in 0..out.length() {
        let x = of(i);
        out.floats_mut()[i] = x;
    }
}

pub(super) fn plus(cx: &mut Context, args: Args<'_>) -> Answer {
    each(cx, args, 0, |a, b| a + b)
}

pub(super) fn minus(cx: &mut Context, args: Args<'_>) -> Answer {
    if args.len() > 1 && !args[1].is_nil() {
        return each(cx, args, 0, |a, b| a - b);
    }
    let a = args.floats(cx, 0)?;
    let out = args.result_floats(cx, 2, a.len())?;
    fill(out, |i| -a[i]);
    Ok(out)
}

/// Returns `a . b`, with partial sums that the compiler vectorizes.
pub(crate) fn inner_product(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (a_parts, a_rest) = a.as_chunks::<LANES>();
    let (b_parts, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_parts.iter().zip(b_parts) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

pub(super) fn dot(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = pair(cx, args, 0)?;
    cx.float(inner_product(a, b))
}

pub(super) fn cross(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = (point(cx, args, 0)?, point(cx, args, 1)?);
    let out = args.result_floats(cx, 2, 3)?;
    out.floats_mut().copy_from_slice(&crate::numeric::point::cross(a, b));
    Ok(out)
}

pub(super) fn triple(cx: &mut Context, args: Args<'_>) -> Answer {
    use super::point;
    let (a, b, c) = (self::point(cx, args, 0)?, self::point(cx, args, 1)?, self::point(cx, args, 2)?);
    cx.float(point::dot(a, point::cross(b, c)))
}

/// Returns whether no element of the first is larger: equal ones pass, as in EusLisp.
pub(super) fn all_less(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = pair(cx, args, 0)?;
    Ok(cx.truth(a.iter().zip(b).all(|(a, b)| a <= b)))
}

pub(super) fn all_more(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = pair(cx, args, 0)?;
    Ok(cx.truth(a.iter().zip(b).all(|(a, b)| a >= b)))
}

/// Returns whether all elements are exactly equal.
pub(super) fn equal(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = pair(cx, args, 0)?;
    Ok(cx.truth(a == b))
}

fn fold(cx: &mut Context, args: Args<'_>, f: impl Fn(f64, f64) -> f64) -> Answer {
    let first = args.floats(cx, 0)?;
    let out = cx.floats_from(first)?;
    for index in 1..args.len() {
        let other = args.floats(cx, index)?;
        same_length(cx, first, other)?;
        fill(out, |i| f(out.floats()[i], other[i]));
    }
    Ok(out)
}

pub(super) fn minimum(cx: &mut Context, args: Args<'_>) -> Answer {
    fold(cx, args, f64::min)
}

pub(super) fn maximum(cx: &mut Context, args: Args<'_>) -> Answer {
    fold(cx, args, f64::max)
}

/// Implements `(minimal-box points low high [rate])`: writes the corners of the box to `low` and `high`, enlarges it
/// by `rate` times its diagonal, and returns the length of the diagonal.
pub(super) fn minimal_box(cx: &mut Context, args: Args<'_>) -> Answer {
    let (low, high) = (args.floats(cx, 1)?.len(), args.floats(cx, 2)?.len());
    let mut box_low = vec![f64::INFINITY; low];
    let mut box_high = vec![f64::NEG_INFINITY; high];
    for point in args[0].iter() {
        if !point.is(ObjectKind::FloatVector) || point.length() < low.max(high) {
            return cx.type_error("list of float-vectors", point);
        }
        box_low.iter_mut().zip(point.floats()).for_each(|(low, x)| *low = low.min(*x));
        box_high.iter_mut().zip(point.floats()).for_each(|(high, x)| *high = high.max(*x));
    }
    let diagonal: f64 =
        box_low.iter().zip(&box_high).map(|(low, high)| (high - low).powi(2)).sum::<f64>().sqrt();
    let growth = if args.or_nil(3).is_nil() { 0.0 } else { args.float(cx, 3)? * diagonal };
    fill(args[1], |i| box_low[i] - growth);
    fill(args[2], |i| box_high[i] + growth);
    cx.float(diagonal)
}

pub(super) fn scale(cx: &mut Context, args: Args<'_>) -> Answer {
    let (s, a) = (args.float(cx, 0)?, args.floats(cx, 1)?);
    let out = args.result_floats(cx, 2, a.len())?;
    fill(out, |i| s * a[i]);
    Ok(out)
}

pub(super) fn norm(cx: &mut Context, args: Args<'_>) -> Answer {
    let a = args.floats(cx, 0)?;
    cx.float(inner_product(a, a).sqrt())
}

pub(super) fn norm2(cx: &mut Context, args: Args<'_>) -> Answer {
    let a = args.floats(cx, 0)?;
    cx.float(inner_product(a, a))
}

/// Returns the vector of length 1 with the direction of the argument; a vector of length 0 remains what it is.
pub(super) fn normalize(cx: &mut Context, args: Args<'_>) -> Answer {
    let a = args.floats(cx, 0)?;
    let length = inner_product(a, a).sqrt();
    let length = if length == 0.0 { 1.0 } else { length };
    let out = args.result_floats(cx, 1, a.len())?;
    fill(out, |i| a[i] / length);
    Ok(out)
}

fn squared_distance(cx: &mut Context, args: Args<'_>) -> Result<f64, Exit> {
    let (a, b) = pair(cx, args, 0)?;
    Ok(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum())
}

pub(super) fn distance(cx: &mut Context, args: Args<'_>) -> Answer {
    let squared = squared_distance(cx, args)?;
    cx.float(squared.sqrt())
}

pub(super) fn distance2(cx: &mut Context, args: Args<'_>) -> Answer {
    let squared = squared_distance(cx, args)?;
    cx.float(squared)
}

pub(super) fn homo2normal(cx: &mut Context, args: Args<'_>) -> Answer {
    let Some((w, a)) = args.floats(cx, 0)?.split_last() else {
        return cx.type_error("homogeneous vector", args[0]);
    };
    let out = args.result_floats(cx, 1, a.len())?;
    fill(out, |i| a[i] / w);
    Ok(out)
}

pub(super) fn homogenize(cx: &mut Context, args: Args<'_>) -> Answer {
    let a = args.floats(cx, 0)?;
    let out = args.result_floats(cx, 1, a.len() + 1)?;
    fill(out, |i| a.get(i).copied().unwrap_or(1.0));
    Ok(out)
}

pub(super) fn midpoint(cx: &mut Context, args: Args<'_>) -> Answer {
    let at = args.float(cx, 0)?;
    each(cx, args, 1, |a, b| (1.0 - at) * a + at * b)
}
