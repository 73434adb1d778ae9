//! Reads and writes memory at addresses that functions of C return, and strings of C.
//!
//! The kernel copies the bytes, so that a wrong address is an error and not the end of the process.

use crate::builtin::Args;
use crate::context::{Answer, Context};
use crate::error::{ErrorClass, Exit};
use crate::value::{ObjectKind, Value};
use crate::world::class;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;

/// Indices of the slots of a foreign string.
mod slot {
    pub(super) const ADDRESS: usize = 0;
    pub(super) const SIZE: usize = 1;
}

/// The memory of this process as a file.
const MEMORY: &str = "/proc/self/mem";
/// A read of a string of C ends at multiples of this, as the next page may not exist.
const PAGE: u64 = 4096;

/// Reads the bytes at an address.
pub(super) fn read(cx: &mut Context, address: u64, into: &mut [u8]) -> Result<(), Exit> {
    let done = File::open(MEMORY).and_then(|memory| memory.read_exact_at(into, address));
    readable(cx, done, address)
}

/// Writes bytes at an address.
pub(super) fn write(cx: &mut Context, address: u64, bytes: &[u8]) -> Result<(), Exit> {
    let done =
        OpenOptions::new().write(true).open(MEMORY).and_then(|memory| memory.write_all_at(bytes, address));
    readable(cx, done, address)
}

fn readable(cx: &mut Context, done: std::io::Result<()>, address: u64) -> Result<(), Exit> {
    match done {
        Ok(()) => Ok(()),
        Err(cause) => cx.error(ErrorClass::Range, format!("no memory at address {address:#x}: {cause}")),
    }
}

/// Returns the text at an address up to its zero byte.
pub(super) fn c_string(cx: &mut Context, address: u64) -> Result<Vec<u8>, Exit> {
    let mut text = Vec::new();
    loop {
        let at = address.wrapping_add(text.len() as u64);
        let mut part = vec![0; (PAGE - at % PAGE) as usize];
        read(cx, at, &mut part)?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&part[..end]);
                return Ok(text);
            }
            None => text.extend_from_slice(&part),
        }
    }
}

/// Returns whether a value is a string that lies outside of the heap.
pub(crate) fn is_foreign_string(value: Value) -> bool {
    value.is(ObjectKind::Instance) && value.header().class() == class::FOREIGN_STRING
}

/// Returns the address of a foreign string.
pub(super) fn address_of(value: Value) -> u64 {
    value.slot(slot::ADDRESS).as_fixnum().unwrap_or(0).cast_unsigned()
}

/// Returns the number of bytes of a foreign string.
pub(crate) fn foreign_length(value: Value) -> usize {
    value.slot(slot::SIZE).as_fixnum().and_then(|size| usize::try_from(size).ok()).unwrap_or(0)
}

/// Returns the bytes of a foreign string.
pub(crate) fn foreign_bytes(cx: &mut Context, value: Value) -> Result<Vec<u8>, Exit> {
    bytes_at(cx, address_of(value), foreign_length(value))
}

/// Returns an element of a foreign string.
pub(crate) fn foreign_byte(cx: &mut Context, value: Value, index: usize) -> Result<u8, Exit> {
    let mut byte = [0];
    let address = element_address(cx, value, index)?;
    read(cx, address, &mut byte)?;
    Ok(byte[0])
}

/// Writes bytes to a foreign string, from an element on.
pub(crate) fn set_foreign_bytes(
    cx: &mut Context,
    value: Value,
    index: usize,
    bytes: &[u8],
) -> Result<(), Exit> {
    let Some(last) = (index + bytes.len()).checked_sub(1) else { return Ok(()) };
    element_address(cx, value, last)?;
    write(cx, address_of(value).wrapping_add(index as u64), bytes)
}

/// Writes a character to a foreign string.
pub(crate) fn set_foreign_element(
    cx: &mut Context,
    string: Value,
    index: usize,
    character: Value,
) -> Result<(), Exit> {
    match character.as_fixnum().map(u8::try_from) {
        Some(Ok(byte)) => set_foreign_bytes(cx, string, index, &[byte]),
        _ => cx.type_error("character", character),
    }
}

/// Returns the address of an element of a foreign string.
fn element_address(cx: &mut Context, value: Value, index: usize) -> Result<u64, Exit> {
    let length = foreign_length(value);
    if index >= length {
        return cx.range_error(Value::fixnum(index as i64), length);
    }
    Ok(address_of(value).wrapping_add(index as u64))
}

/// Returns the bytes at an address, read in parts: a size that is too large meets missing memory first.
pub(super) fn bytes_at(cx: &mut Context, address: u64, size: usize) -> Result<Vec<u8>, Exit> {
    /// Bytes of a part.
    const PART: usize = 1 << 20;
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let mut part = vec![0; PART.min(size - bytes.len())];
        read(cx, address.wrapping_add(bytes.len() as u64), &mut part)?;
        bytes.append(&mut part);
    }
    Ok(bytes)
}

/// Returns a foreign string of `size` bytes at an address.
pub(super) fn foreign_string(cx: &mut Context, address: u64, size: usize) -> Answer {
    let class = cx.world.class_object(class::FOREIGN_STRING);
    let string = cx.new_instance(class)?;
    string.set_slot(slot::ADDRESS, Value::fixnum(address.cast_signed()));
    string.set_slot(slot::SIZE, Value::fixnum(size as i64));
    Ok(string)
}

/// Returns a copy of a foreign string.
pub(super) fn text(cx: &mut Context, args: Args<'_>) -> Answer {
    if !is_foreign_string(args[0]) {
        return cx.type_error("foreign string", args[0]);
    }
    let bytes = foreign_bytes(cx, args[0])?;
    cx.string_from(&bytes)
}
