//! Creates vectors and arrays.

use super::elements::set_element;
use super::shape::{AXES, Shape, is_vector, slot, volume};
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value, symbol};
use crate::world::class;

pub(super) fn float_vector(cx: &mut Context, args: Args<'_>) -> Answer {
    let vector = cx.new_floats(args.len())?;
    for index in 0..args.len() {
        vector.floats_mut()[index] = args.float(cx, index)?;
    }
    Ok(vector)
}

pub(super) fn integer_vector(cx: &mut Context, args: Args<'_>) -> Answer {
    let vector = cx.new_integers(args.len())?;
    for index in 0..args.len() {
        vector.integers_mut()[index] = cx.integer_of_64_bits(args[index])?;
    }
    Ok(vector)
}

impl Context {
    pub(crate) fn floats_from_list(&mut self, list: Value) -> Answer {
        let count = crate::builtins::sequence::length(self, list)?;
        let vector = self.new_floats(count)?;
        self.push(vector)?;
        for (index, item) in list.iter().take(count).enumerate() {
            vector.floats_mut()[index] = match named_float(item) {
                Some(number) => number,
                None => self.number(item)?,
            };
        }
        Ok(vector)
    }

    pub(crate) fn integers_from_list(&mut self, list: Value) -> Answer {
        let count = crate::builtins::sequence::length(self, list)?;
        let vector = self.new_integers(count)?;
        self.push(vector)?;
        for (index, item) in list.iter().take(count).enumerate() {
            vector.integers_mut()[index] = self.integer_of_64_bits(item)?;
        }
        Ok(vector)
    }

    /// Allocates an array over a vector that the caller keeps alive.
    pub(crate) fn new_array(&mut self, entity: Value, sizes: &[usize]) -> Answer {
        let mark = self.mark();
        self.push(entity)?;
        let array = self.new_slots(ObjectKind::Array, class::ARRAY, slot::FIRST_AXIS + AXES)?;
        self.release(mark);
        array.set_slot(slot::ENTITY, entity);
        array.set_slot(slot::RANK, Value::fixnum(sizes.len() as i64));
        array.set_slot(slot::OFFSET, Value::fixnum(0));
        for (axis, size) in sizes.iter().enumerate() {
            array.set_slot(slot::FIRST_AXIS + axis, Value::fixnum(*size as i64));
        }
        Ok(array)
    }

    /// Allocates an array of rank `rank` from nested sequences, which the caller keeps alive.
    pub(crate) fn array_from_contents(&mut self, kind: ObjectKind, rank: usize, contents: Value) -> Answer {
        let mut sizes = Vec::new();
        let mut at = contents;
        for axis in 0..rank {
            let size = crate::builtins::sequence::length(self, at)?;
            sizes.push(size);
            if size > 0 && axis + 1 < rank {
                at = crate::builtins::sequence::elt(self, at, 0)?;
            } else if size == 0 {
                sizes.resize(rank, 0);
                break;
            }
        }
        self.array_of(kind, &sizes, contents)
    }

    /// Allocates an array with the elements of nested sequences, which the caller keeps alive. As in EusLisp, a row may
    /// have fewer elements than the array.
    fn array_of(&mut self, kind: ObjectKind, sizes: &[usize], contents: Value) -> Answer {
        let entity = self.new_vector_of_kind(kind, volume(sizes))?;
        self.push(entity)?;
        let mut index = 0;
        self.fill_axis(entity, sizes, contents, &mut index)?;
        self.new_array(entity, sizes)
    }

    fn fill_axis(
        &mut self,
        entity: Value,
        sizes: &[usize],
        contents: Value,
        index: &mut usize,
    ) -> Result<(), Exit> {
        let Some((size, inner)) = sizes.split_first() else {
            let element = match named_float(contents) {
                Some(number) if entity.is(ObjectKind::FloatVector) => self.float(number)?,
                _ => contents,
            };
            set_element(self, entity, *index, element)?;
            *index += 1;
            return Ok(());
        };
        let mark = self.mark();
        let given = crate::builtins::sequence::items(self, contents)?;
        if given > *size {
            let message = format!("a row of {given} elements for {size} places");
            return self.error_about(ErrorClass::Range, message, contents);
        }
        for at in 0..given {
            self.fill_axis(entity, inner, self.root(mark, at), index)?;
        }
        *index += (size - given) * volume(inner);
        self.release(mark);
        Ok(())
    }
}

