//! Handles Ctrl-C: a thread waits for the signal and stops all evaluations; a second signal ends the process.

use largesse_lisp::Interrupt;
use largesse_terminal::say::complain;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether Ctrl-C was pressed since the last return to the prompt.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Returns the set of the one signal that Ctrl-C sends.
fn sigint() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both calls write to the set, which `zeroed` made valid, and initialize it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        set.assume_init()
    }
}

/// Blocks SIGINT in the only thread, so that all later threads inherit the mask. A thread that does not block it
/// would run the action of the prompt's line editor, or end the process.
pub(super) fn block() {
    let set = sigint();
    // SAFETY: blocking a signal reads the set, a local, and touches no other memory.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Starts a thread that receives SIGINT and asks all others to stop.
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
                // The evaluation did not return to the prompt after the last signal, so asking again would not stop
                // it.
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

/// Forgets the last Ctrl-C, after an evaluation has ended.
pub(super) fn taken() {
    STOPPED.store(false, Ordering::SeqCst);
}
