//! Where an array keeps its dimensions and its elements.

use super::is_vector;
use crate::value::{Kind, Value};

/// Slots of an array, after the plist.
pub(crate) mod slot {
    pub(crate) const ENTITY: usize = 1;
    pub(crate) const RANK: usize = 2;
    pub(crate) const FILL_POINTER: usize = 3;
    pub(crate) const OFFSET: usize = 4;
    pub(crate) const FIRST_AXIS: usize = 5;
}

/// The most axes an array has.
pub(crate) const AXES: usize = 7;

/// What an array object says of itself.
pub(crate) struct Shape {
    /// The vector that holds the elements, row by row.
    pub(crate) entity: Value,
    pub(crate) offset: usize,
    pub(crate) dimensions: Vec<usize>,
    /// Elements of an array of one axis, up to its fill pointer.
    pub(crate) filled: usize,
}

fn size_of(value: Value) -> Option<usize> {
    usize::try_from(value.as_fixnum()?).ok()
}

impl Shape {
    /// The shape of a well-formed array; none of anything else.
    pub(crate) fn of(array: Value) -> Option<Shape> {
        if !array.is(Kind::Array) {
            return None;
        }
        let entity = array.slot(slot::ENTITY);
        let rank = size_of(array.slot(slot::RANK))?;
        if !is_vector(entity) || rank == 0 || rank > AXES {
            return None;
        }
        let dimensions: Vec<usize> =
            (0..rank).map(|axis| size_of(array.slot(slot::FIRST_AXIS + axis))).collect::<Option<_>>()?;
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

/// The elements of an array of these sizes; more than there can be when they are too many to count.
pub(super) fn volume(sizes: &[usize]) -> usize {
    sizes.iter().try_fold(1_usize, |total, size| total.checked_mul(*size)).unwrap_or(usize::MAX)
}
