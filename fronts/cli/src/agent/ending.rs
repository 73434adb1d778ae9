//! Signals that end an agent: the folder of its socket is removed before they do.

use largesse_agent::Name;
use std::sync::OnceLock;

static NAME: OnceLock<Name> = OnceLock::new();

/// Those that end a process unless it says otherwise, and that people send. SIGHUP is ignored.
const ENDS: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGQUIT];

extern "C" fn withdraw_and_end(signal: libc::c_int) {
    if let Some(name) = NAME.get() {
        name.withdraw();
    }
    // SAFETY: numbers; async-signal-safe. The signal is blocked until this handler returns, and ends the process then.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// From now on the agent's name is withdrawn when a signal ends this process.
pub(super) fn withdraw_at_signals(name: &Name) {
    let _ = NAME.set(name.clone());
    let handler: extern "C" fn(libc::c_int) = withdraw_and_end;
    for signal in ENDS {
        // SAFETY: the handler makes async-signal-safe calls only, and reads a name that does not change any more.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}
