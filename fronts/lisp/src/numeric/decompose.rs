//! Decomposes matrices into singular values and eigenvalues, under the names that jskeus gives these functions.

use super::eigenvalues::eigenvalues;
use super::matrix::Matrix;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::Value;
use nalgebra::{DMatrix, SVD, SymmetricEigen};

/// Largest number of steps of an iteration before the matrix counts as not decomposable.
const STEPS: usize = 10_000;

/// Copies a matrix whose elements are all finite; returns none for another one, with which an iteration would not end.
fn copied(m: Matrix) -> Option<DMatrix<f64>> {
    let finite = m.all().iter().all(|x| x.is_finite());
    finite.then(|| DMatrix::from_row_slice(m.rows, m.columns, m.all()))
}

fn square(cx: &mut Context, value: Value) -> Result<Matrix, Exit> {
    let m = cx.matrix(value)?;
    if m.square() && m.rows > 0 { Ok(m) } else { cx.type_error("square matrix", value) }
}

impl Context {
    /// Allocates a Lisp matrix.
    fn lisp_matrix(&mut self, m: &DMatrix<f64>) -> Answer {
        let by_rows = m.transpose();
        self.matrix_from(m.nrows(), m.ncols(), by_rows.as_slice())
    }

    /// Returns a list of newly allocated values, each made by one of the functions.
    fn list_of<const N: usize>(&mut self, make: [&dyn Fn(&mut Context) -> Answer; N]) -> Answer {
        let mark = self.mark();
        let mut values = [Value::NIL; N];
        for (value, make) in values.iter_mut().zip(make) {
            *value = make(self)?;
            self.push(*value)?;
        }
        let list = self.list(&values)?;
        self.release(mark);
        Ok(list)
    }
}

/// A singular value decomposition: the matrix is `u` times the diagonal `values` times the transpose of `v`. With c
/// columns, `u` and `v` have c columns too, and there are c values, from the largest to the smallest.
struct Singular {
    u: DMatrix<f64>,
    values: Vec<f64>,
    v: DMatrix<f64>,
}

impl Singular {
    fn of(m: Matrix) -> Option<Singular> {
        // Rows of zeros change neither the values nor V, and make V complete.
        let whole = copied(m)?.resize_vertically(m.rows.max(m.columns), 0.0);
        let svd = SVD::try_new(whole, true, true, f64::EPSILON, STEPS)?;
        let u = svd.u?.rows(0, m.rows).into_owned();
        Some(Singular { u, values: svd.singular_values.as_slice().to_vec(), v: svd.v_t?.transpose() })
    }

    /// Returns the shortest of the vectors x for which |m x - b| is least.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        const NOTHING: f64 = 1e-12;
        let least = NOTHING * self.values.first().copied().unwrap_or(0.0);
        let mut x = vec![0.0; self.values.len()];
        for (i, value) in self.values.iter().enumerate().filter(|(_, value)| **value > least) {
            let part: f64 = self.u.column(i).iter().zip(b).map(|(u, b)| u * b).sum();
            x.iter_mut().zip(self.v.column(i).iter()).for_each(|(x, v)| *x += part / value * v);
        }
        x
    }
}

/// Implements `(sv-decompose matrix)`: returns the list of U, the singular values and V, or nil for a matrix that
/// contains infinity or no number.
pub(super) fn sv_decompose(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = args.matrix(cx, 0)?;
    if m.rows == 0 || m.columns == 0 {
        return cx.type_error("matrix of at least one element", args[0]);
    }
    let Some(parts) = Singular::of(m) else { return Ok(Value::NIL) };
    cx.list_of([&|cx| cx.lisp_matrix(&parts.u), &|cx| cx.floats_from(&parts.values), &|cx| {
        cx.lisp_matrix(&parts.v)
    }])
}

