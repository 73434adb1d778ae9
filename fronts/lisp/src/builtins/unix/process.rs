//! Implements the calls that run other programs, and those about the process as a whole.

use super::outcome::{done, int_or, refused};
use crate::builtin::{Args, Builtin, MANY, builtin};
use crate::builtins::stream::{flush, path_of, pipe_stream, with_file};
use crate::context::{Answer, Context};
use crate::error::ErrorClass;
use crate::threads::lock;
use crate::value::Value;
use rustix::process::{self, Pid, WaitOptions};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:SYSTEM", 0, 1, system),
    builtin("PIPED-FORK", 0, MANY, piped_fork),
    builtin("UNIX:PIPED-FORK", 0, MANY, piped_fork),
    builtin("SYSTEM:PIPED-FORK", 0, MANY, piped_fork),
    builtin("LARGESSE:SPAWN", 5, 5, spawn),
    builtin("UNIX:PIPE", 0, 0, pipe),
    builtin("UNIX:WAIT", 0, 0, wait),
    builtin("UNIX:KILL", 2, 2, kill),
    builtin("UNIX:EXEC", 1, 2, exec),
    builtin("UNIX:FORK", 0, 0, no_fork),
    builtin("UNIX:VFORK", 0, 0, no_fork),
    builtin("UNIX:PUTENV", 1, 1, putenv),
    builtin("UNIX:ENVIRON", 0, 0, environ),
    builtin("UNIX:PTIMES", 0, 0, ptimes),
];

/// Programs of `piped-fork` that were not waited for; those that ended are at the next call.
static CHILDREN: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Returns a command with the environment variables that `unix:putenv` set.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, value) in crate::options::changed_environment() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn shell(text: &str) -> Command {
    let mut command = command("/bin/sh");
    command.arg("-c").arg(text);
    command
}

/// Runs a shell command, waits for it and returns its status as `wait` of C does: 256 times the exit status, or the
/// number of the signal.
fn system(cx: &mut Context, args: Args<'_>) -> Answer {
    if args.or_nil(0).is_nil() {
        return Ok(Value::fixnum(1));
    }
    let text = path_of(cx, args[0])?;
    cx.flush_standard_streams();
    let status = cx.blocked(|| shell(&text).status());
    Ok(match status {
        Ok(status) => Value::fixnum(i64::from(status.into_raw())),
        Err(cause) => refused(&cause),
    })
}

/// Starts a program whose standard input and output are the two-way stream that is returned. One text is a shell
/// command; several are a program and its arguments; none is a shell.
fn piped_fork(cx: &mut Context, args: Args<'_>) -> Answer {
    let mut words = Vec::new();
    for argument in args.iter() {
        words.push(path_of(cx, *argument)?);
    }
    let mut command = match words.as_slice() {
        [] => command("/bin/sh"),
        [text] => shell(text),
        [program, rest @ ..] => {
            let mut command = command(program);
            command.args(rest);
            command
        }
    };
    cx.flush_standard_streams();
    let started = cx.blocked(|| {
        lock(&CHILDREN).retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
    });
    let mut child = match started {
        Ok(child) => child,
        Err(cause) => {
            return cx.error(ErrorClass::Io, format!("{}: {cause}", words.join(" ")));
        }
    };
    let ends = child.stdin.take().zip(child.stdout.take());
    lock(&CHILDREN).push(child);
    let Some((input, output)) = ends else {
        return cx.error(ErrorClass::Io, "the program has no pipes".to_owned());
    };
    let (writer, reader) = (File::from(OwnedFd::from(input)), File::from(OwnedFd::from(output)));
    pipe_stream(cx, reader, writer)
}

/// Implements `(spawn program arguments input output errors)`: starts a program whose standard files are those of the
/// streams. Returns its process id.
fn spawn(cx: &mut Context, args: Args<'_>) -> Answer {
    let program = path_of(cx, args[0])?;
    let mut command = command(&program);
    for word in cx.alive(args[1])? {
        command.arg(path_of(cx, word)?);
    }
    cx.flush_standard_streams();
    for stream in &args[3..] {
        flush(cx, *stream)?;
    }
    let mut files = Vec::new();
    for stream in &args[2..] {
        match with_file(cx, *stream, |descriptor| descriptor.try_clone_to_owned())? {
            Some(file) => files.push(Stdio::from(file)),
            None => return cx.type_error("stream of a file", *stream),
        }
    }
    let (Some(errors), Some(output), Some(input)) = (files.pop(), files.pop(), files.pop()) else {
        return Ok(Value::NIL);
    };
    command.stdin(input).stdout(output).stderr(errors);
    match cx.blocked(|| command.spawn()) {
        Ok(child) => {
            let pid = child.id();
            lock(&CHILDREN).push(child);
            Ok(Value::fixnum(i64::from(pid)))
        }
        Err(cause) => cx.error(ErrorClass::Io, format!("{program}: {cause}")),
    }
}

