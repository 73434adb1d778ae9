//! Ctrl-C: a thread waits for the signal and stops every evaluation; a second one ends the process.

use crate::say::complain;
use largesse_lisp::Interrupt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a Ctrl-C came since the prompt was last there.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// The signal that Ctrl-C sends.
fn sigint() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the calls write to a set of that type, which is filled then.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        set.assume_init()
    }
}

/// Before there is a second thread: all others inherit it. A thread that does not block the signal is given it,
/// with what the prompt's line editor does then, or the end of the process.
pub(super) fn block() {
    let set = sigint();
    // SAFETY: blocking a signal reads the set, a local, and touches no other memory.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// From here on SIGINT goes to a thread of its own, which asks all others to stop.
pub(super) fn install(interrupt: Interrupt) {
    let set = sigint();
    let wait = move || {
        loop {
            let mut signal = 0;
            // SAFETY: the set was filled above, and the number is written to a local.
            let done = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
            if done != 0 {
                return;
            }
            if STOPPED.swap(true, Ordering::SeqCst) {
                // Nobody came back to the prompt since the last one: it does not stop otherwise.
                std::process::exit(130);
            }
            interrupt.all_threads();
        }
    };
    // Without the thread Ctrl-C does nothing; the program itself goes on.
    if let Err(cause) = std::thread::Builder::new().name("interrupt".to_owned()).spawn(wait) {
        complain!("largesse lisp: Ctrl-C will not work: {cause}");
    }
}

/// The last Ctrl-C has done its work.
pub(super) fn taken() {
    STOPPED.store(false, Ordering::SeqCst);
}
