//! Implements `unix:uread`, `unix:write` and `unix:lseek`, which read and write bytes of strings.

use super::stream::{flush, open_file};
use super::unix::find_descriptor;
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use crate::world::OpenFile;
use std::io::{Read as _, Seek as _, SeekFrom};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("SYSTEM:RECLAIM", 1, 1, |_, _| Ok(Value::fixnum(0))),
    builtin("SYSTEM:RECLAIM-TREE", 1, 1, |_, _| Ok(Value::fixnum(0))),
    builtin("UNIX:UREAD", 1, 3, uread),
    builtin("UNIX:WRITE", 2, 3, write),
    builtin("UNIX:LSEEK", 2, 3, lseek),
];

/// Reads at most `size` bytes of a stream into a string; returns their number.
fn uread(cx: &mut Context, args: Args<'_>) -> Answer {
    let descriptor = find_descriptor(cx, args[0]);
    let file = if descriptor.is_none() { Some(open_file(cx, args[0])?) } else { None };
    let buffer = if args.or_nil(1).is(ObjectKind::String) { Some(args[1]) } else { None };
    let most = buffer.map_or(0, Value::length);
    let size = if args.len() > 2 { args.size(cx, 2)?.min(most) } else { most };
    let mut bytes = vec![0; size];
    let read = cx.blocked(|| match (descriptor, file) {
        (Some(descriptor), _) => Ok(rustix::io::read(&descriptor, &mut bytes)?),
        (None, Some(file)) => read(&mut crate::threads::lock(&file), &mut bytes),
        (None, None) => Ok(0),
    });
    let count = cx.io(read, "stream")?;
    if let Some(buffer) = buffer {
        buffer.bytes_mut()[..count].copy_from_slice(&bytes[..count]);
    }
    Ok(Value::fixnum(count as i64))
}

/// Reads as much as one call of C would: from a file all of `bytes` unless it ends before, and from a pipe or socket the
/// bytes that it holds now.
fn read(file: &mut OpenFile, bytes: &mut [u8]) -> std::io::Result<usize> {
    let Some(reader) = &mut file.reader else {
        return Err(std::io::Error::other("it is open for output"));
    };
    let whole = reader.get_ref().metadata()?.is_file();
    let mut count = 0;
    if let (Some(first), Some(byte)) = (bytes.first_mut(), file.unread) {
        (*first, file.unread, count) = (byte, None, 1);
    }
    while count < bytes.len() && (count == 0 || whole || !reader.buffer().is_empty()) {
        let more = reader.read(&mut bytes[count..])?;
        if more == 0 {
            break;
        }
        count += more;
    }
    Ok(count)
}

/// Writes the first `size` bytes of a string, all by default, at once.
fn write(cx: &mut Context, args: Args<'_>) -> Answer {
    let text = *args.string(cx, 1)?;
    let size = if args.len() > 2 { args.size(cx, 2)?.min(text.length()) } else { text.length() };
    let bytes = text.bytes()[..size].to_vec();
    if let Some(descriptor) = find_descriptor(cx, args[0]) {
        let written = cx.blocked(|| rustix::io::write(&descriptor, &bytes));
        return Ok(Value::fixnum(cx.io(written.map_err(Into::into), "descriptor")? as i64));
    }
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