/// Returns a two-way stream that reads what was written to it.
fn pipe(cx: &mut Context, _: Args<'_>) -> Answer {
    match rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) {
        Ok((reader, writer)) => pipe_stream(cx, File::from(reader), File::from(writer)),
        Err(cause) => Ok(refused(&cause.into())),
    }
}

/// Waits for any child process; returns `(process-id status)`.
fn wait(cx: &mut Context, _: Args<'_>) -> Answer {
    match cx.blocked(|| process::wait(WaitOptions::empty())) {
        Ok(Some((pid, status))) => {
            let pid = Value::fixnum(i64::from(pid.as_raw_pid()));
            cx.list(&[pid, Value::fixnum(i64::from(status.as_raw()))])
        }
        Ok(None) => Ok(Value::NIL),
        Err(cause) => Ok(refused(&cause.into())),
    }
}

fn kill(cx: &mut Context, args: Args<'_>) -> Answer {
    let (pid, signal) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    let result = match (Pid::from_raw(pid), process::Signal::from_named_raw(signal)) {
        (Some(pid), Some(number)) if pid == process::getpid() => {
            let world = std::sync::Arc::clone(&cx.world);
            let result = cx.blocked(|| world.signals.deliver(signal, || process::kill_process(pid, number)));
            // The program's function runs now, as it would in C.
            cx.poll()?;
            result
        }
        (Some(pid), Some(signal)) if pid.as_raw_pid() > 0 => process::kill_process(pid, signal),
        (Some(pid), None) if signal == 0 => process::test_kill_process(pid),
        _ => Err(rustix::io::Errno::INVAL),
    };
    done(cx, result)
}

/// Replaces this process by another program. Returns only if that fails.
fn exec(cx: &mut Context, args: Args<'_>) -> Answer {
    let program = path_of(cx, args[0])?;
    let mut words = Vec::new();
    for word in args.or_nil(1).iter() {
        words.push(path_of(cx, word)?);
    }
    cx.flush_standard_streams();
    let cause = command(&program).args(&words).exec();
    Ok(refused(&cause))
}

/// Refuses to copy a process of several threads: the copy would have one of them, and locks that no thread releases.
fn no_fork(cx: &mut Context, _: Args<'_>) -> Answer {
    cx.fail(
        ErrorClass::Thread,
        "a Lisp with threads cannot fork; use unix:system, piped-fork or sys:thread".to_owned(),
    )
}

/// Sets an environment variable, given as `NAME=value`, for `unix:getenv` and for programs started from now on.
fn putenv(cx: &mut Context, args: Args<'_>) -> Answer {
    let text = path_of(cx, args[0])?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text.as_str(), None),
    };
    if name.is_empty() || text.contains('\0') {
        return cx.type_error("text NAME=value", args[0]);
    }
    crate::options::change_environment(name, value);
    Ok(cx.truth(true))
}

/// Returns the environment as texts `NAME=value`.
fn environ(cx: &mut Context, _: Args<'_>) -> Answer {
    let mark = cx.mark();
    for (name, value) in crate::options::whole_environment() {
        let text = cx.string(&format!("{name}={value}"))?;
        cx.push(text)?;
    }
    cx.stacked(mark)
}

/// Returns `(elapsed system user children's-system children's-user)` in sixtieths of a second.
fn ptimes(cx: &mut Context, _: Args<'_>) -> Answer {
    let [user, system, ..] = crate::options::usage();
    let [below_user, below_system, ..] = crate::options::usage_of_children();
    let elapsed = cx.world.started.elapsed().as_secs_f64();
    let ticks = |seconds: f64| Value::fixnum((seconds * 60.0) as i64);
    cx.list(&[elapsed, system, user, below_system, below_user].map(ticks))
}
