//! Reads the environment variables of the doctor.
#![expect(clippy::disallowed_methods, reason = "the one place where the doctor reads the environment")]

use std::env;

/// Returns the value of `LD_PRELOAD`, or `None` if it is unset or blank.
pub(crate) fn preload() -> Option<String> {
    env::var("LD_PRELOAD").ok().filter(|value| !value.trim().is_empty())
}

/// Returns whether colour is disabled (`NO_COLOR`) or the terminal has none.
pub(crate) fn no_colour() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var("TERM").is_ok_and(|term| term == "dumb")
}
