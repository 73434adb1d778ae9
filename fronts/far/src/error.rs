//! Explains why a setting is refused or far memory cannot be made ready, with what to type.

use crate::mpi::RanksError;
use largesse_settings::Misread;
use largesse_terminal::word;
use std::ffi::OsStr;
use std::io;
use std::process::ExitCode;

/// The reason why a setting is refused or far memory cannot be made ready.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// The value of an option or a variable is not accepted.
    #[error("{} is not understood; it accepts {accepts}", shown(.origin, .value))]
    BadValue {
        /// Name of the option or variable.
        origin: &'static str,
        /// The value of the option or variable, without secrets.
        value: String,
        /// The values that the option or variable accepts, as a list for the user.
        accepts: String,
    },
    /// The value of an option or a variable is not a size, or is out of bounds.
    #[error("{} {why}", shown(.origin, .value))]
    BadSize {
        /// Name of the option or variable.
        origin: &'static str,
        /// The value of the option or variable.
        value: String,
        /// The reason for the refusal.
        why: Misread,
    },
    /// A setting would have no effect together with another option.
    #[error("{} cannot be combined with {other}: {why}; leave one of the two out", named(.origin, .value))]
    Excluded {
        /// Name of the option or variable.
        origin: &'static str,
        /// The value of the option or variable.
        value: String,
        /// Name of the other option or variable.
        other: &'static str,
        /// The reason why the two exclude each other, as a sentence.
        why: &'static str,
    },
    /// The store's agent was not started.
    #[error("the agent was not started: {0}")]
    Agent(io::Error),
    /// The store's agent ended before it was ready, and has printed the reason.
    #[error("the program was not started")]
    Unready,
    /// The ranks of the MPI launcher cannot hold the program's pages.
    #[error(transparent)]
    Ranks(RanksError),
}

impl FarError {
    /// Returns the exit status of a command that ends with this error: 2 for a setting, 125 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            FarError::BadValue { .. } | FarError::BadSize { .. } | FarError::Excluded { .. } => 2,
            FarError::Agent(_) | FarError::Unready | FarError::Ranks(_) => 125,
        })
    }
}

/// Formats a setting as the user typed it, such as `--pages 4K` or `LARGESSE_PAGES=4K`, harmless for terminals.
#[must_use]
pub fn shown(origin: &str, value: impl AsRef<OsStr>) -> String {
    let separator = if origin.starts_with("--") { ' ' } else { '=' };
    format!("{origin}{separator}{}", word(value))
}

/// Formats a setting as the user typed it, or only the name of an option that has few values.
fn named(origin: &str, value: &str) -> String {
    match origin {
        "--lock" | "--interleave" => origin.to_owned(),
        origin => shown(origin, value),
    }
}
