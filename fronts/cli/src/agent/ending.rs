//! Removes the folder of the agent's socket when a signal ends the agent.

use largesse_agent::Name;
use std::sync::OnceLock;

static NAME: OnceLock<Name> = OnceLock::new();

/// The common signals that end a process by default, except SIGHUP, which the agent ignores.
const ENDS: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT];

extern "C" fn withdraw_and_end(signal: libc::c_int) {
    if let Some(name) = NAME.get() {
        name.withdraw();
    }
    // SAFETY: both calls take numbers only and are async-signal-safe. The signal is blocked until this handler
    // returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Installs handlers that withdraw the agent's name when a signal ends this process.
pub(super) fn withdraw_at_signals(name: &Name) {
    let _ = NAME.set(name.clone());
    let handler: extern "C" fn(libc::c_int) = withdraw_and_end;
    for signal in ENDS {
        // SAFETY: the handler makes only async-signal-safe calls, and the name that it reads no longer changes.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}
