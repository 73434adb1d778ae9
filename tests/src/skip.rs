//! Prints the message of a test that cannot run on this machine.

/// Reports that a test, or a part of it, is skipped on this machine.
#[expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
