//! Implements matrices as two-dimensional arrays of floats.

use super::room::with_room;
use super::vectors::fill;
use crate::builtin::Args;
use crate::builtins::vector::slot;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

/// A matrix whose elements are in row-major order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    start: usize,
    elements: Value,
}

impl Matrix {
    /// Returns the matrix in a value, if it is one.
    pub(crate) fn of(value: Value) -> Option<Matrix> {
        if !value.is(ObjectKind::Array) || value.slot(slot::RANK) != Value::fixnum(2) {
            return None;
        }
        let number = |index| usize::try_from(value.slot(index).as_fixnum()?).ok();
        let (rows, columns) = (number(slot::FIRST_AXIS)?, number(slot::FIRST_AXIS + 1)?);
        let start = number(slot::OFFSET).unwrap_or(0);
        let elements = value.slot(slot::ENTITY);
        let end = rows.checked_mul(columns)?.checked_add(start)?;
        let fits = elements.is(ObjectKind::FloatVector) && end <= elements.length();
        fits.then_some(Matrix { rows, columns, start, elements })
    }

    pub(crate) fn all(&self) -> &[f64] {
        &self.elements.floats()[self.start..self.start + self.rows * self.columns]
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.all()[row * self.columns + column]
    }

    pub(crate) fn set(&self, row: usize, column: usize, x: f64) {
        self.elements.floats_mut()[self.start + row * self.columns + column] = x;
    }

    /// Writes all elements.
    pub(crate) fn write(&self, from: &[f64]) {
        self.elements.floats_mut()[self.start..self.start + from.len()].copy_from_slice(from);
    }

    pub(crate) fn square(&self) -> bool {
        self.rows == self.columns
    }
}

impl Context {
    /// Allocates a matrix of zeros.
    pub(crate) fn new_matrix(&mut self, rows: usize, columns: usize) -> Answer {
        let mark = self.mark();
        let elements = self.new_floats(rows.saturating_mul(columns))?;
        self.push(elements)?;
        let array = self.new_array(elements, &[rows, columns])?;
        self.release(mark);
        Ok(array)
    }

    pub(crate) fn matrix_from(&mut self, rows: usize, columns: usize, from: &[f64]) -> Answer {
        let value = self.new_matrix(rows, columns)?;
        if let Some(matrix) = Matrix::of(value) {
            matrix.write(from);
        }
        Ok(value)
    }

    /// Returns the matrix in a value; any other value is an error.
    pub(crate) fn matrix(&mut self, value: Value) -> Result<Matrix, Exit> {
        let Some(matrix) = Matrix::of(value) else { return self.type_error("matrix", value) };
        // Pushed, as another thread may replace the elements of the array.
        self.push(matrix.elements)?;
        Ok(matrix)
    }

    /// Writes `from` to the matrix given for the result, or to a new one.
    pub(crate) fn matrix_result(
        &mut self,
        given: Value,
        rows: usize,
        columns: usize,
        from: &[f64],
    ) -> Answer {
        if given.is_nil() {
            return self.matrix_from(rows, columns, from);
        }
        let out = self.matrix(given)?;
        if (out.rows, out.columns) != (rows, columns) {
            return self.type_error(&format!("{rows} x {columns} matrix"), given);
        }
        out.write(from);
        Ok(given)
    }
}

impl Args<'_> {
    pub(crate) fn matrix(&self, cx: &mut Context, index: usize) -> Result<Matrix, Exit> {
        cx.matrix(self[index])
    }
}

/// Returns the numbers in a list, a vector or a float-vector.
pub(super) fn numbers(cx: &mut Context, sequence: Value) -> Result<Vec<f64>, Exit> {
    if sequence.is(ObjectKind::FloatVector) {
        return Ok(sequence.floats().to_vec());
    }
    if sequence.is(ObjectKind::Vector) {
        return (0..sequence.length()).map(|i| cx.number(sequence.slot(i))).collect();
    }
    if sequence.is_list() {
        return sequence.iter().map(|x| cx.number(x)).collect();
    }
    cx.type_error("sequence of numbers", sequence)
}

