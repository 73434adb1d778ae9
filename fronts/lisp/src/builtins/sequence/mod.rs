//! Implements functions on lists and vectors alike.

mod build;
mod change;
mod walk;

use super::list::{nth_tail, proper_length};
use super::vector::{Shape, element, set_element, slot};
use crate::builtin::{Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
pub(super) use build::{build_like, copy_vector};
use build::{coerce, concatenate, copy_seq, nreverse, reverse, subseq};
use change::{fill, replace, vector_pop, vector_push};
use walk::{map, quantify, reduce};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("LENGTH", 1, 1, |cx, args| length(cx, args[0]).map(|count| Value::fixnum(count as i64))),
    builtin("ELT", 2, 2, |cx, args| {
        let index = args.size(cx, 1)?;
        elt(cx, args[0], index)
    }),
    builtin("SETELT", 3, 3, |cx, args| {
        let index = args.size(cx, 1)?;
        set_elt(cx, args[0], index, args[2])?;
        Ok(args[2])
    }),
    builtin("SUBSEQ", 2, 3, subseq),
    builtin("COPY-SEQ", 1, 1, |cx, args| copy_seq(cx, args[0])),
    builtin("REVERSE", 1, 1, reverse),
    builtin("NREVERSE", 1, 1, nreverse),
    builtin("CONCATENATE", 1, MANY, concatenate),
    builtin("COERCE", 2, 2, coerce),
    builtin("FILL", 2, MANY, fill),
    builtin("REPLACE", 2, MANY, replace),
    builtin("REDUCE", 2, MANY, reduce),
    builtin("EVERY", 2, MANY, |cx, args| quantify(cx, args, |value| value.is_nil(), false, true)),
    builtin("SOME", 2, MANY, |cx, args| quantify(cx, args, |value| !value.is_nil(), true, false)),
    builtin("NOTANY", 2, MANY, |cx, args| quantify(cx, args, |value| !value.is_nil(), false, true)),
    builtin("NOTEVERY", 2, MANY, |cx, args| {
        let every = quantify(cx, args, |value| value.is_nil(), false, true)?;
        Ok(cx.truth(every.is_nil()))
    }),
    builtin("MAP", 3, MANY, map),
    builtin("VECTOR-PUSH", 2, 2, |cx, args| vector_push(cx, args, false)),
    builtin("VECTOR-PUSH-EXTEND", 2, 3, |cx, args| vector_push(cx, args, true)),
    builtin("VECTOR-POP", 1, 1, vector_pop),
    builtin("FILL-POINTER", 1, 1, |_, args| {
        Ok(if args[0].is(ObjectKind::Array) { args[0].slot(slot::FILL_POINTER) } else { Value::NIL })
    }),
];

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
pub(super) fn items(cx: &mut Context, sequence: Value) -> Result<usize, Exit> {
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
pub(super) fn set_elt(cx: &mut Context, sequence: Value, index: usize, value: Value) -> Result<(), Exit> {
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