fn element_kind(cx: &mut Context, wanted: Value) -> Result<ObjectKind, Exit> {
    if wanted.is_nil() || wanted == cx.world.names.t {
        return Ok(ObjectKind::Vector);
    }
    if cx.is_class(wanted) {
        let sample = cx.instantiate(wanted, Some(0))?;
        return Ok(if is_vector(sample) { sample.header().kind() } else { ObjectKind::Vector });
    }
    let wanted = if wanted.is_cons() { wanted.get(0) } else { wanted };
    if !wanted.is_symbol_object() {
        return cx.type_error("element type", wanted);
    }
    Ok(match cx.show_name(wanted).as_str() {
        "float" | "float-vector" | "double-float" | "single-float" => ObjectKind::FloatVector,
        "integer" | "fixnum" | "integer-vector" => ObjectKind::IntegerVector,
        "bit" | "bit-vector" => ObjectKind::BitVector,
        "character" | "string" | "string-char" | "byte" => ObjectKind::String,
        _ => ObjectKind::Vector,
    })
}

pub(super) fn make_array(cx: &mut Context, args: Args<'_>) -> Answer {
    let names = cx.world.names;
    let [elements, initial, contents, fill, to, offset, adjustable] = cx
        .keywords(
            args.from(1),
            [
                names.element_type,
                names.initial_element,
                names.initial_contents,
                names.fill_pointer,
                names.displaced_to,
                names.displaced_index_offset,
                names.adjustable,
            ],
        )?
        .map(Value::given_or_nil);
    let mut sizes = Vec::new();
    if args[0].is_cons() {
        for size in args[0].iter() {
            sizes.push(cx.size(size)?);
        }
    } else if !args[0].is_nil() {
        sizes.push(args.size(cx, 0)?);
    }
    if sizes.is_empty() || sizes.len() > AXES {
        return cx.error_about(
            ErrorClass::Range,
            format!("an array of {} axes; 1 to {AXES} are possible", sizes.len()),
            args[0],
        );
    }
    let kind = element_kind(cx, elements)?;
    let total = volume(&sizes);
    if !to.is_nil() {
        let (entity, base) = match Shape::of(to) {
            Some(shape) => (shape.entity, shape.offset),
            None if is_vector(to) => (to, 0),
            None => return cx.type_error("array", to),
        };
        let offset = if offset.is_nil() { 0 } else { cx.size(offset)? };
        if total.saturating_add(base + offset) > entity.length() {
            return cx.range_error(args[0], entity.length());
        }
        let array = cx.new_array(entity, &sizes)?;
        array.set_slot(slot::OFFSET, Value::fixnum((base + offset) as i64));
        return Ok(array);
    }
    if !contents.is_nil() && sizes.len() > 1 {
        return cx.array_of(kind, &sizes, contents);
    }
    let entity = cx.new_vector_of_kind(kind, total)?;
    cx.push(entity)?;
    if !initial.is_nil() {
        for index in 0..total {
            set_element(cx, entity, index, initial)?;
        }
    }
    if !contents.is_nil() {
        let mut index = 0;
        cx.fill_axis(entity, &sizes, contents, &mut index)?;
    }
    if sizes.len() == 1 && fill.is_nil() && adjustable.is_nil() {
        return Ok(entity);
    }
    let array = cx.new_array(entity, &sizes)?;
    if !fill.is_nil() {
        let at = if fill == names.t { sizes[0] } else { cx.size(fill)? };
        array.set_slot(slot::FILL_POINTER, Value::fixnum(at.min(sizes[0]) as i64));
    }
    Ok(array)
}

/// Returns the number that a symbol stands for among the elements of a float-vector: floats print as `inf` and `nan`.
fn named_float(value: Value) -> Option<f64> {
    if !value.is_symbol_object() {
        return None;
    }
    match value.get(symbol::NAME).bytes() {
        b"INF" => Some(f64::INFINITY),
        b"-INF" => Some(f64::NEG_INFINITY),
        b"NAN" | b"-NAN" => Some(f64::NAN),
        _ => None,
    }
}
