//! Copies and transforms the rows of matrices that hold a point in each row, as jskeus' point clouds do.

use super::matrix::Matrix;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

/// Implements `(c-matrix-row matrix row [vector [set-p]])`: copies a row to the vector, or the vector to the row with
/// `set-p`. Returns the vector.
pub(super) fn copy_row(cx: &mut Context, args: Args<'_>) -> Answer {
    let (m, row) = (args.matrix(cx, 0)?, args.size(cx, 1)?);
    if row >= m.rows {
        return cx.range_error(args[1], m.rows);
    }
    let vector = args.result_floats(cx, 2, m.columns)?;
    for column in 0..m.columns {
        if args.or_nil(3).is_nil() {
            vector.floats_mut()[column] = m.at(row, column);
        } else {
            m.set(row, column, vector.floats()[column]);
        }
    }
    Ok(vector)
}

/// Implements `(fvector-replace to from [start1 end1 start2 end2])`: `replace` for float-vectors.
pub(super) fn replace(cx: &mut Context, args: Args<'_>) -> Answer {
    let (to, from) = (args.floats(cx, 0)?.len(), args.floats(cx, 1)?.len());
    let range = |cx: &mut Context, first: usize, length: usize| -> Result<std::ops::Range<usize>, Exit> {
        let start = if args.or_nil(first).is_nil() { 0 } else { args.size(cx, first)? };
        let end =
            if args.or_nil(first + 1).is_nil() { length } else { args.size(cx, first + 1)?.min(length) };
        Ok(start.min(end)..end)
    };
    let (to, from) = (range(cx, 2, to)?, range(cx, 4, from)?);
    // Through a copy, as both may be one vector.
    let copy = args[1].floats()[from].to_vec();
    let count = copy.len().min(to.len());
    args[0].floats_mut()[to.start..to.start + count].copy_from_slice(&copy[..count]);
    Ok(args[0])
}

/// Returns a matrix of points.
fn points(cx: &mut Context, value: Value) -> Result<Matrix, Exit> {
    let m = cx.matrix(value)?;
    if m.columns == 3 { Ok(m) } else { cx.type_error("matrix of 3 columns", value) }
}

/// Implements `(c-coords-transform-vector position rotation from to [inverse-p])`: transforms the rows of a matrix by a
/// frame, or by its inverse, and writes them to the rows of another one.
pub(super) fn transform_rows(cx: &mut Context, args: Args<'_>) -> Answer {
    let (position, rotation) = (args.floats(cx, 0)?, args.matrix(cx, 1)?);
    if position.len() != 3 || (rotation.rows, rotation.columns) != (3, 3) {
        return cx.type_error("position and rotation in space", args[0]);
    }
    let (from, to) = (points(cx, args[2])?, points(cx, args[3])?);
    if to.rows < from.rows {
        return cx.fail(ErrorClass::Range, format!("{} points, room for {}", from.rows, to.rows));
    }
    let back = !args.or_nil(4).is_nil();
    for row in 0..from.rows {
        let p: [f64; 3] = std::array::from_fn(|i| from.at(row, i) - if back { position[i] } else { 0.0 });
        for (i, offset) in position.iter().enumerate() {
            let turned = |j| if back { rotation.at(j, i) } else { rotation.at(i, j) };
            let x = turned(0) * p[0] + turned(1) * p[1] + turned(2) * p[2];
            to.set(row, i, if back { x } else { x + offset });
        }
    }
    Ok(args[3])
}

/// Computes a row from all rows of a matrix that has at least one.
fn summary(
    cx: &mut Context,
    args: Args<'_>,
    result: usize,
    column: impl Fn(&mut dyn Iterator<Item = f64>, usize) -> f64,
) -> Answer {
    let m = args.matrix(cx, 0)?;
    if m.rows == 0 {
        return cx.type_error("matrix of at least one row", args[0]);
    }
    let out = args.result_floats(cx, result, m.columns)?;
    for index in 0..m.columns {
        out.floats_mut()[index] = column(&mut (0..m.rows).map(|row| m.at(row, index)), index);
    }
    Ok(out)
}

/// Implements `(vector-array-mean matrix [result])`: the mean of the rows.
pub(super) fn mean(cx: &mut Context, args: Args<'_>) -> Answer {
    let rows = args.matrix(cx, 0)?.rows as f64;
    summary(cx, args, 1, |column, _| column.sum::<f64>() / rows)
}

/// Implements `(vector-array-variance matrix mean [result])`: the variance of each column.
pub(super) fn variance(cx: &mut Context, args: Args<'_>) -> Answer {
    let (m, mean) = (args.matrix(cx, 0)?, args.floats(cx, 1)?);
    if mean.len() != m.columns {
        return cx.type_error(&format!("mean of {} elements", m.columns), args[1]);
    }
    summary(cx, args, 2, |column, index| {
        column.map(|x| (x - mean[index]) * (x - mean[index])).sum::<f64>() / m.rows as f64
    })
}

/// Implements `(vector-array-max-min matrix [max min])`: the list of the largest and the smallest elements of the
/// columns.
pub(super) fn extremes(cx: &mut Context, args: Args<'_>) -> Answer {
    let high = summary(cx, args, 1, |column, _| column.fold(f64::NEG_INFINITY, f64::max))?;
    cx.push(high)?;
    let low = summary(cx, args, 2, |column, _| column.fold(f64::INFINITY, f64::min))?;
    debug_assert!(low.is(ObjectKind::FloatVector));
    cx.list(&[high, low])
}
