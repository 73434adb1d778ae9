//! Decodes the shape of an array: its dimensions and its vector of elements.

use crate::value::{ObjectKind, Value};
use std::ops::Deref;

/// Indices of the slots of an array, after the property list.
pub(crate) mod slot {
    pub(crate) const ENTITY: usize = 1;
    pub(crate) const RANK: usize = 2;
    pub(crate) const FILL_POINTER: usize = 3;
    pub(crate) const OFFSET: usize = 4;
    pub(crate) const FIRST_AXIS: usize = 5;
}

/// Largest number of axes of an array.
pub(crate) const AXES: usize = 7;

/// Holds the sizes of an array's axes. It is a slice of them, without an allocation.
pub(crate) struct Axes {
    sizes: [usize; AXES],
    rank: usize,
}

impl Deref for Axes {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }
}

/// Holds the decoded shape of an array object.
pub(crate) struct Shape {
    /// The vector that holds the elements in row-major order.
    pub(crate) entity: Value,
    pub(crate) offset: usize,
    pub(crate) dimensions: Axes,
    /// Number of elements of a one-dimensional array, up to its fill pointer.
    pub(crate) filled: usize,
}

/// Returns whether a value is a vector of any kind.
#[inline]
pub(crate) fn is_vector(value: Value) -> bool {
    value.is_object()
        && matches!(
            value.header().kind(),
            ObjectKind::Vector
                | ObjectKind::String
                | ObjectKind::FloatVector
                | ObjectKind::IntegerVector
                | ObjectKind::BitVector
        )
}

fn size_of(value: Value) -> Option<usize> {
    usize::try_from(value.as_fixnum()?).ok()
}

impl Shape {
    /// Returns the shape of a well-formed array, or none for anything else.
    pub(crate) fn of(array: Value) -> Option<Shape> {
        if !array.is(ObjectKind::Array) {
            return None;
        }
        let entity = array.slot(slot::ENTITY);
        let rank = size_of(array.slot(slot::RANK))?;
        if !is_vector(entity) || rank == 0 || rank > AXES {
            return None;
        }
        let mut sizes = [0; AXES];
        for (axis, size) in sizes[..rank].iter_mut().enumerate() {
            *size = size_of(array.slot(slot::FIRST_AXIS + axis))?;
        }
        let dimensions = Axes { sizes, rank };
        let offset = size_of(array.slot(slot::OFFSET))?;
        let total = dimensions.iter().try_fold(1_usize, |total, size| total.checked_mul(*size))?;
        if offset.checked_add(total)? > entity.length() {
            return None;
        }
        let filled =
            size_of(array.slot(slot::FILL_POINTER)).map_or(dimensions[0], |fill| fill.min(dimensions[0]));
        Some(Shape { entity, offset, dimensions, filled })
    }
}

/// Returns the number of elements of an array of these sizes, or `usize::MAX` when it overflows.
pub(super) fn volume(sizes: &[usize]) -> usize {
    sizes.iter().try_fold(1_usize, |total, size| total.checked_mul(*size)).unwrap_or(usize::MAX)
}

/// Returns the text of a string or an array of characters, up to its fill pointer.
pub(crate) fn text_of(value: Value) -> Vec<u8> {
    match Shape::of(value) {
        Some(shape) => shape.entity.bytes()[shape.offset..shape.offset + shape.filled].to_vec(),
        None => value.bytes().to_vec(),
    }
}
