//! Solves linear equations by LU decomposition with pivoting, and computes the pseudoinverse of any matrix by
//! singular values.

use super::matrix::Matrix;
use super::vectors::{fill, inner_product};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

/// Holds a decomposition. Row `order[i]` of `elements` holds row i of the factors: L below the diagonal (its diagonal
/// is 1), the inverses of U's diagonal on it, and U above.
pub(super) struct Lu {
    pub(super) order: Vec<usize>,
    pub(super) elements: Vec<f64>,
}

impl Lu {
    /// Decomposes a matrix; returns none when it is singular.
    pub(super) fn of(matrix: &[f64], n: usize) -> Option<Lu> {
        let mut lu = Lu { order: (0..n).collect(), elements: matrix.to_vec() };
        for step in 0..n {
            let size = |row: &usize| lu.elements[row * n + step].abs();
            let best = (step..n).max_by(|a, b| size(&lu.order[*a]).total_cmp(&size(&lu.order[*b])))?;
            lu.order.swap(step, best);
            let pivot_row = lu.order[step];
            let pivot = lu.elements[pivot_row * n + step];
            if pivot == 0.0 || !pivot.is_finite() {
                return None;
            }
            lu.elements[pivot_row * n + step] = 1.0 / pivot;
            for &row in &lu.order[step + 1..] {
                let factor = lu.elements[row * n + step] / pivot;
                lu.elements[row * n + step] = factor;
                for column in step + 1..n {
                    lu.elements[row * n + column] -= factor * lu.elements[pivot_row * n + column];
                }
            }
        }
        Some(lu)
    }

    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let n = self.order.len();
        let mut x: Vec<f64> = self.order.iter().map(|row| b[*row]).collect();
        let row = |i: usize| &self.elements[self.order[i] * n..][..n];
        for i in 0..n {
            x[i] -= inner_product(&row(i)[..i], &x[..i]);
        }
        for i in (0..n).rev() {
            x[i] = (x[i] - inner_product(&row(i)[i + 1..], &x[i + 1..])) * row(i)[i];
        }
        x
    }

    fn determinant(&self) -> f64 {
        let n = self.order.len();
        let diagonal: f64 = (0..n).map(|i| 1.0 / self.elements[self.order[i] * n + i]).product();
        let swapped =
            (0..n).flat_map(|i| (0..i).map(move |j| (j, i))).filter(|(j, i)| self.order[*j] > self.order[*i]);
        if swapped.count() % 2 == 0 { diagonal } else { -diagonal }
    }

    /// Reads a decomposition that a program holds as a matrix and a permutation.
    fn given(cx: &mut Context, args: Args<'_>) -> Result<Lu, Exit> {
        let m = square(cx, args[0])?;
        let mut order = Vec::with_capacity(m.rows);
        if args[1].is(ObjectKind::Vector) && args[1].length() == m.rows {
            for i in 0..m.rows {
                order.push(cx.size(args[1].slot(i))?);
            }
        }
        let mut seen = order.clone();
        seen.sort_unstable();
        if !seen.into_iter().eq(0..m.rows) {
            return cx.type_error(&format!("permutation of {} rows", m.rows), args[1]);
        }
        Ok(Lu { order, elements: m.all().to_vec() })
    }
}

fn square(cx: &mut Context, value: Value) -> Result<Matrix, Exit> {
    let m = cx.matrix(value)?;
    if m.square() { Ok(m) } else { cx.type_error("square matrix", value) }
}

fn right_side<'a>(cx: &mut Context, args: Args<'a>, index: usize, rows: usize) -> Result<&'a [f64], Exit> {
    let b = args.floats(cx, index)?;
    if b.len() == rows {
        Ok(b)
    } else {
        cx.type_error(&format!("float-vector of {rows} elements"), args[index])
    }
}

/// Implements `lu-decompose`: returns the permutation, or nil for a singular matrix, and writes the factors to the
/// result or the matrix.
pub(super) fn lu_decompose(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = square(cx, args[0])?;
    let Some(lu) = Lu::of(m.all(), m.rows) else { return Ok(Value::NIL) };
    let result = if args.or_nil(1).is_nil() { args[0] } else { args[1] };
    cx.matrix_result(result, m.rows, m.columns, &lu.elements)?;
    let order = cx.new_vector(m.rows)?;
    for (i, row) in lu.order.iter().enumerate() {
        order.set_slot(i, Value::fixnum(row.cast_signed() as i64));
    }
    Ok(order)
}

