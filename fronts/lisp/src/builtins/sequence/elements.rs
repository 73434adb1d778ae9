//! Accesses the elements of sequences by index.

use super::slice::VectorSlice;
use crate::builtins::list::{circular, nth_tail, proper_length};
use crate::builtins::vector::{Shape, element, set_element};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::foreign::{foreign_bytes, is_foreign_string};
use crate::value::{Circle, ObjectKind, Value};

/// Returns the number of elements of a list, a vector, or a one-dimensional array up to its fill pointer.
pub(crate) fn length(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    if sequence.is_list() {
        return proper_length(cx, sequence);
    }
    Ok(VectorSlice::of(cx, sequence)?.range.len())
}

/// Pushes the elements of a sequence and returns their number.
pub(crate) fn items(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    if sequence.is_list() {
        return list_items(cx, sequence);
    }
    let slice = VectorSlice::of(cx, sequence)?;
    let count = slice.range.len();
    if slice.vector != sequence && matches!(slice.kind(), ObjectKind::FloatVector | ObjectKind::IntegerVector)
    {
        // Numbers that do not fit in a word are allocated, and during an allocation another thread may give the array another vector.
        for index in 0..count {
            let value = elt(cx, sequence, index)?;
            cx.push(value)?;
        }
    } else {
        slice.push_all(cx)?;
    }
    Ok(count)
}

/// Pushes the elements of a list, which must not be circular, and returns their number.
fn list_items(cx: &mut Context, list: Value) -> Result<usize, Exit> {
    let (mut rest, mut count, mut circle) = (list, 0, Circle::new());
    while rest.is_cons() {
        if circle.closes_at(rest) {
            return circular(cx);
        }
        cx.push(rest.get(0))?;
        rest = rest.get(1);
        count += 1;
    }
    Ok(count)
}

/// Returns an element.
pub(crate) fn elt(cx: &mut Context, sequence: Value, index: usize) -> Answer {
    if sequence.is_list() {
        let tail = nth_tail(cx, index, sequence)?;
        if tail.is_cons() {
            return Ok(tail.get(0));
        }
        return cx.range_error(Value::fixnum(index as i64), sequence.iter().count());
    }
    if is_foreign_string(sequence) {
        let bytes = foreign_bytes(cx, sequence)?;
        return match bytes.get(index) {
            Some(byte) => Ok(Value::fixnum(i64::from(*byte))),
            None => cx.range_error(Value::fixnum(index as i64), bytes.len()),
        };
    }
    let count = length(cx, sequence)?;
    if index >= count {
        return cx.range_error(Value::fixnum(index as i64), count);
    }
    match Shape::of(sequence) {
        Some(shape) => element(cx, shape.entity, shape.offset + index),
        None => element(cx, sequence, index),
    }
}

/// Writes an element; the caller keeps all arguments alive.
pub(crate) fn set_elt(cx: &mut Context, sequence: Value, index: usize, value: Value) -> Result<(), Exit> {
    if sequence.is_list() {
        let tail = nth_tail(cx, index, sequence)?;
        if !tail.is_cons() {
            return cx.range_error(Value::fixnum(index as i64), sequence.iter().count());
        }
        tail.set(0, value);
        return Ok(());
    }
    let count = VectorSlice::of(cx, sequence)?.range.len();
    if index >= count {
        return cx.range_error(Value::fixnum(index as i64), count);
    }
    match Shape::of(sequence) {
        Some(shape) => set_element(cx, shape.entity, shape.offset + index, value),
        None => set_element(cx, sequence, index, value),
    }
}
