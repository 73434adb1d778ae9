//! Creates sequences: copies, parts, conversions.

use super::change::bounds;
use super::elements::{in_heap, items, length};
use super::slice::VectorSlice;
use crate::builtin::Args;
use crate::builtins::list::{copy, proper_length};
use crate::builtins::vector::{Shape, is_vector, set_element};
use crate::context::{Answer, Context, RootMark};
use crate::error::{ErrorClass, Exit};
use crate::foreign::{foreign_bytes, is_foreign_string};
use crate::value::{Header, ObjectKind, Value};
use crate::world::class;

/// Builds a sequence of the type of `like` from `count` roots.
pub(crate) fn build_like(cx: &mut Context, like: Value, first: RootMark, count: usize) -> Answer {
    if like.is_list() {
        return cx.list_of_roots(first, 0..count, Value::NIL);
    }
    if is_foreign_string(like) {
        return build(cx, ObjectKind::String, class::STRING, first, count);
    }
    let (kind, number) = match Shape::of(like) {
        Some(shape) => (shape.entity.header().kind(), shape.entity.header().class()),
        None if is_vector(like) => (like.header().kind(), like.header().class()),
        // A function that the caller called may have damaged the array.
        None => return cx.type_error("sequence", like),
    };
    build(cx, kind, number, first, count)
}

fn build(cx: &mut Context, kind: ObjectKind, number: u16, first: RootMark, count: usize) -> Answer {
    let vector = cx.new_vector_of_kind(kind, count)?;
    cx.push(vector)?;
    vector.set(0, Header::new(kind, number, count).word());
    if kind == ObjectKind::Vector {
        for index in 0..count {
            vector.set(index + 1, cx.root(first, index));
        }
        return Ok(vector);
    }
    for index in 0..count {
        set_element(cx, vector, index, cx.root(first, index))?;
    }
    Ok(vector)
}

impl Context {
    pub(crate) fn new_vector_of_kind(&mut self, kind: ObjectKind, length: usize) -> Answer {
        match kind {
            ObjectKind::FloatVector => self.new_floats(length),
            ObjectKind::IntegerVector => self.new_integers(length),
            ObjectKind::BitVector => self.new_bits(length),
            ObjectKind::String => self.new_string(length),
            _ => self.new_vector(length),
        }
    }
}

/// Copies a range of a vector as words into a new one of the same class.
pub(crate) fn copy_vector(cx: &mut Context, vector: Value, start: usize, end: usize) -> Answer {
    let header = vector.header();
    // An array may get another vector during the allocation.
    cx.push(vector)?;
    let copied = cx.new_vector_of_kind(header.kind(), end - start)?;
    copied.set(0, Header::new(header.kind(), header.class(), end - start).word());
    let length = end - start;
    VectorSlice { vector, range: start..end }.copy_to(&VectorSlice { vector: copied, range: 0..length });
    Ok(copied)
}

pub(crate) fn copy_seq(cx: &mut Context, sequence: Value) -> Answer {
    if sequence.is_list() {
        return copy(cx, sequence);
    }
    if is_foreign_string(sequence) {
        let text = foreign_bytes(cx, sequence)?;
        return cx.string_from(&text);
    }
    let count = length(cx, sequence)?;
    match Shape::of(sequence) {
        Some(shape) => copy_vector(cx, shape.entity, shape.offset, shape.offset + count),
        None => copy_vector(cx, sequence, 0, count),
    }
}

/// Returns the part of an array of several axes as a vector; its elements are in row-major order.
fn part_of_array(cx: &mut Context, args: Args<'_>, shape: &Shape) -> Answer {
    let count: usize = shape.dimensions.iter().product();
    let start = args.size(cx, 1)?;
    let end = if args.or_nil(2).is_nil() { count } else { args.size(cx, 2)? };
    if start > end || end > count {
        return cx.range_error(args[1], count);
    }
    copy_vector(cx, shape.entity, shape.offset + start, shape.offset + end)
}

pub(super) fn subseq(cx: &mut Context, args: Args<'_>) -> Answer {
    if let Some(shape) = Shape::of(args[0])
        && shape.dimensions.len() > 1
    {
        return part_of_array(cx, args, &shape);
    }
    // Every part of an empty list is empty, as in EusLisp.
    if args[0].is_nil() {
        return Ok(Value::NIL);
    }
    let count = length(cx, args[0])?;
    let (start, end) = bounds(cx, args[1], args.or_nil(2), count)?;
    let wanted = args.size(cx, 1)?;
    if wanted > end {
        let text = format!("subseq from {wanted} to {end} of {count} elements");
        return cx.error_about(ErrorClass::Range, text, args[1]);
    }
    if args[0].is_list() {
        let mark = cx.mark();
        for item in args[0].iter().skip(start).take(end - start) {
            cx.push(item)?;
        }
        return cx.stacked(mark);
    }
    match Shape::of(args[0]) {
        Some(shape) => copy_vector(cx, shape.entity, shape.offset + start, shape.offset + end),
        None => {
            let vector = in_heap(cx, args[0])?;
            copy_vector(cx, vector, start, end)
        }
    }
}

