//! Computes sums and products of matrices and vectors.
//!
//! Small results are computed on the machine stack and written at the end, so that a result may be an operand.

use super::matrix::Matrix;
use super::room::with_room;
use super::vectors::inner_product;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::ObjectKind;

fn mismatch<T>(cx: &mut Context, a: (usize, usize), b: (usize, usize)) -> Result<T, Exit> {
    cx.error(ErrorClass::Range, format!("matrices of {} x {} and {} x {} elements", a.0, a.1, b.0, b.1))
}

fn shape(m: Matrix) -> (usize, usize) {
    (m.rows, m.columns)
}

fn each(cx: &mut Context, args: Args<'_>, f: impl Fn(f64, f64) -> f64) -> Answer {
    let (a, b) = (args.matrix(cx, 0)?, args.matrix(cx, 1)?);
    if shape(a) != shape(b) {
        return mismatch(cx, shape(a), shape(b));
    }
    with_room(cx, a.rows * a.columns, |cx, out| {
        for ((out, a), b) in out.iter_mut().zip(a.all()).zip(b.all()) {
            *out = f(*a, *b);
        }
        cx.matrix_result(args.or_nil(2), a.rows, a.columns, out)
    })
}

pub(super) fn sum(cx: &mut Context, args: Args<'_>) -> Answer {
    each(cx, args, |a, b| a + b)
}

pub(super) fn difference(cx: &mut Context, args: Args<'_>) -> Answer {
    each(cx, args, |a, b| a - b)
}

pub(super) fn scale_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let (s, a) = (args.float(cx, 0)?, args.matrix(cx, 1)?);
    with_room(cx, a.rows * a.columns, |cx, out| {
        out.iter_mut().zip(a.all()).for_each(|(out, a)| *out = s * a);
        cx.matrix_result(args.or_nil(2), a.rows, a.columns, out)
    })
}

/// Computes `out = a b`, where `b` has `columns` columns, at least one.
pub(super) fn multiply(a: &[f64], b: &[f64], columns: usize, out: &mut [f64]) {
    let inner = b.len() / columns;
    if inner == 0 {
        // Sums of no products.
        return out.fill(0.0);
    }
    for (out, a) in out.chunks_exact_mut(columns).zip(a.chunks_exact(inner)) {
        out.fill(0.0);
        for (a, b) in a.iter().zip(b.chunks_exact(columns)) {
            out.iter_mut().zip(b).for_each(|(out, b)| *out += a * b);
        }
    }
}

/// Returns `a b` of two matrices in space, with the roundings of [`multiply`].
#[inline]
pub(crate) fn times(a: &[f64; 9], b: &[f64; 9]) -> [f64; 9] {
    std::array::from_fn(|at| {
        let (row, column) = (at / 3 * 3, at % 3);
        0.0 + a[row] * b[column] + a[row + 1] * b[column + 3] + a[row + 2] * b[column + 6]
    })
}

pub(super) fn product(cx: &mut Context, args: Args<'_>) -> Answer {
    let (a, b) = (args.matrix(cx, 0)?, args.matrix(cx, 1)?);
    if (a.columns, b.columns) == (3, 3)
        && let (Ok(a), Ok(b)) = (a.all().try_into(), b.all().try_into())
    {
        let out = times(a, b);
        return cx.matrix_result(args.or_nil(2), 3, 3, &out);
    }
    if a.columns != b.rows || b.columns == 0 || b.rows == 0 {
        return mismatch(cx, shape(a), shape(b));
    }
    with_room(cx, a.rows.saturating_mul(b.columns), |cx, out| {
        multiply(a.all(), b.all(), b.columns, out);
        cx.matrix_result(args.or_nil(2), a.rows, b.columns, out)
    })
}

pub(super) fn transpose(cx: &mut Context, args: Args<'_>) -> Answer {
    let a = args.matrix(cx, 0)?;
    with_room(cx, a.rows * a.columns, |cx, out| {
        for row in 0..a.rows {
            for column in 0..a.columns {
                out[column * a.rows + row] = a.at(row, column);
            }
        }
        cx.matrix_result(args.or_nil(1), a.columns, a.rows, out)
    })
}

/// Implements `(transform matrix vector)` and `(transform vector matrix)`.
pub(super) fn transform(cx: &mut Context, args: Args<'_>) -> Answer {
    let left = !args[0].is(ObjectKind::FloatVector);
    let (m, v) = if left {
        (args.matrix(cx, 0)?, args.floats(cx, 1)?)
    } else {
        (args.matrix(cx, 1)?, args.floats(cx, 0)?)
    };
    let (needed, length) = if left { (m.columns, m.rows) } else { (m.rows, m.columns) };
    if v.len() != needed {
        return cx.fail(
            ErrorClass::Range,
            format!("a matrix of {} x {} and a vector of {} elements", m.rows, m.columns, v.len()),
        );
    }
    with_room(cx, length, |cx, out| {
        if m.columns == 0 {
            out.fill(0.0);
        } else if left {
            let rows = m.all().chunks_exact(m.columns);
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = inner_product(row, v));
        } else {
            multiply(v, m.all(), m.columns, out);
        }
        let result = args.result_floats(cx, 2, length)?;
        result.floats_mut().copy_from_slice(out);
        Ok(result)
    })
}
