//! Accesses the elements of sequences by index.

use super::slice::VectorSlice;
use crate::builtin::Args;
use crate::builtins::list::{circular, nth_tail, proper_length};
use crate::builtins::vector::{Shape, element, set_element};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::foreign::{
    foreign_byte, foreign_bytes, foreign_length, is_foreign_string, set_foreign_bytes, set_foreign_element,
};
use crate::value::{Circle, ObjectKind, Value};

/// Returns the number of elements of a list, a vector, or a one-dimensional array up to its fill pointer.
pub(crate) fn length(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    if sequence.is_list() {
        return proper_length(cx, sequence);
    }
    if is_foreign_string(sequence) {
        return Ok(foreign_length(sequence));
    }
    Ok(VectorSlice::of(cx, sequence)?.range.len())
}

/// Returns a sequence as it is, or a copy of a foreign string, which is on the root stack.
pub(crate) fn in_heap(cx: &mut Context, sequence: Value) -> Answer {
    if !is_foreign_string(sequence) {
        return Ok(sequence);
    }
    let text = foreign_bytes(cx, sequence)?;
    let copied = cx.string_from(&text)?;
    cx.push(copied)?;
    Ok(copied)
}

/// Applies a function that changes its argument `index`. It changes a copy of a foreign string, which is written back.
pub(crate) fn written_back(
    cx: &mut Context,
    args: Args<'_>,
    index: usize,
    change: fn(&mut Context, Args<'_>) -> Answer,
) -> Answer {
    let outside = args[index];
    if !is_foreign_string(outside) {
        return change(cx, args);
    }
    let copied = in_heap(cx, outside)?;
    let first = cx.mark();
    for (at, value) in args.iter().enumerate() {
        cx.push(if at == index { copied } else { *value })?;
    }
    let within = cx.arguments(first, args.len());
    change(cx, within)?;
    set_foreign_bytes(cx, outside, 0, copied.bytes())?;
    Ok(outside)
}

/// Pushes the elements of a sequence and returns their number.
pub(crate) fn items(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
    if sequence.is_list() {
        return list_items(cx, sequence);
    }
    if is_foreign_string(sequence) {
        let text = foreign_bytes(cx, sequence)?;
        text.iter().try_for_each(|byte| cx.push(Value::fixnum(i64::from(*byte))))?;
        return Ok(text.len());
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
        return foreign_byte(cx, sequence, index).map(|byte| Value::fixnum(i64::from(byte)));
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
    if is_foreign_string(sequence) {
        return set_foreign_element(cx, sequence, index, value);
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
