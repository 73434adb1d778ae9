//! Implements streams on message queues: a message holds what was written until the stream was flushed or its buffer was
//! full, and is read as bytes. An empty message is the end of input.

use super::slots::{FILE, file_stream};
use crate::builtin::Args;
use crate::builtins::unix::{patiently, queue};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::threads::lock;
use crate::value::Value;
use crate::world::{Native, QueueStream};
use std::sync::{Arc, Mutex};

/// Size in bytes of a stream's buffer unless the program gives one.
const BUFFER_SIZE: usize = 128;
/// Largest size in bytes of the buffer with which a stream first tries to receive a message. A longer message gets a
/// larger buffer.
const MOST_AT_FIRST: usize = 64 << 10;
/// Permissions of a queue that a stream makes.
const MODE: i32 = 0o666;

/// Implements `(make-msgq-input-stream key [size])` and, with `direction` `:output`, `make-msgq-output-stream`.
pub(super) fn make(cx: &mut Context, args: Args<'_>, direction: Value) -> Answer {
    let Some(key) = args[0].as_fixnum().and_then(|key| i32::try_from(key).ok()) else {
        return cx.type_error("key of a message queue", args[0]);
    };
    let size = if args.or_nil(1).is_nil() { BUFFER_SIZE } else { args.size(cx, 1)?.max(1) };
    let number = cx.io(queue::open(key, MODE), "message queue")?;
    let held =
        QueueStream { number, size, text: Vec::new(), read: 0, writes: direction == cx.world.names.output };
    let stream = file_stream(cx, Value::NIL, direction)?;
    stream.set_slot(FILE, cx.world.tables.hold(Native::Queue(Arc::new(Mutex::new(held)))));
    cx.finalize_later(stream);
    Ok(stream)
}

/// Returns the next byte of the messages, or none at the end of input. Waits for a message.
pub(super) fn byte(cx: &mut Context, stream: &Mutex<QueueStream>, take: bool) -> Result<Option<u8>, Exit> {
    let (number, mut room) = {
        let mut held = lock(stream);
        if held.writes {
            return cx.io(Err(std::io::Error::other("it is open for output")), "stream");
        }
        if let Some(byte) = held.text.get(held.read).copied() {
            held.read += usize::from(take);
            return Ok(Some(byte));
        }
        (held.number, held.size.min(MOST_AT_FIRST))
    };
    let received = patiently(cx, true, || {
        loop {
            match queue::receive(number, room, 0, 0) {
                // The message is longer than the buffer.
                Err(cause) if cause.raw_os_error() == Some(libc::E2BIG) && room < 1 << 30 => room *= 2,
                result => return result,
            }
        }
    })?;
    let (_, text) = cx.io(received, "message queue")?;
    let first = text.first().copied();
    let mut held = lock(stream);
    // Another thread may have received a message of its own in the meantime: its rest precedes this one.
    let read = held.read.min(held.text.len());
    let rest = held.text.split_off(read);
    held.read = if rest.is_empty() { usize::from(take && first.is_some()) } else { 0 };
    held.text = [rest, text].concat();
    Ok(first)
}

/// Writes bytes, and sends messages of the buffer's size.
pub(super) fn write(cx: &mut Context, stream: &Mutex<QueueStream>, bytes: &[u8]) -> Result<(), Exit> {
    let (number, full) = {
        let mut held = lock(stream);
        if !held.writes {
            return cx.io(Err(std::io::Error::other("it is open for input")), "stream");
        }
        held.text.extend_from_slice(bytes);
        let whole = held.text.len() / held.size * held.size;
        let rest = held.text.split_off(whole);
        let full = std::mem::replace(&mut held.text, rest);
        (held.number, full.chunks(held.size).map(<[u8]>::to_vec).collect::<Vec<_>>())
    };
    full.iter().try_for_each(|text| send(cx, number, text))
}

/// Sends what was written.
pub(super) fn flush(cx: &mut Context, stream: &Mutex<QueueStream>) -> Result<(), Exit> {
    let (number, text) = {
        let mut held = lock(stream);
        if !held.writes || held.text.is_empty() {
            return Ok(());
        }
        (held.number, std::mem::take(&mut held.text))
    };
    send(cx, number, &text)
}

fn send(cx: &mut Context, number: i32, text: &[u8]) -> Result<(), Exit> {
    let kind = i64::from(std::process::id());
    let sent = patiently(cx, true, || queue::send(number, kind, text, 0))?;
    cx.io(sent, "message queue")
}

/// Returns whether a read returns at once.
pub(super) fn is_ready(stream: &Mutex<QueueStream>) -> bool {
    let held = lock(stream);
    held.read < held.text.len() || queue::has_message(held.number)
}
