//! Computes the eigenvalues of square matrices in the order in which the classical algorithm finds them: reduction to
//! Hessenberg form by elimination, then QR iterations with double shifts (Martin, Peters and Wilkinson, 1970).
//!
//! Programs expect this order, in which the last eigenvalue is split off first.

use nalgebra::DMatrix;

/// Largest number of iterations for one eigenvalue.
const ITERATIONS: usize = 60;
/// Iterations without a result after which the shift is changed.
const EXCEPTIONAL: [usize; 3] = [10, 20, 40];

/// Returns the real and imaginary parts of the eigenvalues, or none if an iteration does not converge. Of a conjugate
/// pair, the negative imaginary part comes first.
pub(super) fn eigenvalues(mut a: DMatrix<f64>) -> Option<Vec<(f64, f64)>> {
    reduce(&mut a);
    let mut values = vec![(0.0, 0.0); a.nrows()];
    let scale: f64 = a.iter().map(|x| x.abs()).sum();
    let (mut rows, mut shift) = (a.nrows(), 0.0);
    // The first `rows` rows and columns are not decomposed yet; `shift` was subtracted from their diagonal.
    while rows > 0 {
        let mut iteration = 0;
        loop {
            let start = block_start(&mut a, rows, scale);
            if start + 1 == rows {
                values[start] = (a[(start, start)] + shift, 0.0);
                rows -= 1;
                break;
            }
            if start + 2 == rows {
                let block = [
                    a[(start, start)],
                    a[(start, start + 1)],
                    a[(start + 1, start)],
                    a[(start + 1, start + 1)],
                ];
                let pair = pair_of(block);
                values[start] = (pair[0].0 + shift, pair[0].1);
                values[start + 1] = (pair[1].0 + shift, pair[1].1);
                rows -= 2;
                break;
            }
            if iteration == ITERATIONS {
                return None;
            }
            let mut shifts = Shifts::of(&a, rows);
            if EXCEPTIONAL.contains(&iteration) {
                let last = a[(rows - 1, rows - 1)];
                shift += last;
                (0..rows).for_each(|i| a[(i, i)] -= last);
                shifts = Shifts::exceptional(&a, rows);
            }
            iteration += 1;
            double_step(&mut a, start, rows, &shifts);
        }
    }
    Some(values)
}

/// Reduces a matrix to Hessenberg form by elimination with row exchanges; eigenvalues remain the same.
fn reduce(a: &mut DMatrix<f64>) {
    let size = a.nrows();
    for column in 1..size.saturating_sub(1) {
        let below = column - 1;
        // The first of the largest elements is the pivot.
        let mut pivot = column;
        for row in column..size {
            if a[(row, below)].abs() > a[(pivot, below)].abs() {
                pivot = row;
            }
        }
        let divisor = a[(pivot, below)];
        if divisor == 0.0 {
            continue;
        }
        a.swap_rows(pivot, column);
        a.swap_columns(pivot, column);
        for row in column + 1..size {
            let factor = a[(row, below)] / divisor;
            if factor == 0.0 {
                continue;
            }
            for j in below..size {
                let part = factor * a[(column, j)];
                a[(row, j)] -= part;
            }
            a[(row, below)] = 0.0;
            for i in 0..size {
                let part = factor * a[(i, row)];
                a[(i, column)] += part;
            }
        }
    }
}

/// Returns the first row of the last block that is not yet split: the subdiagonal element before it is negligible, and
/// is set to 0.
fn block_start(a: &mut DMatrix<f64>, rows: usize, scale: f64) -> usize {
    for row in (1..rows).rev() {
        let near = a[(row - 1, row - 1)].abs() + a[(row, row)].abs();
        let near = if near == 0.0 { scale } else { near };
        if a[(row, row - 1)].abs() <= f64::EPSILON * near {
            a[(row, row - 1)] = 0.0;
            return row;
        }
    }
    0
}

/// Returns the eigenvalues of a block of two rows, given by rows.
fn pair_of([a, b, c, d]: [f64; 4]) -> [(f64, f64); 2] {
    let half = 0.5 * (a - d);
    let product = b * c;
    let square = half * half + product;
    let root = square.abs().sqrt();
    if square < 0.0 {
        return [(d + half, -root), (d + half, root)];
    }
    let far = half + root.copysign(half);
    let second = if far == 0.0 { d } else { d - product / far };
    [(d + far, 0.0), (second, 0.0)]
}

/// The two shifts of a step: the eigenvalues of the last two rows, as the elements of those rows.
struct Shifts {
    last: f64,
    above: f64,
    product: f64,
}

impl Shifts {
    fn of(a: &DMatrix<f64>, rows: usize) -> Shifts {
        let (last, above) = (rows - 1, rows - 2);
        Shifts {
            last: a[(last, last)],
            above: a[(above, above)],
            product: a[(last, above)] * a[(above, last)],
        }
    }

    /// Returns shifts that end a cycle of steps which return to the same matrix.
    fn exceptional(a: &DMatrix<f64>, rows: usize) -> Shifts {
        let size = a[(rows - 1, rows - 2)].abs() + a[(rows - 2, rows - 3)].abs();
        Shifts { last: 0.75 * size, above: 0.75 * size, product: -0.4375 * size * size }
    }