/// Allocates a matrix from rows of equal length.
fn from_rows(cx: &mut Context, rows: &[Vec<f64>]) -> Answer {
    let columns = rows.first().map_or(0, Vec::len);
    if let Some(row) = rows.iter().find(|row| row.len() != columns) {
        return cx
            .fail(ErrorClass::Range, format!("rows of {columns} and {} elements in one matrix", row.len()));
    }
    cx.matrix_from(rows.len(), columns, &rows.concat())
}

pub(super) fn matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let rows = args.iter().map(|row| numbers(cx, *row)).collect::<Result<Vec<_>, _>>()?;
    from_rows(cx, &rows)
}

pub(super) fn make_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let (rows, columns) = (args.size(cx, 0)?, args.size(cx, 1)?);
    let value = cx.new_matrix(rows, columns)?;
    let init = args.or_nil(2);
    if init.is_nil() {
        return Ok(value);
    }
    let given = if init.is(ObjectKind::Vector) {
        (0..init.length()).map(|i| init.slot(i)).collect::<Vec<_>>()
    } else {
        init.iter().collect()
    };
    let matrix = cx.matrix(value)?;
    for (row, elements) in given.into_iter().take(rows).enumerate() {
        for (column, x) in numbers(cx, elements)?.into_iter().take(columns).enumerate() {
            matrix.set(row, column, x);
        }
    }
    Ok(value)
}

pub(super) fn matrixp(cx: &mut Context, args: Args<'_>) -> Answer {
    Ok(cx.truth(Matrix::of(args[0]).is_some()))
}

fn index(cx: &mut Context, value: Value, below: usize) -> Result<usize, Exit> {
    let index = cx.size(value)?;
    if index < below { Ok(index) } else { cx.range_error(value, below) }
}

pub(super) fn row(cx: &mut Context, args: Args<'_>) -> Answer {
    let matrix = args.matrix(cx, 0)?;
    let row = index(cx, args[1], matrix.rows)?;
    let out = cx.new_floats(matrix.columns)?;
    fill(out, |i| matrix.at(row, i));
    Ok(out)
}

pub(super) fn column(cx: &mut Context, args: Args<'_>) -> Answer {
    let matrix = args.matrix(cx, 0)?;
    let column = index(cx, args[1], matrix.columns)?;
    let out = cx.new_floats(matrix.rows)?;
    fill(out, |i| matrix.at(i, column));
    Ok(out)
}

pub(super) fn set_row(cx: &mut Context, args: Args<'_>) -> Answer {
    let matrix = args.matrix(cx, 0)?;
    let row = index(cx, args[1], matrix.rows)?;
    for (i, x) in numbers(cx, args[2])?.into_iter().take(matrix.columns).enumerate() {
        matrix.set(row, i, x);
    }
    Ok(args[2])
}

pub(super) fn set_column(cx: &mut Context, args: Args<'_>) -> Answer {
    let matrix = args.matrix(cx, 0)?;
    let column = index(cx, args[1], matrix.columns)?;
    for (i, x) in numbers(cx, args[2])?.into_iter().take(matrix.rows).enumerate() {
        matrix.set(i, column, x);
    }
    Ok(args[2])
}

pub(super) fn unit_matrix(cx: &mut Context, args: Args<'_>) -> Answer {
    let order = if args.is_empty() { 3 } else { args.size(cx, 0)? };
    let value = cx.new_matrix(order, order)?;
    let matrix = cx.matrix(value)?;
    (0..order).for_each(|i| matrix.set(i, i, 1.0));
    Ok(value)
}

pub(super) fn replace(cx: &mut Context, args: Args<'_>) -> Answer {
    let from = args.matrix(cx, 1)?;
    // Through a copy, as both may be one matrix.
    with_room(cx, from.rows * from.columns, |cx, copy| {
        copy.copy_from_slice(from.all());
        cx.matrix_result(args[0], from.rows, from.columns, copy)
    })
}

pub(super) fn copy(cx: &mut Context, args: Args<'_>) -> Answer {
    let from = args.matrix(cx, 0)?;
    cx.matrix_from(from.rows, from.columns, from.all())
}
