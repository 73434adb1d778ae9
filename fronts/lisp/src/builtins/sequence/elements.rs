//! Accesses the elements of sequences by index.

use crate::builtins::list::{nth_tail, proper_length};
use crate::builtins::vector::{Shape, element, set_element};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

/// Returns the number of elements of a list, a vector, or a one-dimensional array up to its fill pointer.
pub(crate) fn length(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    if sequence.is_list() {
        return proper_length(cx, sequence);
    }
    match sequence.kind() {
        Some(
            ObjectKind::Vector
            | ObjectKind::String
            | ObjectKind::FloatVector
            | ObjectKind::IntegerVector
            | ObjectKind::BitVector,
        ) => Ok(sequence.length()),
        Some(ObjectKind::Array) => match Shape::of(sequence) {
            Some(shape) if shape.dimensions.len() == 1 => Ok(shape.filled),
            _ => cx.type_error("sequence", sequence),
        },
        _ => cx.type_error("sequence", sequence),
    }
}

/// Pushes the elements of a sequence and returns their number.
pub(crate) fn items(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    let count = length(cx, sequence)?;
    if sequence.is_list() {
        let mut rest = sequence;
        for _ in 0..count {
            cx.push(rest.car())?;
            rest = rest.cdr();
        }
        return Ok(count);
    }
    for index in 0..count {
        let value = elt(cx, sequence, index)?;
        cx.push(value)?;
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
    let count = length(cx, sequence)?;
    if index >= count {
        return cx.range_error(Value::fixnum(index as i64), count);
    }
    match Shape::of(sequence) {
        Some(shape) => set_element(cx, shape.entity, shape.offset + index, value),
        None => set_element(cx, sequence, index, value),
    }
}
