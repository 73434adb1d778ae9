//! Implements `sys:peek` and `sys:poke`: numbers in the bytes of a vector, or at an address.

use super::address;
use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};

/// How a number is stored in bytes.
#[derive(Clone, Copy)]
enum Stored {
    Unsigned(usize),
    Signed(usize),
    Float,
    Double,
}

impl Stored {
    fn bytes(self) -> usize {
        match self {
            Stored::Unsigned(bytes) | Stored::Signed(bytes) => bytes,
            Stored::Float => 4,
            Stored::Double => 8,
        }
    }
}

fn stored(cx: &mut Context, kind: Value) -> Result<Stored, Exit> {
    Ok(match cx.name_of(kind)?.as_str() {
        "CHAR" | "BYTE" => Stored::Unsigned(1),
        "SHORT" => Stored::Signed(2),
        "INTEGER" | "INT" => Stored::Signed(4),
        "LONG" | "POINTER" => Stored::Signed(8),
        "FLOAT" | "FLOAT32" => Stored::Float,
        "DOUBLE" => Stored::Double,
        _ => return cx.type_error(":char, :byte, :short, :integer, :long, :float or :double", kind),
    })
}

/// Where a number is stored.
enum Place {
    /// Bytes of a string, from an offset on.
    Text(Value, usize),
    /// Word of an integer-vector or float-vector.
    Word(Value, usize),
    Address(u64),
}

/// Returns the place that `(vector offset type)` or `(address type)` denotes.
fn place(cx: &mut Context, args: Args<'_>) -> Result<(Place, Stored), Exit> {
    let stored = stored(cx, args[args.len() - 1])?;
    if args.len() == 2 {
        let address = cx.integer_of_64_bits(args[0])?.cast_unsigned();
        return Ok((Place::Address(address), stored));
    }
    let (vector, offset) = (args[0], args.size(cx, 1)?);
    let end = offset.saturating_add(stored.bytes());
    if address::is_foreign_string(vector) {
        let size = address::foreign_length(vector);
        if end > size {
            return cx.range_error(args[1], size);
        }
        return Ok((Place::Address(address::address_of(vector).wrapping_add(offset as u64)), stored));
    }
    let words = vector.is(ObjectKind::FloatVector) || vector.is(ObjectKind::IntegerVector);
    let size = if words { 8 * vector.length() } else { args.string(cx, 0)?.length() };
    if end > size {
        return cx.range_error(args[1], size);
    }
    if !words {
        return Ok((Place::Text(vector, offset), stored));
    }
    if offset / 8 != (end - 1) / 8 {
        return cx.error(ErrorClass::Range, "a number lies in two elements of the vector".to_owned());
    }
    Ok((Place::Word(vector, offset), stored))
}

/// Returns the bytes of a word of a vector.
fn word_of(vector: Value, index: usize) -> [u8; 8] {
    if vector.is(ObjectKind::FloatVector) {
        vector.floats()[index].to_le_bytes()
    } else {
        vector.integers()[index].to_le_bytes()
    }
}

/// Implements `(sys:peek [vector] offset type)`.
pub(super) fn peek(cx: &mut Context, args: Args<'_>) -> Answer {
    let (place, stored) = place(cx, args)?;
    let (mut word, size) = ([0; 8], stored.bytes());
    match place {
        Place::Text(string, offset) => word[..size].copy_from_slice(&string.bytes()[offset..offset + size]),
        Place::Word(vector, offset) => {
            word[..size].copy_from_slice(&word_of(vector, offset / 8)[offset % 8..offset % 8 + size]);
        }
        Place::Address(address) => address::read(cx, address, &mut word[..size])?,
    }
    let unsigned = u64::from_le_bytes(word);
    match stored {
        Stored::Unsigned(_) => Ok(Value::fixnum(unsigned.cast_signed())),
        Stored::Signed(bytes) => {
            let unused = 64 - 8 * bytes as u32;
            cx.integer_from(unsigned.cast_signed() << unused >> unused)
        }
        Stored::Float => cx.float(f64::from(f32::from_bits(unsigned as u32))),
        Stored::Double => cx.float(f64::from_bits(unsigned)),
    }
}

/// Implements `(sys:poke value [vector] offset type)`.
pub(super) fn poke(cx: &mut Context, args: Args<'_>) -> Answer {
    let (place, stored) = place(cx, args.from(1))?;
    let word = match stored {
        Stored::Float => u64::from((args.float(cx, 0)? as f32).to_bits()),
        Stored::Double => args.float(cx, 0)?.to_bits(),
        _ => cx.integer_of_64_bits(args[0])?.cast_unsigned(),
    };
    let (bytes, size) = (word.to_le_bytes(), stored.bytes());
    match place {
        Place::Text(string, offset) => {
            string.bytes_mut()[offset..offset + size].copy_from_slice(&bytes[..size])
        }
        Place::Word(vector, offset) => {
            let mut whole = word_of(vector, offset / 8);
            whole[offset % 8..offset % 8 + size].copy_from_slice(&bytes[..size]);
            if vector.is(ObjectKind::FloatVector) {
                vector.floats_mut()[offset / 8] = f64::from_le_bytes(whole);
            } else {
                vector.integers_mut()[offset / 8] = i64::from_le_bytes(whole);
            }
        }
        Place::Address(address) => address::write(cx, address, &bytes[..size])?,
    }
    Ok(args[0])
}