    /// Returns the first column of the shifted matrix's square at `row`, up to a factor.
    fn first_column(&self, a: &DMatrix<f64>, row: usize) -> [f64; 3] {
        let here = a[(row, row)];
        let (to_last, to_above) = (self.last - here, self.above - here);
        let column = [
            (to_last * to_above - self.product) / a[(row + 1, row)] + a[(row, row + 1)],
            a[(row + 1, row + 1)] - here - to_last - to_above,
            a[(row + 2, row + 1)],
        ];
        let sum: f64 = column.iter().map(|x| x.abs()).sum();
        column.map(|x| if sum == 0.0 { x } else { x / sum })
    }
}

/// Applies a double QR step to the block from `start` to `rows`, which has at least three rows.
fn double_step(a: &mut DMatrix<f64>, start: usize, rows: usize, shifts: &Shifts) {
    // The step may begin where two consecutive subdiagonal elements are small.
    let mut first = rows - 3;
    let mut column = shifts.first_column(a, first);
    while first > start {
        let small = a[(first, first - 1)].abs() * (column[1].abs() + column[2].abs());
        let near =
            a[(first - 1, first - 1)].abs() + a[(first, first)].abs() + a[(first + 1, first + 1)].abs();
        if small <= f64::EPSILON * column[0].abs() * near {
            break;
        }
        first -= 1;
        column = shifts.first_column(a, first);
    }
    for row in first..rows - 1 {
        let three = row + 2 < rows;
        if row > first {
            column =
                [a[(row, row - 1)], a[(row + 1, row - 1)], if three { a[(row + 2, row - 1)] } else { 0.0 }];
        }
        reflect(a, column, row, three, start, rows, first);
    }
}

/// Reflects rows and columns from `row` on so that `column` becomes a multiple of the first unit vector.
fn reflect(
    a: &mut DMatrix<f64>,
    column: [f64; 3],
    row: usize,
    three: bool,
    start: usize,
    rows: usize,
    first: usize,
) {
    let length = column.iter().map(|x| x * x).sum::<f64>().sqrt().copysign(column[0]);
    if length == 0.0 {
        return;
    }
    let count = if three { 3 } else { 2 };
    if row > first {
        a[(row, row - 1)] = -length;
        (1..count).for_each(|k| a[(row + k, row - 1)] = 0.0);
    } else if row > start {
        a[(row, row - 1)] = -a[(row, row - 1)];
    }
    // The reflection is I - u v', where v is 1 in its first element.
    let u = [(column[0] + length) / length, column[1] / length, column[2] / length];
    let v = [1.0, column[1] / (column[0] + length), column[2] / (column[0] + length)];
    for j in row..rows {
        let sum: f64 = (0..count).map(|k| v[k] * a[(row + k, j)]).sum();
        (0..count).for_each(|k| a[(row + k, j)] -= sum * u[k]);
    }
    for i in start..rows.min(row + 4) {
        let sum: f64 = (0..count).map(|k| u[k] * a[(i, row + k)]).sum();
        (0..count).for_each(|k| a[(i, row + k)] -= sum * v[k]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Schur;

    #[test]
    fn values_come_in_the_classical_order() {
        let m = DMatrix::from_row_slice(3, 3, &[2.0, 0.0, 1.0, 0.0, 2.0, 0.0, 1.0, 0.0, 2.0]);
        assert_eq!(eigenvalues(m), Some(vec![(3.0, 0.0), (1.0, 0.0), (2.0, 0.0)]));
        let turn = DMatrix::from_row_slice(2, 2, &[0.0, -1.0, 1.0, 0.0]);
        assert_eq!(eigenvalues(turn), Some(vec![(0.0, -1.0), (0.0, 1.0)]));
    }

    #[test]
    fn values_are_those_of_schur() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / (1 << 24) as f64 * 20.0 - 10.0
        };
        for size in 1..12 {
            for _ in 0..20 {
                let m = DMatrix::from_fn(size, size, |_, _| next());
                let schur = Schur::try_new(m.clone(), f64::EPSILON, 10_000).unwrap();
                let wanted: Vec<_> = schur.complex_eigenvalues().iter().map(|z| (z.re, z.im)).collect();
                let mut left = wanted.clone();
                for (re, im) in eigenvalues(m).unwrap() {
                    let near = |z: &(f64, f64)| (z.0 - re).hypot(z.1 - im) < 1e-6;
                    let found = left.iter().position(near);
                    assert!(found.is_some(), "{re} {im} of {wanted:?}");
                    left.swap_remove(found.unwrap());
                }
                assert!(left.is_empty());
            }
        }
    }

    #[test]
    fn cyclic_matrix_needs_another_shift() {
        let m = DMatrix::from_fn(4, 4, |i, j| if i == (j + 1) % 4 { 1.0 } else { 0.0 });
        let values = eigenvalues(m).unwrap();
        assert!(values.iter().all(|z| (z.0.hypot(z.1) - 1.0).abs() < 1e-12), "{values:?}");
    }
}
