//! Implements the priorities of threads.

use super::outcome::{done, int_or, refused};
use crate::builtin::{Args, Builtin, builtin};
use crate::context::{Answer, Context};
use crate::error::Exit;
use crate::value::Value;
use std::io::Error;
use std::time::Duration;

pub(super) const BUILTINS: &[Builtin] =
    &[builtin("UNIX:THR-GETPRIO", 1, 1, get_priority), builtin("UNIX:THR-SETPRIO", 2, 2, set_priority)];

/// Time between two looks whether a new thread has begun.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns the kernel's number of a thread, or none for a thread that does not exist: 0 names the first one, other
/// numbers those that `sys:make-thread` made, in their order.
fn kernel_thread(cx: &mut Context, args: Args<'_>) -> Result<Option<i32>, Exit> {
    let Some(index) = args.size(cx, 0)?.checked_sub(1) else { return Ok(Some(cx.world.first_thread)) };
    let Some(worker) = cx.world.pool.workers().get(index).cloned() else { return Ok(None) };
    loop {
        if worker.is_lost() {
            return Ok(None);
        }
        if let Some(number) = worker.kernel_thread() {
            return Ok(Some(number));
        }
        cx.blocked(|| std::thread::sleep(PAUSE));
        cx.poll()?;
    }
}

/// Implements `(unix:thr-getprio thread)`.
fn get_priority(cx: &mut Context, args: Args<'_>) -> Answer {
    let Some(thread) = kernel_thread(cx, args)? else {
        return Ok(refused(&Error::from_raw_os_error(libc::ESRCH)));
    };
    let mut scheduling = libc::sched_param { sched_priority: 0 };
    // SAFETY: the call writes a structure of the type that it expects.
    let done = unsafe { libc::sched_getparam(thread, &raw mut scheduling) };
    Ok(if done == 0 {
        Value::fixnum(i64::from(scheduling.sched_priority))
    } else {
        refused(&Error::last_os_error())
    })
}

/// Implements `(unix:thr-setprio thread priority)`: from now on the thread is scheduled round-robin with a real-time
/// priority (1 to 99), which only root may set. Returns t.
fn set_priority(cx: &mut Context, args: Args<'_>) -> Answer {
    let priority = int_or(cx, args, 1, 0)?;
    let Some(thread) = kernel_thread(cx, args)? else {
        return Ok(refused(&Error::from_raw_os_error(libc::ESRCH)));
    };
    let scheduling = libc::sched_param { sched_priority: priority };
    // SAFETY: the call reads a structure of the type that it expects.
    let changed = unsafe { libc::sched_setscheduler(thread, libc::SCHED_RR, &raw const scheduling) };
    done(cx, if changed == 0 { Ok(()) } else { Err(Error::last_os_error()) })
}
