//! Reads the types that `defforeign` and `defun-c-callable` name, and converts values.

use super::address;
use super::bridge::Passed;
use crate::builtin::Args;
use crate::builtins::vector::Shape;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};

/// The type of an argument or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ForeignType {
    /// All 64 bits of an integer or an address.
    Integer,
    /// An integer of 32 bits, with its sign.
    Int,
    Double,
    Single,
    /// An argument is the address of a string, or of the elements of another vector. If a function returns it, the text
    /// up to its zero byte is copied into a new string.
    Text,
    /// A copy of that many bytes at the address.
    Bytes(usize),
    /// A string that stays where it is, of that many bytes or up to its zero byte.
    Foreign(Option<usize>),
}

impl ForeignType {
    pub(super) fn passed(self) -> Passed {
        match self {
            ForeignType::Double => Passed::Double,
            ForeignType::Single => Passed::Single,
            _ => Passed::Word,
        }
    }
}

/// Returns the type that a keyword or a list `(keyword size)` names.
fn named(cx: &mut Context, value: Value) -> Result<Option<ForeignType>, Exit> {
    let (word, size) = if value.is_cons() { (value.car(), value.cadr()) } else { (value, Value::NIL) };
    if !word.is_symbol() {
        return Ok(None);
    }
    let size = if size.is_nil() { None } else { Some(cx.size(size)?) };
    Ok(match cx.name_of(word)?.as_str() {
        "INTEGER" | "LONG" => Some(ForeignType::Integer),
        "INT" => Some(ForeignType::Int),
        "FLOAT" | "DOUBLE" => Some(ForeignType::Double),
        "FLOAT32" => Some(ForeignType::Single),
        "STRING" => Some(size.map_or(ForeignType::Text, ForeignType::Bytes)),
        "FOREIGN-STRING" => Some(ForeignType::Foreign(size)),
        _ => None,
    })
}

/// Returns the type of an argument or result.
pub(super) fn kind(cx: &mut Context, value: Value) -> Result<ForeignType, Exit> {
    match named(cx, value)? {
        Some(kind) => Ok(kind),
        None => cx.type_error(":integer, :int, :float, :double, :float32, :string or :foreign-string", value),
    }
}

/// Returns the types of a list.
pub(super) fn declared(cx: &mut Context, list: Value) -> Result<Vec<ForeignType>, Exit> {
    list.iter().map(|name| kind(cx, name)).collect()
}

/// Implements `(foreign-type-p type)`: signals an error unless the type is known.
pub(super) fn is_type(cx: &mut Context, args: Args<'_>) -> Answer {
    kind(cx, args[0])?;
    Ok(cx.truth(true))
}

/// Returns the type by which an argument without a declared one is passed.
pub(super) fn natural(cx: &Context, value: Value) -> ForeignType {
    if value.is_fixnum() || value.is(ObjectKind::Bignum) {
        ForeignType::Integer
    } else if cx.is_number(value) {
        ForeignType::Double
    } else {
        ForeignType::Text
    }
}

/// Returns the word of an argument.
pub(super) fn word(cx: &mut Context, kind: ForeignType, value: Value) -> Result<u64, Exit> {
    match kind {
        ForeignType::Integer | ForeignType::Int => {
            if !value.is_fixnum() && !value.is(ObjectKind::Bignum) {
                return cx.type_error("integer", value);
            }
            Ok(cx.integer_of_64_bits(value)?.cast_unsigned())
        }
        ForeignType::Double => Ok(cx.number(value)?.to_bits()),
        ForeignType::Single => Ok(u64::from((cx.number(value)? as f32).to_bits())),
        ForeignType::Text | ForeignType::Bytes(_) | ForeignType::Foreign(_) => elements_address(cx, value),
    }
}

/// Returns the address of the first element of a vector, of a foreign string's text, an integer as the address that it
/// is, and 0 for nil.
fn elements_address(cx: &mut Context, value: Value) -> Result<u64, Exit> {
    if value.is_nil() {
        return Ok(0);
    }
    if let Some(address) = value.as_fixnum() {
        return Ok(address.cast_unsigned());
    }
    if address::is_foreign_string(value) {
        return Ok(address::address_of(value));
    }
    let (vector, offset) = match Shape::of(value) {
        Some(shape) => (shape.entity, shape.offset),
        None => (value, 0),
    };
    let first = match vector.kind() {
        Some(ObjectKind::String) => vector.bytes().as_ptr().expose_provenance() + offset,
        Some(ObjectKind::FloatVector) => vector.floats().as_ptr().expose_provenance() + 8 * offset,
        Some(ObjectKind::IntegerVector) => vector.integers().as_ptr().expose_provenance() + 8 * offset,
        Some(ObjectKind::BitVector) if offset == 0 => vector.address() + 8,
        _ => return cx.type_error("string, float-vector, integer-vector or bit-vector", value),
    };
    Ok(first as u64)
}

/// Returns the value of a word that C returned or passed.
pub(super) fn value(cx: &mut Context, kind: ForeignType, word: u64) -> Answer {
    match kind {
        ForeignType::Integer => cx.integer_from(word.cast_signed()),
        ForeignType::Int => Ok(Value::fixnum(i64::from(word as i32))),
        ForeignType::Double => cx.float(f64::from_bits(word)),
        ForeignType::Single => cx.float(f64::from(f32::from_bits(word as u32))),
        _ if word == 0 => Ok(Value::NIL),
        ForeignType::Text => {
            let text = address::c_string(cx, word)?;
            cx.string_from(&text)
        }
        ForeignType::Bytes(size) => {
            let bytes = address::bytes_at(cx, word, size)?;
            cx.string_from(&bytes)
        }
        ForeignType::Foreign(size) => {
            let size = match size {
                Some(size) => size,
                None => address::c_string(cx, word)?.len(),
            };
            address::foreign_string(cx, word, size)
        }
    }
}
