//! Prints messages on standard error, and ends the process with one.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};

/// The launcher exits with this status for its own failures, as `env` and `timeout` do.
pub(crate) const OWN_FAILURE: c_int = 125;

/// Prints a message on standard error, with escapes for harmful characters in names of files, hosts and servers.
pub(crate) fn warn(text: &str) {
    print(&["largesse: ", &largesse_text::lines(text), "\n"]);
}

/// Number of the service thread that prints messages, but has a descriptor table of its own; 0 if there is none.
static OWN_TABLE: AtomicU32 = AtomicU32::new(0);

/// Notes that the calling thread has a descriptor table of its own, which lacks the program's standard error.
pub(crate) fn has_own_table() {
    OWN_TABLE.store(largesse_pages::thread_id(), Ordering::Relaxed); // Relaxed: for this thread only
}

fn print(parts: &[&str]) {
    let borrowed = OWN_TABLE.load(Ordering::Relaxed) == largesse_pages::thread_id();
    // Borrowed for a moment only: the program may close its own, for a reader that waits for its end.
    let Some(fd) = (if borrowed { largesse_store::standard_error() } else { Some(2) }) else { return };
    for part in parts {
        // SAFETY: the text is readable for its length. An error of `write` cannot be reported anywhere.
        unsafe { libc::write(fd, part.as_ptr().cast(), part.len()) };
    }
    if borrowed {
        // SAFETY: a descriptor of this thread, closed once.
        unsafe { libc::close(fd) };
    }
}

/// Ends the process before `main` because a setting is wrong or cannot be granted.
pub(crate) fn refuse_to_start(text: &str) -> ! {
    warn(text);
    // SAFETY: before `main` no code of the program needs its exit handlers.
    unsafe { libc::_exit(OWN_FAILURE) }
}

/// Aborts because the program, or the library's own code, broke a rule of `malloc`.
pub(crate) fn die(parts: &[&str]) -> ! {
    print(&["largesse: "]);
    print(parts);
    print(&["\n"]);
    // SAFETY: no preconditions.
    unsafe { libc::abort() }
}
