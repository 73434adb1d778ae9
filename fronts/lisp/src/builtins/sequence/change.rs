//! Modifies sequences in place.

use super::elements::{in_heap, items, length};
use super::slice::VectorSlice;
use crate::builtin::Args;
use crate::builtins::vector::{Shape, element, set_element, slot};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{Header, Value};

/// Returns the part that `:start` and `:end` select, as EusLisp: an end after the last element is that of the sequence,
/// and a part that starts after its end is empty.
pub(crate) fn bounds(
    cx: &mut Context,
    start: Value,
    end: Value,
    length: usize,
) -> Result<(usize, usize), Exit> {
    let last = if end.given_or_nil().is_nil() { length } else { cx.size(end)?.min(length) };
    let first = if start.given_or_nil().is_nil() { 0 } else { cx.size(start)?.min(last) };
    Ok((first, last))
}

pub(super) fn fill(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [start, end] = cx.keywords(args.from(2), [names.start, names.end])?;
    let count = length(cx, args[0])?;
    let (start, end) = bounds(cx, start, end, count)?;
    if args[0].is_list() {
        for tail in args[0].tails().take(end).skip(start) {
            tail.set(0, args[1]);
        }
        return Ok(args[0]);
    }
    VectorSlice::of(cx, args[0])?.part(start..end).fill(cx, args[1])?;
    Ok(args[0])
}

pub(super) fn replace(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [start1, end1, start2, end2] =
        cx.keywords(args.from(2), [names.start1, names.end1, names.start2, names.end2])?;
    let count = length(cx, args[0])?;
    let (start1, end1) = bounds(cx, start1, end1, count)?;
    let from = length(cx, args[1])?;
    let (start2, end2) = bounds(cx, start2, end2, from)?;
    let size = (end1 - start1).min(end2 - start2);
    if !args[0].is_list() && !args[1].is_list() {
        let source = in_heap(cx, args[1])?;
        let (to, from) = (VectorSlice::of(cx, args[0])?, VectorSlice::of(cx, source)?);
        let (to, from) = (to.part(start1..start1 + size), from.part(start2..start2 + size));
        if to.kind() == from.kind() {
            from.copy_to(&to);
            return Ok(args[0]);
        }
    }
    let first = cx.mark();
    items(cx, args[1])?;
    if args[0].is_list() {
        for (index, tail) in args[0].tails().skip(start1).take(size).enumerate() {
            tail.set(0, cx.root(first, start2 + index));
        }
        return Ok(args[0]);
    }
    let to = VectorSlice::of(cx, args[0])?.part(start1..start1 + size);
    for (step, index) in to.range.enumerate() {
        set_element(cx, to.vector, index, cx.root(first, start2 + step))?;
    }
    Ok(args[0])
}

pub(super) fn vector_push(cx: &mut Context, args: Args<'_>, extend: bool) -> Answer {
    let Some(shape) = Shape::of(args[1]) else { return cx.type_error("array with a fill pointer", args[1]) };
    if args[1].slot(slot::FILL_POINTER).is_nil() || shape.dimensions.len() != 1 {
        return cx.type_error("array with a fill pointer", args[1]);
    }
    let at = shape.filled;
    let mut entity = shape.entity;
    if at == shape.dimensions[0] {
        if !extend {
            return Ok(Value::NIL);
        }
        let more = if args.len() > 2 { args.size(cx, 2)?.max(1) } else { at.max(8) };
        let header = entity.header();
        cx.push(entity)?;
        let grown = cx.new_vector_of_kind(header.kind(), at + more)?;
        cx.push(grown)?;
        grown.set(0, Header::new(header.kind(), header.class(), at + more).word());
        for index in 0..at {
            let value = element(cx, entity, shape.offset + index)?;
            set_element(cx, grown, index, value)?;
        }
        entity = grown;
        args[1].set_slot(slot::ENTITY, grown);
        args[1].set_slot(slot::OFFSET, Value::fixnum(0));
        args[1].set_slot(slot::FIRST_AXIS, Value::fixnum((at + more) as i64));
        set_element(cx, entity, at, args[0])?;
    } else {
        set_element(cx, entity, shape.offset + at, args[0])?;
    }
    args[1].set_slot(slot::FILL_POINTER, Value::fixnum(at as i64 + 1));
    Ok(Value::fixnum(at as i64))
}

pub(super) fn vector_pop(cx: &mut Context, args: Args<'_>) -> Answer {
    let Some(shape) = Shape::of(args[0]) else { return cx.type_error("array with a fill pointer", args[0]) };
    if args[0].slot(slot::FILL_POINTER).is_nil() || shape.filled == 0 {
        return cx.error_about(ErrorClass::Range, "vector-pop of an empty vector".to_owned(), args[0]);
    }
    let at = shape.filled - 1;
    args[0].set_slot(slot::FILL_POINTER, Value::fixnum(at as i64));
    element(cx, shape.entity, shape.offset + at)
}
