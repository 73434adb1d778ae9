//! The message of a test that cannot run on this machine.

/// Say that a test, or a part of it, cannot run here.
#[expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}
