//! Hands the inherited SIGPIPE action and signal mask on to the program: Rust ignores SIGPIPE before `main` and resets
//! both at `exec`.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the parent ignored SIGPIPE. Relaxed: the only thread writes it before `main`.
static SIGPIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Makes the loader call `record` before Rust's runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn() = record;

extern "C" fn record() {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given, and `now` has room for the old one.
    let rc = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), now.as_mut_ptr()) };
    if rc == 0 {
        // SAFETY: `sigaction` returned 0, so that it filled `now`.
        let now = unsafe { now.assume_init() };
        SIGPIPE_IGNORED.store(now.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
}

/// Makes `command.exec()` hand on the signal mask and the SIGPIPE action that this process inherited.
pub(crate) fn restore_inherited(command: &mut Command) {
    let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: no new mask is given, and `mask` has room for the old one.
    let rc = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr()) };
    if rc != 0 {
        return;
    }
    // SAFETY: `pthread_sigmask` returned 0, so that it filled `mask`.
    let mask = unsafe { mask.assume_init() };
    let restore = move || -> io::Result<()> {
        if SIGPIPE_IGNORED.load(Ordering::Relaxed) {
            // SAFETY: ignoring a signal runs none of our code.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        // SAFETY: `mask` is a filled set, and the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut()) };
        Ok(())
    };
    // SAFETY: the closure calls two async-signal-safe functions and allocates nothing.
    unsafe { command.pre_exec(restore) };
}
