//! Signals for rank 0 are meant for the program.

use std::sync::atomic::{AtomicI32, Ordering};

/// Relaxed: written before the handlers are there.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

const MEANT: [libc::c_int; 7] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

extern "C" fn hand_on(signal: libc::c_int) {
    // SAFETY: numbers; async-signal-safe.
    unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
}

/// From now on signals go to `program`.
pub(super) fn hand_to(program: libc::pid_t) {
    PROGRAM.store(program, Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = hand_on;
    for signal in MEANT {
        // SAFETY: the handler makes one async-signal-safe call.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}
