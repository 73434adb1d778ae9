//! Waits for events, with a deadline.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Time between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `find` until it returns a value. Returns `None` if it has returned none after the time `deadline`.
pub fn poll<T>(deadline: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let late = start.elapsed() > deadline;
        let found = find();
        if found.is_some() || late {
            return found;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Calls `find` until it returns a value.
///
/// # Panics
/// Panics when `deadline` has passed. The message names `what`, the event that was awaited.
#[track_caller]
pub fn wait_for<T>(what: &str, deadline: Duration, find: impl FnMut() -> Option<T>) -> T {
    match poll(deadline, find) {
        Some(found) => found,
        None => panic!("not within {deadline:?}: {what}"),
    }
}

/// Returns when `condition` is true.
///
/// # Panics
/// Panics when `deadline` has passed. The message names `what`, the event that was awaited.
#[track_caller]
pub fn wait_until(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, deadline, || condition().then_some(()));
}

/// Waits until a child process has ended.
///
/// # Panics
/// Panics if the child still runs after `deadline`, and kills it first.
#[track_caller]
pub fn wait_for_exit(child: &mut Child, deadline: Duration) -> ExitStatus {
    let ended = poll(deadline, || child.try_wait().expect("a child of this process"));
    ended.unwrap_or_else(|| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("not within {deadline:?}: the end of process {}", child.id());
    })
}
