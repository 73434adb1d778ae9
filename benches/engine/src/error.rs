//! Explains why a comparison cannot begin, with what to type.

use std::fmt;
use std::path::PathBuf;

/// The reason why a comparison cannot begin. Each ends the command with status 2 before anything is measured.
#[derive(Debug)]
pub(super) enum Error {
    NoBenches { looked: Vec<PathBuf> },
    Definition { path: PathBuf, why: String },
    Comparison { asked: String, there: Vec<String> },
    Only { asked: String, there: Vec<String> },
    Setting { bench: String, asked: String, there: Vec<String> },
    Incomplete { bench: String, why: String },
    Option { option: &'static str, of: &'static [&'static str] },
    Touch(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Touch(why) => f.write_str(why),
            Error::Incomplete { bench, why } => write!(f, "bench {bench} {why}"),
            Error::Option { option, of } => {
                write!(
                    f,
                    "{option} is an option of `largesse bench {}` only",
                    of.join("` and `largesse bench ")
                )
            }
            Error::NoBenches { looked } => {
                write!(
                    f,
                    "no benches found; --programs DIR says where `definitions` and `programs` are. Looked in:"
                )?;
                looked.iter().try_for_each(|path| write!(f, "\n  {}", path.display()))
            }
            Error::Definition { path, why } => write!(f, "{}: {}", path.display(), why.trim_end()),
            Error::Comparison { asked, there } => {
                write!(f, "there is no comparison `{asked}` here; type one of: {}", there.join(", "))
            }
            Error::Only { asked, there } => {
                write!(f, "--only {asked}: no such bench, group or test; there are: {}", there.join(", "))
            }
            Error::Setting { bench, asked, there } => {
                write!(
                    f,
                    "bench {bench} asks for the setting `{asked}`, which settings.toml lacks; it has: {}",
                    there.join(", ")
                )
            }
        }
    }
}
