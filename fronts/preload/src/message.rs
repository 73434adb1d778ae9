//! Prints messages on standard error, and ends the process with one.

use core::ffi::c_int;

/// The launcher exits with this status for its own failures, as `env` and `timeout` do.
pub(crate) const OWN_FAILURE: c_int = 125;

/// Prints a message on standard error, with escapes for harmful characters in names of files, hosts and servers.
pub(crate) fn warn(text: &str) {
    print(&["largesse: ", &largesse_text::lines(text), "\n"]);
}

fn print(parts: &[&str]) {
    for part in parts {
        // SAFETY: the text is readable for its length. An error of `write` cannot be reported anywhere.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
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
