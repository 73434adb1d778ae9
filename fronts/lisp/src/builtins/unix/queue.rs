//! Calls the message queues of System V. No call waits.

use std::io::{Error, ErrorKind, Result};

/// Bytes of the type that precedes the text of a message.
const HEAD: usize = size_of::<libc::c_long>();

/// Returns the number of the queue of a key, which is made with the permissions in `mode`.
pub(crate) fn open(key: i32, mode: i32) -> Result<i32> {
    // SAFETY: the call takes two numbers.
    let queue = unsafe { libc::msgget(key, mode | libc::IPC_CREAT) };
    if queue < 0 { Err(Error::last_os_error()) } else { Ok(queue) }
}

/// Sends a message of a type, which must be positive.
pub(crate) fn send(queue: i32, kind: i64, text: &[u8], flags: i32) -> Result<()> {
    let mut message = kind.to_ne_bytes().to_vec();
    message.extend_from_slice(text);
    // SAFETY: the message has a type and the bytes of `text` behind it.
    let sent = unsafe { libc::msgsnd(queue, message.as_ptr().cast(), text.len(), flags | libc::IPC_NOWAIT) };
    if sent < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Receives the first message of at most `room` bytes, or the first of a type that is not 0; returns type and text.
pub(crate) fn receive(queue: i32, room: usize, kind: i64, flags: i32) -> Result<(i64, Vec<u8>)> {
    let mut message = vec![0_u8; HEAD + room];
    // SAFETY: the buffer has room for a type and `room` bytes.
    let received =
        unsafe { libc::msgrcv(queue, message.as_mut_ptr().cast(), room, kind, flags | libc::IPC_NOWAIT) };
    let count = usize::try_from(received).map_err(|_| Error::last_os_error())?;
    let mut head = [0; HEAD];
    head.copy_from_slice(&message[..HEAD]);
    message.drain(..HEAD);
    message.truncate(count);
    Ok((i64::from_ne_bytes(head), message))
}

/// Returns whether an error says that the queue is full, or has no message.
pub(crate) fn would_wait(cause: &Error) -> bool {
    cause.kind() == ErrorKind::WouldBlock || cause.raw_os_error() == Some(libc::ENOMSG)
}

/// Returns whether the queue has a message. A queue that was removed has one, as a call on it returns at once.
pub(crate) fn has_message(queue: i32) -> bool {
    let mut state = std::mem::MaybeUninit::<libc::msqid_ds>::zeroed();
    // SAFETY: the call writes a structure of the type that it expects, which zeros made valid before.
    let (done, state) =
        unsafe { (libc::msgctl(queue, libc::IPC_STAT, state.as_mut_ptr()), state.assume_init()) };
    done < 0 || state.msg_qnum > 0
}

/// Removes a queue.
pub(crate) fn remove(queue: i32) -> Result<()> {
    // SAFETY: this command takes no structure.
    let done = unsafe { libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut()) };
    if done < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