pub(super) fn reverse(cx: &mut Context, args: Args<'_>) -> Answer {
    if args[0].is_list() {
        return crate::builtins::list::reverse_onto(cx, args[0], Value::NIL);
    }
    let copied = copy_seq(cx, args[0])?;
    VectorSlice { vector: copied, range: 0..copied.length() }.reverse();
    Ok(copied)
}

pub(super) fn nreverse(cx: &mut Context, args: Args<'_>) -> Answer {
    if !args[0].is_list() {
        VectorSlice::of(cx, args[0])?.reverse();
        return Ok(args[0]);
    }
    // As in EusLisp, the first cons stays the first one: programs use the variable that held the list.
    let length = proper_length(cx, args[0])?;
    let mut items = Vec::new();
    if items.try_reserve_exact(length).is_err() {
        return cx.out_of_memory(length);
    }
    items.extend(args[0].iter());
    let mut rest = args[0];
    for item in items.into_iter().rev() {
        rest.set(0, item);
        rest = rest.get(1);
    }
    Ok(args[0])
}

/// Returns the kind and class of a result type, which is a class or its name.
pub(super) fn result_type(cx: &mut Context, wanted: Value) -> Result<Option<(ObjectKind, u16)>, Exit> {
    let mut wanted = wanted;
    if wanted.is_cons() {
        wanted = wanted.get(0);
    }
    if wanted.is_symbol_object() {
        let value = cx.global_value(wanted);
        wanted = match cx.show_name(wanted).as_str() {
            "list" | "cons" => cx.world.class_object(class::CONS),
            "simple-vector" => cx.world.class_object(class::VECTOR),
            "simple-string" => cx.world.class_object(class::STRING),
            _ if value != Value::UNBOUND => value,
            _ => wanted,
        };
    }
    if !cx.is_class(wanted) {
        return cx.type_error("sequence type", wanted);
    }
    if cx.derives(wanted, class::CONS) {
        return Ok(None);
    }
    if !cx.is_vector_class(wanted) {
        return cx.type_error("sequence type", wanted);
    }
    let sample = cx.instantiate(wanted, Some(0))?;
    Ok(Some((sample.header().kind(), sample.header().class())))
}

pub(super) fn build_type(
    cx: &mut Context,
    wanted: Option<(ObjectKind, u16)>,
    first: RootMark,
    count: usize,
) -> Answer {
    match wanted {
        Some((kind, number)) => build(cx, kind, number, first, count),
        None => build_like(cx, Value::NIL, first, count),
    }
}

pub(super) fn concatenate(cx: &mut Context, args: Args<'_>) -> Answer {
    let wanted = result_type(cx, args[0])?;
    if let Some((kind, number)) = wanted
        && let Some(slices) = slices_of(cx, &args[1..], kind)?
    {
        return joined(cx, kind, number, &slices);
    }
    let first = cx.mark();
    for sequence in &args[1..] {
        items(cx, *sequence)?;
    }
    let count = cx.above(first);
    build_type(cx, wanted, first, count)
}

/// Returns the elements of vectors, if all are of one kind.
fn slices_of(
    cx: &mut Context,
    vectors: &[Value],
    kind: ObjectKind,
) -> Result<Option<Vec<VectorSlice>>, Exit> {
    let mut slices = Vec::new();
    for vector in vectors {
        if vector.is_list() {
            return Ok(None);
        }
        let vector = in_heap(cx, *vector)?;
        let slice = VectorSlice::of(cx, vector)?;
        if slice.kind() != kind {
            return Ok(None);
        }
        // An array may get another vector during the allocation.
        cx.push(slice.vector)?;
        slices.push(slice);
    }
    Ok(Some(slices))
}

/// Copies the elements of vectors of one kind into a new vector.
pub(crate) fn joined(cx: &mut Context, kind: ObjectKind, number: u16, slices: &[VectorSlice]) -> Answer {
    let count = slices.iter().map(|slice| slice.range.len()).sum();
    let vector = cx.new_vector_of_kind(kind, count)?;
    vector.set(0, Header::new(kind, number, count).word());
    let mut at = 0;
    for slice in slices {
        let end = at + slice.range.len();
        slice.copy_to(&VectorSlice { vector, range: at..end });
        at = end;
    }
    Ok(vector)
}

pub(super) fn coerce(cx: &mut Context, args: Args<'_>) -> Answer {
    if args[1].is_symbol_object() {
        match cx.show_name(args[1]).as_str() {
            "float" | "short-float" | "single-float" | "double-float" => {
                let number = args.float(cx, 0)?;
                return cx.float(number);
            }
            "integer" | "fixnum" => {
                let truncate = cx.installed_function("TRUNCATE")?;
                return cx.apply(truncate, &[args[0]]);
            }
            "character" => return Ok(args[0]),
            _ => {}
        }
    }
    if args[0].is_symbol() && !args[0].is_nil() && args[1] == cx.world.class_object(class::STRING) {
        return Ok(cx.world.symbol_object(args[0]).get(crate::value::symbol::NAME));
    }
    let wanted = result_type(cx, args[1])?;
    let same = match wanted {
        None => args[0].is_list(),
        Some((_, number)) => args[0].is_object() && args[0].header().class() == number,
    };
    if same {
        return Ok(args[0]);
    }
    let first = cx.mark();
    let count = items(cx, args[0])?;
    build_type(cx, wanted, first, count)
}