pub(super) fn lu_solve(cx: &mut Context, args: Args<'_>) -> Answer {
    let lu = Lu::given(cx, args)?;
    let b = right_side(cx, args, 2, lu.order.len())?;
    let x = lu.solve(b);
    let out = args.result_floats(cx, 3, x.len())?;
    fill(out, |i| x[i]);
    Ok(out)
}

pub(super) fn lu_determinant(cx: &mut Context, args: Args<'_>) -> Answer {
    let lu = Lu::given(cx, args)?;
    cx.float(lu.determinant())
}

fn decomposed(cx: &mut Context, args: Args<'_>) -> Result<Lu, Exit> {
    let m = square(cx, args[0])?;
    match Lu::of(m.all(), m.rows) {
        Some(lu) => Ok(lu),
        None => cx.error(ErrorClass::Arithmetic, "the matrix is singular".to_owned()),
    }
}

pub(super) fn simultaneous_equation(cx: &mut Context, args: Args<'_>) -> Answer {
    let lu = decomposed(cx, args)?;
    let b = right_side(cx, args, 1, lu.order.len())?;
    cx.floats_from(&lu.solve(b))
}

pub(super) fn inverse_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let lu = decomposed(cx, args)?;
    let n = lu.order.len();
    let mut out = vec![0.0; n * n];
    let mut unit = vec![0.0; n];
    for column in 0..n {
        unit.fill(0.0);
        unit[column] = 1.0;
        for (row, x) in lu.solve(&unit).into_iter().enumerate() {
            out[row * n + column] = x;
        }
    }
    cx.matrix_result(args.or_nil(1), n, n, &out)
}

pub(super) fn matrix_determinant(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = square(cx, args[0])?;
    let determinant = Lu::of(m.all(), m.rows).map_or(0.0, |lu| lu.determinant());
    cx.float(determinant)
}

/// Returns the Moore-Penrose inverse. Jacobi's method rotates the columns until they are orthogonal: their lengths
/// are then the singular values.
pub(super) fn pseudo_inverse_of(m: Matrix) -> Vec<f64> {
    const ENOUGH: f64 = 1e-15;
    const SWEEPS: usize = 60;
    let (rows, n) = (m.rows, m.columns);
    let mut turned: Vec<Vec<f64>> = (0..n).map(|j| (0..rows).map(|i| m.at(i, j)).collect()).collect();
    let mut turns: Vec<Vec<f64>> =
        (0..n).map(|j| (0..n).map(|i| if i == j { 1.0 } else { 0.0 }).collect()).collect();
    for _ in 0..SWEEPS {
        let mut settled = true;
        for p in 0..n {
            for q in p + 1..n {
                let (pp, qq) = (inner_product(&turned[p], &turned[p]), inner_product(&turned[q], &turned[q]));
                let pq = inner_product(&turned[p], &turned[q]);
                if pq.abs() <= ENOUGH * (pp * qq).sqrt() {
                    continue;
                }
                settled = false;
                let zeta = (qq - pp) / (2.0 * pq);
                let t = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let c = 1.0 / (1.0 + t * t).sqrt();
                for columns in [&mut turned, &mut turns] {
                    let (low, high) = columns.split_at_mut(q);
                    for (a, b) in low[p].iter_mut().zip(&mut high[0]) {
                        (*a, *b) = (c * (*a - t * *b), c * (t * *a + *b));
                    }
                }
            }
        }
        if settled {
            break;
        }
    }
    let largest = turned.iter().map(|u| inner_product(u, u)).fold(0.0, f64::max);
    let mut out = vec![0.0; n * rows];
    for (u, v) in turned.iter().zip(&turns) {
        let squared = inner_product(u, u);
        if squared > largest * ENOUGH * ENOUGH {
            for (row, v) in v.iter().enumerate() {
                for (column, u) in u.iter().enumerate() {
                    out[row * rows + column] += v * u / squared;
                }
            }
        }
    }
    out
}

pub(super) fn pseudo_inverse(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = args.matrix(cx, 0)?;
    cx.matrix_from(m.columns, m.rows, &pseudo_inverse_of(m))
}
