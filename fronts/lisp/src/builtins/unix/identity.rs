//! Implements the functions that say who and where this process is.

use super::outcome::{LAST_ERROR, done, int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::Value;
use rustix::process::{self, Pid};

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:GETPID", 0, 0, |_, _| Ok(Value::fixnum(i64::from(std::process::id())))),
    builtin("UNIX:GETPPID", 0, 0, |_, _| Ok(number(Pid::as_raw(process::getppid())))),
    builtin("UNIX:GETPGRP", 0, 1, |_, _| Ok(number(process::getpgrp().as_raw_pid()))),
    builtin("UNIX:SETPGRP", 0, 2, |cx, _| done(cx, process::setpgid(None, None))),
    builtin("UNIX:GETUID", 0, 0, |_, _| Ok(unsigned(process::getuid().as_raw()))),
    builtin("UNIX:GETEUID", 0, 0, |_, _| Ok(unsigned(process::geteuid().as_raw()))),
    builtin("UNIX:GETGID", 0, 0, |_, _| Ok(unsigned(process::getgid().as_raw()))),
    builtin("UNIX:GETEGID", 0, 0, |_, _| Ok(unsigned(process::getegid().as_raw()))),
    builtin("UNIX:SETUID", 1, 1, |cx, args| {
        // SAFETY: the call takes a number and touches no memory of ours.
        identify(cx, args, |number| unsafe { libc::setuid(number) })
    }),
    builtin("UNIX:SETGID", 1, 1, |cx, args| {
        // SAFETY: the call takes a number and touches no memory of ours.
        identify(cx, args, |number| unsafe { libc::setgid(number) })
    }),
    builtin("UNIX:GETPRIORITY", 2, 2, priority),
    builtin("UNIX:SETPRIORITY", 3, 3, set_priority),
    builtin("UNIX:GETHOSTNAME", 0, 0, |cx, _| {
        let name = rustix::system::uname();
        cx.string(&name.nodename().to_string_lossy())
    }),
    builtin("UNIX:UNAME", 0, 0, uname),
    builtin("UNIX:GETPAGESIZE", 0, 0, |_, _| Ok(number(rustix::param::page_size() as i32))),
    builtin("UNIX:ERRNO", 0, 0, |_, _| Ok(number(LAST_ERROR.get()))),
    builtin("UNIX:SYSERRLIST", 1, 1, |cx, args| {
        let text = message(int_or(cx, args, 0, 0)?);
        cx.string(&text)
    }),
    builtin("UNIX:PERROR", 0, 1, |cx, _| {
        let text = format!("{}\n", message(LAST_ERROR.get()));
        let stream = cx.global_value(cx.world.names.error_output);
        cx.write_bytes(stream, text.as_bytes())?;
        Ok(Value::NIL)
    }),
];

fn number(number: i32) -> Value {
    Value::fixnum(i64::from(number))
}

fn unsigned(number: u32) -> Value {
    Value::fixnum(i64::from(number))
}

/// Sets the user or group of all threads of the process. Returns t, or the negative number of the error.
fn identify(cx: &mut Context, args: Args<'_>, set: impl FnOnce(u32) -> i32) -> Answer {
    let number = int_or(cx, args, 0, 0)?.cast_unsigned();
    Ok(if set(number) == 0 { cx.truth(true) } else { refused(&std::io::Error::last_os_error()) })
}

/// Returns the text of a system error, without the number that Rust appends.
fn message(code: i32) -> String {
    let text = std::io::Error::from_raw_os_error(code).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Implements `(unix:getpriority which who)`, where which is 0 for processes, 1 for groups and 2 for users.
fn priority(cx: &mut Context, args: Args<'_>) -> Answer {
    let (which, who) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    let found = match which {
        0 => process::getpriority_process(Pid::from_raw(who)),
        1 => process::getpriority_pgrp(Pid::from_raw(who)),
        _ if who == -1 => Err(rustix::io::Errno::SRCH), // no user has this number
        _ => process::getpriority_user(rustix::process::Uid::from_raw(who.cast_unsigned())),
    };
    Ok(match found {
        Ok(nice) => number(nice),
        Err(cause) => refused(&cause.into()),
    })
}

fn set_priority(cx: &mut Context, args: Args<'_>) -> Answer {
    let (which, who) = (int_or(cx, args, 0, 0)?, int_or(cx, args, 1, 0)?);
    let nice = int_or(cx, args, 2, 0)?;
    let result = match which {
        0 => process::setpriority_process(Pid::from_raw(who), nice),
        1 => process::setpriority_pgrp(Pid::from_raw(who), nice),
        _ if who == -1 => Err(rustix::io::Errno::SRCH),
        _ => process::setpriority_user(rustix::process::Uid::from_raw(who.cast_unsigned()), nice),
    };
    Ok(match result {
        Ok(()) => number(0),
        Err(cause) => refused(&cause.into()),
    })
}

/// Returns the names of system, node, release, version and machine.
fn uname(cx: &mut Context, _: Args<'_>) -> Answer {
    let name = rustix::system::uname();
    let mark = cx.mark();
    for part in [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()] {
        let text = cx.string(&part.to_string_lossy())?;
        cx.push(text)?;
    }
    cx.stacked(mark)
}
