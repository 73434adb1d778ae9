//! Implements the functions on message queues of System V.

use super::outcome::{int_or, refused};
use super::queue;
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::{ObjectKind, Value};
use std::io::Error;
use std::time::Duration;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:MSGGET", 1, 2, get),
    builtin("UNIX:MSGSND", 2, 5, send),
    builtin("UNIX:MSGRCV", 2, 4, receive),
    builtin("UNIX:MSGCTL", 2, 3, control),
];

/// Time between two looks at Ctrl-C while a call waits.
const PAUSE: Duration = Duration::from_millis(10);

/// Implements `(unix:msgget key [mode])`: returns the number of a queue, which is made with the permissions in `mode`.
fn get(cx: &mut Context, args: Args<'_>) -> Answer {
    let (key, mode) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0o666)?);
    Ok(queue::open(key, mode).map_or_else(|cause| refused(&cause), |queue| Value::fixnum(i64::from(queue))))
}

/// Repeats a call that does not wait until it has done something, and looks at Ctrl-C in between.
pub(crate) fn patiently<T>(
    cx: &mut Context,
    waits: bool,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<Result<T, Error>, Exit> {
    loop {
        match call() {
            Err(cause) if waits && queue::would_wait(&cause) => {}
            result => return Ok(result),
        }
        cx.blocked(|| std::thread::sleep(PAUSE));
        cx.poll()?;
    }
}

/// Implements `(unix:msgsnd queue text [length type flags])`: sends a message, whose type is the process's number unless
/// given; returns 0. It waits for room unless `flags` say no.
fn send(cx: &mut Context, args: Args<'_>) -> Answer {
    let number = int_or(cx, args, 0, 0)?;
    let mut text = crate::builtins::string::bytes(cx, args[1])?;
    if args.given(2).is_some_and(|length| !length.is_nil()) {
        text.truncate(args.size(cx, 2)?);
    }
    let kind = match args.given(3) {
        Some(kind) if !kind.is_nil() => args.fixnum(cx, 3)?,
        _ => i64::from(std::process::id()),
    };
    let flags = int_or(cx, args, 4, 0)?;
    let sent = patiently(cx, flags & libc::IPC_NOWAIT == 0, || queue::send(number, kind, &text, flags))?;
    Ok(sent.map_or_else(|cause| refused(&cause), |()| Value::fixnum(0)))
}

/// Implements `(unix:msgrcv queue text [type flags])`: receives the first message, or the first of a type, into a string;
/// returns `(type length)`. It waits for one unless `flags` say no.
fn receive(cx: &mut Context, args: Args<'_>) -> Answer {
    let number = int_or(cx, args, 0, 0)?;
    let text = *args.string(cx, 1)?;
    let kind = if args.or_nil(2).is_nil() { 0 } else { args.fixnum(cx, 2)? };
    let flags = int_or(cx, args, 3, 0)?;
    let room = text.length();
    let received =
        patiently(cx, flags & libc::IPC_NOWAIT == 0, || queue::receive(number, room, kind, flags))?;
    let (kind, message) = match received {
        Ok(received) => received,
        Err(cause) => return Ok(refused(&cause)),
    };
    debug_assert!(text.is(ObjectKind::String));
    text.bytes_mut()[..message.len()].copy_from_slice(&message);
    cx.list(&[Value::fixnum(kind), Value::fixnum(message.len() as i64)])
}

/// Implements `(unix:msgctl queue 0)`: removes a queue. Other commands are refused.
fn control(cx: &mut Context, args: Args<'_>) -> Answer {
    let (number, command) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    if command != libc::IPC_RMID {
        return cx.type_error("0, which removes the queue", args[1]);
    }
    Ok(queue::remove(number).map_or_else(|cause| refused(&cause), |()| Value::fixnum(0)))
}
