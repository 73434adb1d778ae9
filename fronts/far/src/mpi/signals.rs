//! Forwards signals that the agent's process of rank 0 receives to the program.

use std::sync::atomic::{AtomicI32, Ordering};

/// Process number of the program. Relaxed accesses suffice, since it is written before the signal handlers are
/// installed.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

const FORWARDED: [libc::c_int; 7] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

extern "C" fn hand_on(signal: libc::c_int) {
    // SAFETY: `kill` takes numbers and is async-signal-safe.
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
}

/// Forwards signals to `program` from now on.
pub(super) fn hand_to(program: libc::pid_t) {
    PROGRAM.store(program, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = hand_on;
    for signal in FORWARDED {
        // SAFETY: the handler makes one async-signal-safe call.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}
