//! Reads and writes elements of vectors of every kind.

use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

/// Returns a bit of a bit-vector.
#[inline]
pub(crate) fn bit(vector: Value, index: usize) -> bool {
    assert!(index < vector.length());
    vector.get(1 + index / 64).0 >> (index % 64) & 1 == 1
}

/// Writes a bit of a bit-vector.
#[inline]
pub(crate) fn set_bit(vector: Value, index: usize, on: bool) {
    assert!(index < vector.length());
    let word = vector.get(1 + index / 64).0;
    let mask = 1_u64 << (index % 64);
    vector.set(1 + index / 64, Value(if on { word | mask } else { word & !mask }));
}

/// Returns an element of a vector, whose index is in range.
#[inline]
pub(crate) fn element(cx: &mut Context, vector: Value, index: usize) -> Answer {
    match vector.header().kind() {
        ObjectKind::FloatVector => cx.float(vector.floats()[index]),
        ObjectKind::IntegerVector => cx.integer_from(vector.integers()[index]),
        ObjectKind::String => Ok(Value::fixnum(i64::from(vector.bytes()[index]))),
        ObjectKind::BitVector => Ok(Value::fixnum(i64::from(bit(vector, index)))),
        _ => Ok(vector.slot(index)),
    }
}

/// Writes an element of a vector, whose index is in range.
#[inline]
pub(crate) fn set_element(cx: &mut Context, vector: Value, index: usize, value: Value) -> Result<(), Exit> {
    match vector.header().kind() {
        ObjectKind::FloatVector => vector.floats_mut()[index] = cx.number(value)?,
        ObjectKind::IntegerVector => vector.integers_mut()[index] = cx.integer_of_64_bits(value)?,
        ObjectKind::String => match value.as_fixnum() {
            Some(code) => vector.bytes_mut()[index] = code as u8,
            None => return cx.type_error("character", value),
        },
        ObjectKind::BitVector => match value.as_fixnum() {
            Some(on @ 0..=1) => set_bit(vector, index, on == 1),
            _ => return cx.type_error("bit", value),
        },
        _ => vector.set_slot(index, value),
    }
    Ok(())
}
