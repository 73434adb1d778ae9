//! Implements `sys:peek` and `sys:poke` on the bytes of strings, and `unix:uread`, `unix:write` and `unix:lseek`.
//!
//! Without a string, EusLisp's `peek` and `poke` access any address of the process. These refuse it.

use super::stream::{flush, open_file};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use std::io::{Read as _, Seek as _, SeekFrom};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SYSTEM:PEEK", 2, 3, peek),
    builtin("SYSTEM:POKE", 3, 4, poke),
    builtin("SYSTEM:RECLAIM", 1, 1, |_, _| Ok(Value::fixnum(0))),
    builtin("SYSTEM:RECLAIM-TREE", 1, 1, |_, _| Ok(Value::fixnum(0))),
    builtin("UNIX:UREAD", 1, 3, uread),
    builtin("UNIX:WRITE", 2, 3, write),
    builtin("UNIX:LSEEK", 2, 3, lseek),
];

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
        "INTEGER" => Stored::Signed(4),
        "LONG" => Stored::Signed(8),
        "FLOAT" => Stored::Float,
        "DOUBLE" => Stored::Double,
        _ => return cx.type_error(":char, :byte, :short, :integer, :long, :float or :double", kind),
    })
}

/// Returns the string and the range of bytes that `(string offset type)` denotes.
fn place(cx: &mut Context, args: Args<'_>) -> Result<(Value, std::ops::Range<usize>, Stored), Exit> {
    if args.len() != 3 {
        return cx.error(ErrorClass::Type, "only the bytes of a string can be read or written".to_owned());
    }
    let (string, offset) = (*args.string(cx, 0)?, args.size(cx, 1)?);
    let stored = stored(cx, args[2])?;
    let end = offset.saturating_add(stored.bytes());
    if end > string.length() {
        return cx.range_error(args[1], string.length());
    }
    Ok((string, offset..end, stored))
}

fn peek(cx: &mut Context, args: Args<'_>) -> Answer {
    let (string, range, stored) = place(cx, args)?;
    let mut word = [0; 8];
    word[..range.len()].copy_from_slice(&string.bytes()[range]);
    let unsigned = u64::from_le_bytes(word);
    match stored {
        Stored::Unsigned(_) => Ok(Value::fixnum(unsigned.cast_signed())),
        Stored::Signed(bytes) => {
            let unused = 64 - 8 * bytes as u32;
            cx.integer((unsigned.cast_signed() << unused >> unused).into())
        }
        Stored::Float => cx.float(f64::from(f32::from_bits(unsigned as u32))),
        Stored::Double => cx.float(f64::from_bits(unsigned)),
    }
}

/// Implements `(sys:poke value string offset type)`.
fn poke(cx: &mut Context, args: Args<'_>) -> Answer {
    let (string, range, stored) = place(cx, args.from(1))?;
    let word = match stored {
        Stored::Float => u64::from((args.float(cx, 0)? as f32).to_bits()),
        Stored::Double => args.float(cx, 0)?.to_bits(),
        _ => args.fixnum(cx, 0)?.cast_unsigned(),
    };
    let length = range.len();
    string.bytes_mut()[range].copy_from_slice(&word.to_le_bytes()[..length]);
    Ok(args[0])
}

/// Reads at most `size` bytes of a stream into a string; returns their number.
fn uread(cx: &mut Context, args: Args<'_>) -> Answer {
    let file = open_file(cx, args[0])?;
    let buffer = if args.or_nil(1).is(ObjectKind::String) { Some(args[1]) } else { None };
    let most = buffer.map_or(0, Value::length);
    let size = if args.len() > 2 { args.size(cx, 2)?.min(most) } else { most };
    let mut bytes = vec![0; size];
    let read = cx.blocked(|| match &mut crate::threads::lock(&file).reader {
        Some(reader) => reader.read(&mut bytes),
        None => Err(std::io::Error::other("it is open for output")),
    });
    let count = cx.io(read, "stream")?;
    if let Some(buffer) = buffer {
        buffer.bytes_mut()[..count].copy_from_slice(&bytes[..count]);
    }
    Ok(Value::fixnum(count as i64))
}

/// Writes the first `size` bytes of a string, all by default, at once.
fn write(cx: &mut Context, args: Args<'_>) -> Answer {
    let text = *args.string(cx, 1)?;
    let size = if args.len() > 2 { args.size(cx, 2)?.min(text.length()) } else { text.length() };
    let bytes = text.bytes()[..size].to_vec();
    let names = cx.world.names;
    let stream = match args[0].as_fixnum() {
        Some(1) => cx.global_value(names.standard_output),
        Some(2) => cx.global_value(names.error_output),
        _ => args[0],
    };
    cx.write_bytes(stream, &bytes)?;
    flush(cx, stream)?;
    Ok(Value::fixnum(size as i64))
}

/// Moves a file stream to a position counted from the start (0), from here (1) or from the end (2); returns the new one.
fn lseek(cx: &mut Context, args: Args<'_>) -> Answer {
    let file = open_file(cx, args[0])?;
    let offset = args.fixnum(cx, 1)?;
    let target = match args.or_nil(2).as_fixnum().unwrap_or(0) {
        0 => SeekFrom::Start(offset.max(0).cast_unsigned()),
        1 => SeekFrom::Current(offset),
        _ => SeekFrom::End(offset),
    };
    let moved = cx.blocked(|| {
        let file = &mut *crate::threads::lock(&file);
        file.unread = None;
        match (&mut file.reader, &mut file.writer) {
            (Some(reader), _) => reader.seek(target),
            (None, Some(writer)) => writer.seek(target),
            (None, None) => Err(std::io::Error::other("it is closed")),
        }
    });
    Ok(Value::fixnum(cx.io(moved, "stream")?.cast_signed()))
}
