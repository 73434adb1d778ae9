//! Implements timers that send signals, and waiting for a signal.

use super::outcome::{int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::value::Value;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const BUILTINS: &[Builtin] = &[
    builtin("UNIX:ALARM", 1, 1, |cx, args| {
        let seconds = args.float(cx, 0)?;
        let old = set_timer(libc::ITIMER_REAL, [seconds, 0.0]);
        // As in C, a rest of a second counts as one.
        Ok(old.map_or_else(|cause| refused(&cause), |[left, _]| Value::fixnum(left.ceil() as i64)))
    }),
    builtin("UNIX:UALARM", 2, 2, |cx, args| {
        let times = [args.float(cx, 0)? / 1e6, args.float(cx, 1)? / 1e6];
        let old = set_timer(libc::ITIMER_REAL, times);
        Ok(old.map_or_else(|cause| refused(&cause), |[left, _]| Value::fixnum((left * 1e6) as i64)))
    }),
    builtin("UNIX:GETITIMER", 1, 1, |cx, args| {
        let which = int_or(cx, args, 0, 0)?;
        let found = timer(which);
        times(cx, found)
    }),
    builtin("UNIX:SETITIMER", 3, 3, |cx, args| {
        let which = int_or(cx, args, 0, 0)?;
        // As in EusLisp, the interval precedes the time that was left.
        let found = set_timer(which, [args.float(cx, 1)?, args.float(cx, 2)?]);
        times(cx, found.map(|[left, interval]| [interval, left]))
    }),
    builtin("UNIX:PAUSE", 0, 0, pause),
];

/// Time between two looks for a signal.
const PAUSE: Duration = Duration::from_millis(1);

fn time_of(seconds: f64) -> libc::timeval {
    let whole = seconds.max(0.0).floor();
    libc::timeval { tv_sec: whole as i64, tv_usec: ((seconds.max(0.0) - whole) * 1e6) as i64 }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

/// Starts the timer `which` (0 for real time, 1 for the process's time, 2 for that and the system's): the first signal comes
/// after `[value, interval]` seconds, the others after each interval. Returns what the timer had left, and its interval.
fn set_timer(which: i32, [value, interval]: [f64; 2]) -> std::io::Result<[f64; 2]> {
    let new = libc::itimerval { it_interval: time_of(interval), it_value: time_of(value) };
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut old = libc::itimerval { it_interval: zero, it_value: zero };
    // SAFETY: the call reads one structure and writes the other, which are of the type that it expects; it refuses a
    // timer that does not exist.
    let done = unsafe { libc::setitimer(which, &raw const new, &raw mut old) };
    told(done, old)
}

fn timer(which: i32) -> std::io::Result<[f64; 2]> {
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut old = libc::itimerval { it_interval: zero, it_value: zero };
    // SAFETY: the call writes a structure of the type that it expects; it refuses a timer that does not exist.
    let done = unsafe { libc::getitimer(which, &raw mut old) };
    told(done, old)
}

fn told(done: i32, old: libc::itimerval) -> std::io::Result<[f64; 2]> {
    if done == 0 {
        Ok([seconds(old.it_value), seconds(old.it_interval)])
    } else {
        Err(std::io::Error::last_os_error())
    }
}

/// Returns a list of two times, or the negative number of the error.
fn times(cx: &mut Context, found: std::io::Result<[f64; 2]>) -> Answer {
    let found = match found {
        Ok(times) => times,
        Err(cause) => return Ok(refused(&cause)),
    };
    let mark = cx.mark();
    for time in found {
        let time = cx.float(time)?;
        cx.push(time)?;
    }
    cx.stacked(mark)
}

/// Waits until the program's function for a signal was called, in this thread or in another one.
fn pause(cx: &mut Context, _: Args<'_>) -> Answer {
    // Acquire: the function's writes are seen after the wait.
    let before = cx.world.signals_handled.load(Ordering::Acquire);
    while cx.world.signals_handled.load(Ordering::Acquire) == before {
        cx.blocked(|| std::thread::sleep(PAUSE));
        cx.poll()?;
    }
    Ok(refused(&std::io::Error::from_raw_os_error(libc::EINTR)))
}
