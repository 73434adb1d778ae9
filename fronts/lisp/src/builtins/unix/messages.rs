//! Implements the message queues of System V. The only file that calls them.

use super::outcome::{int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::{ObjectKind, Value};
use std::io::{Error, ErrorKind};
use std::time::Duration;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:MSGGET", 1, 2, get),
    builtin("UNIX:MSGSND", 2, 5, send),
    builtin("UNIX:MSGRCV", 2, 4, receive),
    builtin("UNIX:MSGCTL", 2, 3, control),
];

/// Bytes of the type that precedes the text of a message.
const HEAD: usize = size_of::<libc::c_long>();
/// Time between two looks at Ctrl-C while a call waits.
const PAUSE: Duration = Duration::from_millis(10);

/// Implements `(unix:msgget key [mode])`: returns the number of a queue, which is made with the permissions in `mode`.
fn get(cx: &mut Context, args: Args<'_>) -> Answer {
    let (key, mode) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0o666)?);
    // SAFETY: the call takes two numbers.
    let queue = unsafe { libc::msgget(key, mode | libc::IPC_CREAT) };
    Ok(if queue < 0 { refused(&Error::last_os_error()) } else { Value::fixnum(i64::from(queue)) })
}

/// Repeats a call that does not wait until it has done something, and looks at Ctrl-C in between.
fn patiently(
    cx: &mut Context,
    waits: bool,
    mut call: impl FnMut() -> isize,
) -> Result<Result<usize, Error>, crate::error::Exit> {
    loop {
        if let Ok(count) = usize::try_from(call()) {
            return Ok(Ok(count));
        }
        let cause = Error::last_os_error();
        let full = cause.kind() == ErrorKind::WouldBlock || cause.raw_os_error() == Some(libc::ENOMSG);
        if !full || !waits {
            return Ok(Err(cause));
        }
        cx.blocked(|| std::thread::sleep(PAUSE));
        cx.poll()?;
    }
}

/// Implements `(unix:msgsnd queue text [length type flags])`: sends a message, whose type is the process's number unless
/// given; returns 0. It waits for room unless `flags` say no.
fn send(cx: &mut Context, args: Args<'_>) -> Answer {
    let queue = int_or(cx, args, 0, 0)?;
    let mut text = crate::builtins::string::bytes(cx, args[1])?;
    if args.given(2).is_some_and(|length| !length.is_nil()) {
        text.truncate(args.size(cx, 2)?);
    }
    let kind = match args.given(3) {
        Some(kind) if !kind.is_nil() => args.fixnum(cx, 3)?,
        _ => i64::from(std::process::id()),
    };
    let flags = int_or(cx, args, 4, 0)?;
    let length = text.len();
    let mut message = kind.to_ne_bytes().to_vec();
    message.append(&mut text);
    let sent = patiently(cx, flags & libc::IPC_NOWAIT == 0, || {
        // SAFETY: the message has a type and `length` bytes behind it.
        unsafe { libc::msgsnd(queue, message.as_ptr().cast(), length, flags | libc::IPC_NOWAIT) as isize }
    })?;
    Ok(match sent {
        Ok(_) => Value::fixnum(0),
        Err(cause) => refused(&cause),
    })
}

/// Implements `(unix:msgrcv queue text [type flags])`: receives the first message, or the first of a type, into a string;
/// returns `(type length)`. It waits for one unless `flags` say no.
fn receive(cx: &mut Context, args: Args<'_>) -> Answer {
    let queue = int_or(cx, args, 0, 0)?;
    let text = *args.string(cx, 1)?;
    let kind = if args.or_nil(2).is_nil() { 0 } else { args.fixnum(cx, 2)? };
    let flags = int_or(cx, args, 3, 0)?;
    let room = text.length();
    let mut message = vec![0_u8; HEAD + room];
    let received = patiently(cx, flags & libc::IPC_NOWAIT == 0, || {
        // SAFETY: the buffer has room for a type and `room` bytes.
        unsafe { libc::msgrcv(queue, message.as_mut_ptr().cast(), room, kind, flags | libc::IPC_NOWAIT) }
    })?;
    let count = match received {
        Ok(count) => count,
        Err(cause) => return Ok(refused(&cause)),
    };
    debug_assert!(text.is(ObjectKind::String));
    text.bytes_mut()[..count].copy_from_slice(&message[HEAD..HEAD + count]);
    let mut head = [0; 8];
    head.copy_from_slice(&message[..HEAD]);
    cx.list(&[Value::fixnum(i64::from_ne_bytes(head)), Value::fixnum(count as i64)])
}

/// Implements `(unix:msgctl queue 0)`: removes a queue. Other commands are refused.
fn control(cx: &mut Context, args: Args<'_>) -> Answer {
    let (queue, command) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    if command != libc::IPC_RMID {
        return cx.type_error("0, which removes the queue", args[1]);
    }
    // SAFETY: this command takes no structure.
    let done = unsafe { libc::msgctl(queue, command, std::ptr::null_mut()) };
    Ok(if done < 0 { refused(&Error::last_os_error()) } else { Value::fixnum(0) })
}