/// Implements `(sv-solve matrix vector [result])`: solves linear equations in the sense of least squares.
pub(super) fn sv_solve(cx: &mut Context, args: Args<'_>) -> Answer {
    let (m, b) = (args.matrix(cx, 0)?, args.floats(cx, 1)?);
    if b.len() != m.rows {
        return cx.fail(
            ErrorClass::Range,
            format!("a matrix of {} x {} and a vector of {} elements", m.rows, m.columns, b.len()),
        );
    }
    if m.rows == 0 || m.columns == 0 {
        return cx.type_error("matrix of at least one element", args[0]);
    }
    let Some(parts) = Singular::of(m) else { return Ok(Value::NIL) };
    let x = parts.solve(b);
    let out = args.result_floats(cx, 2, x.len())?;
    out.floats_mut().copy_from_slice(&x);
    Ok(out)
}

/// Implements `(qr-decompose matrix)`: returns the list of the real and the imaginary parts of the eigenvalues of any
/// square matrix, or nil when the iteration does not converge. Of a conjugate pair, the negative imaginary part comes
/// first.
pub(super) fn qr_decompose(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = square(cx, args[0])?;
    let Some(values) = copied(m).and_then(eigenvalues) else { return Ok(Value::NIL) };
    let (real, imaginary): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
    cx.list_of([&|cx| cx.floats_from(&real), &|cx| cx.floats_from(&imaginary)])
}

/// Implements `(ql-decompose matrix)`: returns the list of the eigenvalues of a symmetric matrix, from the smallest to
/// the largest, and the matrix whose columns are their eigenvectors, or nil when the iteration does not converge.
pub(super) fn ql_decompose(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = square(cx, args[0])?;
    let eigen = copied(m).and_then(|m| SymmetricEigen::try_new(m, f64::EPSILON, STEPS));
    let Some(eigen) = eigen else { return Ok(Value::NIL) };
    let mut order: Vec<usize> = (0..m.rows).collect();
    order.sort_by(|a, b| eigen.eigenvalues[*a].total_cmp(&eigen.eigenvalues[*b]));
    let values: Vec<f64> = order.iter().map(|i| eigen.eigenvalues[*i]).collect();
    let vectors = eigen.eigenvectors.select_columns(&order);
    cx.list_of([&|cx| cx.floats_from(&values), &|cx| cx.lisp_matrix(&vectors)])
}

/// Implements `(rotm3* a b [result])`: the product of two rotations, corrected to be a rotation again: errors of
/// rounding would add up in long products.
pub(super) fn rotation_product(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut factors = [[0.0; 9]; 2];
    for (index, factor) in factors.iter_mut().enumerate() {
        let m = args.matrix(cx, index)?;
        match m.all().try_into() {
            Ok(elements) if m.rows == 3 => *factor = elements,
            _ => return cx.type_error("3 x 3 matrix", args[index]),
        }
    }
    let mut out = [0.0; 9];
    super::linear::multiply(&factors[0], &factors[1], 3, &mut out);
    cx.matrix_result(args.or_nil(2), 3, 3, &orthogonalized(out))
}

/// Returns the rotation nearest to a matrix that is nearly one: one step of Newton's iteration m := m (3 - m' m) / 2
/// for the orthogonal factor. A matrix that is far from a rotation is returned unchanged.
fn orthogonalized(m: [f64; 9]) -> [f64; 9] {
    const NEAR: f64 = 1e-3;
    let column = |j: usize| [m[j], m[j + 3], m[j + 6]];
    let mut factor = [0.0; 9];
    for i in 0..3 {
        for j in 0..3 {
            let product = crate::numeric::point::dot(column(i), column(j));
            let unit = if i == j { 1.0 } else { 0.0 };
            if (product - unit).abs() > NEAR || product.is_nan() {
                return m;
            }
            factor[3 * i + j] = 1.5 * unit - 0.5 * product;
        }
    }
    let mut out = [0.0; 9];
    super::linear::multiply(&m, &factor, 3, &mut out);
    out
}

/// Implements `(pseudo-inverse2 matrix [result])`.
pub(super) fn pseudo_inverse2(cx: &mut Context, args: Args<'_>) -> Answer {
    let m = args.matrix(cx, 0)?;
    let inverse = super::lu::pseudo_inverse_of(m);
    cx.matrix_result(args.or_nil(1), m.columns, m.rows, &inverse)
}
