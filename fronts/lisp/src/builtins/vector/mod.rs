//! Accesses elements of vectors and arrays by index.

mod bits;
mod elements;
mod make;
mod shape;

use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::foreign::{foreign_byte, is_foreign_string, set_foreign_element};
use crate::value::{ObjectKind, Value};
pub(crate) use bits::{copy_bits, count_bits, fill_bits, find_bit, reverse_bits, same_bits};
pub(crate) use elements::{bit, element, set_bit, set_element};
use make::{float_vector, integer_vector, make_array};
pub(crate) use shape::{AXES, Shape, is_vector, slot, text_of};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("AREF", 1, 8, aref),
    builtin("ASET", 2, 9, aset),
    builtin("LARGESSE:SET-AREF", 2, 9, aset),
    builtin("SVREF", 2, 2, aref),
    builtin("SVSET", 3, 3, |cx, args| store(cx, args[0], &args[1..2], args[2])),
    builtin("VREF", 2, 2, aref),
    builtin("CHAR", 2, 2, aref),
    builtin("SCHAR", 2, 2, aref),
    builtin("SETCHAR", 3, 3, |cx, args| store(cx, args[0], &args[1..2], args[2])),
    builtin("BIT", 2, 2, aref),
    builtin("SBIT", 2, 2, aref),
    builtin("SETBIT", 3, 3, |cx, args| store(cx, args[0], &args[1..2], args[2])),
    builtin("VECTOR", 0, MANY, |cx, args| cx.vector_from(&args)),
    builtin("FLOAT-VECTOR", 0, MANY, float_vector),
    builtin("INTEGER-VECTOR", 0, MANY, integer_vector),
    builtin("BIT-VECTOR", 0, MANY, |cx, args| {
        let vector = cx.new_bits(args.len())?;
        for (index, value) in args.iter().enumerate() {
            set_element(cx, vector, index, *value)?;
        }
        Ok(vector)
    }),
    builtin("MAKE-ARRAY", 1, MANY, make_array),
    builtin("VECTORP", 1, 1, |cx, args| Ok(cx.truth(is_vector(args[0])))),
    builtin("SIMPLE-VECTOR-P", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::Vector)))),
    builtin("FLOAT-VECTOR-P", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::FloatVector)))),
    builtin("INTEGER-VECTOR-P", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::IntegerVector)))),
    builtin("BIT-VECTOR-P", 1, 1, |cx, args| Ok(cx.truth(args[0].is(ObjectKind::BitVector)))),
    builtin("ARRAYP", 1, 1, |cx, args| Ok(cx.truth(is_vector(args[0]) || args[0].is(ObjectKind::Array)))),
    builtin("ARRAY-DIMENSIONS", 1, 1, |cx, args| {
        let sizes = dimensions(cx, args[0])?;
        let sizes: Vec<Value> = sizes.into_iter().map(|size| Value::fixnum(size as i64)).collect();
        cx.list(&sizes)
    }),
    builtin("ARRAY-DIMENSION", 2, 2, |cx, args| {
        // Nil, where a program has no array, has no dimension.
        if args[0].is_nil() {
            return Ok(Value::NIL);
        }
        let (sizes, axis) = (dimensions(cx, args[0])?, args.size(cx, 1)?);
        match sizes.get(axis) {
            Some(size) => Ok(Value::fixnum(*size as i64)),
            None => cx.range_error(args[1], sizes.len()),
        }
    }),
    builtin("ARRAY-RANK", 1, 1, |cx, args| Ok(Value::fixnum(dimensions(cx, args[0])?.len() as i64))),
    builtin("ARRAY-TOTAL-SIZE", 1, 1, |cx, args| {
        Ok(Value::fixnum(dimensions(cx, args[0])?.into_iter().product::<usize>() as i64))
    }),
    builtin("ARRAY-ENTITY", 1, 1, |_, args| Ok(Shape::of(args[0]).map_or(args[0], |shape| shape.entity))),
    builtin("BIT-AND", 2, 3, |cx, args| bitwise(cx, args, |a, b| a & b)),
    builtin("BIT-IOR", 2, 3, |cx, args| bitwise(cx, args, |a, b| a | b)),
    builtin("BIT-XOR", 2, 3, |cx, args| bitwise(cx, args, |a, b| a ^ b)),
    builtin("BIT-NOT", 1, 2, |cx, args| {
        bitwise(cx, Args::new(&[args[0], args[0], args.or_nil(1)]), |a, _| !a)
    }),
];

/// Returns the vector that holds an element of an array, and the index in it.
fn locate(cx: &mut Context, array: Value, subscripts: &[Value]) -> Result<(Value, usize), Exit> {
    if is_vector(array) {
        if subscripts.len() != 1 {
            return cx.error(ErrorClass::Arguments, format!("{} subscripts of a vector", subscripts.len()));
        }
        let index = cx.size(subscripts[0])?;
        if index >= array.length() {
            return cx.range_error(subscripts[0], array.length());
        }
        return Ok((array, index));
    }
    let Some(shape) = Shape::of(array) else { return cx.type_error("array", array) };
    if subscripts.len() != shape.dimensions.len() {
        let (have, want) = (subscripts.len(), shape.dimensions.len());
        return cx.error(ErrorClass::Arguments, format!("{have} subscripts of an array of {want} axes"));
    }
    let mut index = 0;
    for (subscript, size) in subscripts.iter().zip(&*shape.dimensions) {
        let at = cx.size(*subscript)?;
        if at >= *size {
            return cx.range_error(*subscript, *size);
        }
        index = index * size + at;
    }
    Ok((shape.entity, shape.offset + index))
}

fn aref(cx: &mut Context, args: Args<'_>) -> Answer {
    if is_foreign_string(args[0]) && args.len() == 2 {
        let index = args.size(cx, 1)?;
        return foreign_byte(cx, args[0], index).map(|byte| Value::fixnum(i64::from(byte)));
    }
    let (vector, index) = locate(cx, args[0], &args[1..])?;
    element(cx, vector, index)
}

fn store(cx: &mut Context, array: Value, subscripts: &[Value], value: Value) -> Answer {
    if is_foreign_string(array) && subscripts.len() == 1 {
        let index = cx.size(subscripts[0])?;
        set_foreign_element(cx, array, index, value)?;
        return Ok(value);
    }
    let (vector, index) = locate(cx, array, subscripts)?;
    set_element(cx, vector, index, value)?;
    Ok(value)
}

fn aset(cx: &mut Context, args: Args<'_>) -> Answer {
    let last = args.len() - 1;
    store(cx, args[0], &args[1..last], args[last])
}

fn dimensions(cx: &mut Context, array: Value) -> Result<Vec<usize>, Exit> {
    if is_vector(array) {
        return Ok(vec![array.length()]);
    }
    match Shape::of(array) {
        Some(shape) => Ok(shape.dimensions.to_vec()),
        None => cx.type_error("array", array),
    }
}

fn bitwise(cx: &mut Context, args: Args<'_>, op: fn(u64, u64) -> u64) -> Answer {
    for vector in &args[..2] {
        if !vector.is(ObjectKind::BitVector) || vector.length() != args[0].length() {
            return cx.type_error("bit-vector of the same length", *vector);
        }
    }
    let result = if args.or_nil(2).is_nil() { cx.new_bits(args[0].length())? } else { args[2] };
    if !result.is(ObjectKind::BitVector) || result.length() != args[0].length() {
        return cx.type_error("bit-vector of the same length", result);
    }
    bits::combine_bits(result, args[0], args[1], op);
    Ok(result)
}
