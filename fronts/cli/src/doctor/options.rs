//! The doctor's share of the environment.
#![expect(clippy::disallowed_methods, reason = "the one place where the doctor reads the environment")]

use std::env;

/// `LD_PRELOAD`, when it is set to something.
pub(crate) fn preload() -> Option<String> {
    env::var("LD_PRELOAD").ok().filter(|value| !value.trim().is_empty())
}

/// Whether colour is unwanted (`NO_COLOR`, or a terminal that has none).
pub(crate) fn no_colour() -> bool {
    env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var("TERM").is_ok_and(|term| term == "dumb")
}
