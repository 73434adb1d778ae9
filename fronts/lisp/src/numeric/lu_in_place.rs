//! Decomposes a matrix into factors whose rows are interchanged in place, as jskeus' `lu-decompose2` does.

use super::lu::Lu;
use super::matrix::Matrix;
use super::vectors::inner_product;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

/// Converts a permutation to interchanges: step i swaps row i with row `interchanges[i]`.
fn interchanges(order: &[usize]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..order.len()).collect();
    let mut steps = Vec::with_capacity(order.len());
    for (i, wanted) in order.iter().enumerate() {
        let at = rows.iter().position(|row| row == wanted).unwrap_or(i);
        rows.swap(i, at);
        steps.push(at);
    }
    steps
}

/// Implements `(lu-decompose2 matrix [result])`: writes the factors to the result or the matrix: L without its
/// diagonal of ones below the diagonal, U on it and above. Returns the numbers, from 1, of the rows interchanged with
/// rows 1, 2, ..., or nil for a singular matrix.
pub(super) fn lu_decompose2(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = args.matrix(cx, 0)?;
    if !m.square() {
        return cx.type_error("square matrix", args[0]);
    }
    let Some(lu) = Lu::of(m.all(), m.rows) else { return Ok(Value::NIL) };
    let mut factors: Vec<f64> =
        lu.order.iter().flat_map(|row| &lu.elements[row * m.rows..][..m.rows]).copied().collect();
    for i in 0..m.rows {
        let inverse = &mut factors[i * m.rows + i];
        *inverse = 1.0 / *inverse;
    }
    let result = if args.or_nil(1).is_nil() { args[0] } else { args[1] };
    cx.matrix_result(result, m.rows, m.rows, &factors)?;
    let steps = cx.new_vector(m.rows)?;
    for (i, row) in interchanges(&lu.order).into_iter().enumerate() {
        steps.set_slot(i, Value::fixnum(row.cast_signed() as i64 + 1));
    }
    Ok(steps)
}

/// Reads the interchanges for `rows` rows from a vector of numbers from 1.
fn given_interchanges(cx: &mut Context, value: Value, rows: usize) -> Result<Vec<usize>, Exit> {
    let mut steps = Vec::new();
    if value.is(ObjectKind::Vector) && value.length() == rows {
        for i in 0..rows {
            steps.push(cx.size(value.slot(i))?.wrapping_sub(1));
        }
    }
    if steps.len() != rows || steps.iter().any(|row| *row >= rows) {
        return cx.type_error(&format!("numbers of {rows} interchanged rows"), value);
    }
    Ok(steps)
}

/// Implements `(lu-solve2 factors interchanges vector [result])`.
pub(super) fn lu_solve2(cx: &mut Context, args: Args<'_>) -> Answer {
    let (m, b) = (args.matrix(cx, 0)?, args.floats(cx, 2)?);
    if !m.square() || b.len() != m.rows {
        return cx.type_error("square matrix with as many rows as the vector has elements", args[0]);
    }
    let steps = given_interchanges(cx, args[1], m.rows)?;
    let x = solve(m, &steps, b);
    let out = args.result_floats(cx, 3, x.len())?;
    out.floats_mut().copy_from_slice(&x);
    Ok(out)
}

fn solve(m: Matrix, steps: &[usize], b: &[f64]) -> Vec<f64> {
    let n = m.rows;
    let mut x = b.to_vec();
    for (i, step) in steps.iter().enumerate() {
        x.swap(i, *step);
    }
    let row = |i: usize| &m.all()[i * n..][..n];
    for i in 0..n {
        x[i] -= inner_product(&row(i)[..i], &x[..i]);
    }
    for i in (0..n).rev() {
        x[i] = (x[i] - inner_product(&row(i)[i + 1..], &x[i + 1..])) / row(i)[i];
    }
    x
}
