//! Numbers the slots of streams and the standard streams, makes and checks streams.

use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use crate::world::class;

/// Slot of a two-way stream that holds its input stream.
pub(super) const INPUT: usize = 1;
/// Slot of a two-way stream that holds its output stream.
pub(super) const OUTPUT: usize = 2;

/// Slot of other streams that holds `:input` or `:output`.
pub(super) const DIRECTION: usize = 1;
/// Slot of a string stream that holds its text.
pub(super) const BUFFER: usize = 2;
/// Slot of other streams that holds the position, or of a file stream the last byte written.
pub(super) const COUNT: usize = 3;
/// Slot of a string stream that holds the end of its text.
pub(super) const TAIL: usize = 4;
/// Slot of a file stream that holds the number of the open file.
pub(super) const FILE: usize = 5;
/// Slot of a broadcast stream that holds the list of streams it writes to.
pub(super) const DESTINATIONS: usize = 5;
/// Slot of a file stream that holds the name of the file.
pub(super) const NAME: usize = 6;

/// Number of the standard input in place of an open file's.
pub(super) const STDIN: i64 = -1;
/// Number of the standard output in place of an open file's.
pub(super) const STDOUT: i64 = -2;
/// Number of the standard error in place of an open file's.
pub(super) const STDERR: i64 = -3;

/// Returns whether a value is a direct instance of a numbered class.
pub(super) fn has_class(value: Value, number: u16) -> bool {
    value.is(ObjectKind::Instance) && value.header().class() == number
}

/// Returns whether a value is a two-way stream, of the class itself or one that a program derived.
pub(super) fn is_two_way(cx: &Context, value: Value) -> bool {
    value.is(ObjectKind::Instance) && cx.derives(cx.world.class_of(value), class::IO_STREAM)
}

/// Signals a type error unless a value is a well-formed string stream.
pub(super) fn string_stream(cx: &mut Context, stream: Value) -> Result<(), Exit> {
    let whole = has_class(stream, class::STRING_STREAM)
        && stream.slot(BUFFER).is(ObjectKind::String)
        && stream
            .slot(COUNT)
            .as_fixnum()
            .is_some_and(|count| (0..=stream.slot(BUFFER).length() as i64).contains(&count));
    if whole { Ok(()) } else { cx.type_error("string stream", stream) }
}

/// Returns a stream of the native object with a number, or of a standard stream.
pub(super) fn file_stream(cx: &mut Context, file: Value, direction: Value) -> Answer {
    let class = cx.world.class_object(class::FILE_STREAM);
    let stream = cx.new_instance(class)?;
    stream.set_slot(DIRECTION, direction);
    stream.set_slot(FILE, file);
    stream.set_slot(COUNT, Value::fixnum(i64::from(b'\n')));
    Ok(stream)
}
