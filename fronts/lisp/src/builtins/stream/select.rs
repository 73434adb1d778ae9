//! Waits until a stream has input.

use super::slots::{FILE, STDIN, has_class};
use crate::builtin::Args;
use crate::builtins::unix::held;
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;
use crate::world::{Native, class};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;

/// Slot of a socket port that holds its socket.
const PORT_ID: usize = 0;

/// The source that a stream is read from.
enum Input {
    /// Input is there, or the stream has ended: a read returns at once.
    Ready,
    /// The standard input of the process.
    Terminal,
    File(Arc<std::sync::Mutex<crate::world::OpenFile>>),
    Queue(Arc<std::sync::Mutex<crate::world::QueueStream>>),
    /// A socket that listens: a client waits when it can be read.
    Socket(Arc<std::os::fd::OwnedFd>),
}

fn input_of(cx: &mut Context, stream: Value) -> Result<Input, Exit> {
    if has_class(stream, class::SOCKET_PORT) {
        return held(cx, stream.slot(PORT_ID)).map(Input::Socket);
    }
    let stream = cx.input(stream)?;
    if has_class(stream, class::STRING_STREAM) {
        return Ok(Input::Ready);
    }
    let number = stream.slot(FILE);
    if number == Value::fixnum(STDIN) {
        return Ok(Input::Terminal);
    }
    match cx.world.tables.native(number) {
        Some(Native::File(file)) => {
            let open = crate::threads::lock(&file);
            let buffered = open.unread.is_some()
                || open.reader.as_ref().is_some_and(|reader| !reader.buffer().is_empty());
            drop(open);
            Ok(if buffered { Input::Ready } else { Input::File(file) })
        }
        Some(Native::Queue(queue)) => Ok(Input::Queue(queue)),
        _ => cx.type_error("stream to read from", stream),
    }
}

/// Returns whether a stream can be read now.
fn readable(input: &Input) -> bool {
    let wait = |fd: std::os::fd::BorrowedFd<'_>| {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        poll(&mut fds, Some(&at_once)).is_ok_and(|count| count > 0)
    };
    match input {
        Input::Ready => true,
        Input::Terminal => wait(std::os::fd::AsFd::as_fd(&std::io::stdin())),
        Input::Queue(stream) => super::queue::is_ready(stream),
        Input::Socket(socket) => wait(std::os::fd::AsFd::as_fd(socket)),
        Input::File(file) => match &crate::threads::lock(file).reader {
            Some(reader) => wait(std::os::fd::AsFd::as_fd(reader.get_ref())),
            None => false,
        },
    }
}

/// Implements `(select-stream streams [seconds])`: waits until one of the streams has input or has ended, and returns the
/// list of those; nil when the time is over. Without a time it waits as long as it takes.
pub(super) fn select_stream(cx: &mut Context, args: Args<'_>) -> Answer {
    /// Seconds between two looks at all streams, and at Ctrl-C.
    const PAUSE: f64 = 0.01;
    let streams = cx.alive(args[0])?;
    let limit = if args.or_nil(1).is_nil() { f64::INFINITY } else { args.float(cx, 1)?.max(0.0) };
    let inputs = streams.iter().map(|stream| input_of(cx, *stream)).collect::<Result<Vec<_>, _>>()?;
    let start = std::time::Instant::now();
    loop {
        let ready: Vec<bool> = cx.blocked(|| inputs.iter().map(readable).collect());
        if ready.contains(&true) {
            let found: Vec<Value> =
                streams.iter().zip(ready).filter(|(_, ready)| *ready).map(|(stream, _)| *stream).collect();
            return cx.list(&found);
        }
        let left = limit - start.elapsed().as_secs_f64();
        if left <= 0.0 {
            return Ok(Value::NIL);
        }
        cx.blocked(|| std::thread::sleep(std::time::Duration::from_secs_f64(left.min(PAUSE))));
        cx.poll()?;
    }
}
