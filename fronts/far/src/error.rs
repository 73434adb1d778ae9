//! Explains why a setting is refused or far memory cannot be made ready, with what to type.

use crate::mpi;
use largesse_settings::Misread;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The reason why a setting is refused or far memory cannot be made ready.
#[derive(Debug)]
pub enum Error {
    /// An option or a variable has a value that is not accepted.
    BadValue {
        /// The option or variable.
        origin: &'static str,
        /// The value of the option or variable, without secrets.
        value: String,
        /// The values that it accepts.
        accepts: String,
    },
    /// The value of an option or a variable is not a size, or is out of bounds.
    BadSize {
        /// The option or variable.
        origin: &'static str,
        /// The value of the option or variable.
        value: String,
        /// The reason for the refusal.
        why: Misread,
    },
    /// A setting would have no effect together with another option.
    Excluded {
        /// The option or variable.
        origin: &'static str,
        /// The value of the option or variable.
        value: String,
        /// The other option.
        other: &'static str,
        /// The reason, as a sentence.
        why: &'static str,
    },
    /// The agent of the store was not started: either this error says why, or the agent has printed it.
    Agent(Option<io::Error>),
    /// The ranks of the MPI launcher cannot hold the program's pages.
    Ranks(mpi::Error),
}

impl Error {
    /// Returns the exit status of a command that stops here: 2 for a setting, 125 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Error::BadValue { .. } | Error::BadSize { .. } | Error::Excluded { .. } => 2,
            Error::Agent(_) | Error::Ranks(_) => 125,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadValue { origin, value, accepts } => {
                write!(f, "{} is not understood; it accepts {accepts}", shown(origin, value))
            }
            Error::BadSize { origin, value, why } => write!(f, "{} {why}", shown(origin, value)),
            Error::Excluded { origin, value, other, why } => {
                let given = match *origin {
                    "--lock" | "--interleave" => (*origin).to_owned(),
                    origin => shown(origin, value),
                };
                write!(f, "{given} cannot be combined with {other}: {why}; leave one of the two out")
            }
            Error::Agent(None) => write!(f, "the program was not started"),
            Error::Agent(Some(error)) => write!(f, "the agent was not started: {error}"),
            Error::Ranks(why) => why.fmt(f),
        }
    }
}

/// Formats a setting as the user typed it: `--pages 4K` or `LARGESSE_PAGES=4K`.
fn shown(origin: &str, value: &str) -> String {
    let separator = if origin.starts_with("--") { ' ' } else { '=' };
    let value = if value.is_empty() { "''" } else { value };
    format!("{origin}{separator}{value}")
}
