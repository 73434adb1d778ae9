//! Why a comparison cannot begin, and what to type.

use std::fmt;
use std::path::PathBuf;

/// Each ends the command with status 2 before anything is measured.
#[derive(Debug)]
pub(super) enum Trouble {
    NoBenches { looked: Vec<PathBuf> },
    Definition { path: PathBuf, why: String },
    Comparison { asked: String, there: Vec<String> },
    Only { asked: String, there: Vec<String> },
    Setting { bench: String, asked: String, there: Vec<String> },
    Incomplete { bench: String, why: String },
    Option { option: &'static str, of: &'static [&'static str] },
    Touch(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Touch(why) => f.write_str(why),
            Trouble::Incomplete { bench, why } => write!(f, "bench {bench} {why}"),
            Trouble::Option { option, of } => {
                write!(
                    f,
                    "{option} is an option of `largesse bench {}` only",
                    of.join("` and `largesse bench ")
                )
            }
            Trouble::NoBenches { looked } => {
                write!(
                    f,
                    "no benches found; --programs DIR says where `definitions` and `programs` are. Looked in:"
                )?;
                looked.iter().try_for_each(|path| write!(f, "\n  {}", path.display()))
            }
            Trouble::Definition { path, why } => write!(f, "{}: {}", path.display(), why.trim_end()),
            Trouble::Comparison { asked, there } => {
                write!(f, "there is no comparison `{asked}` here; type one of: {}", there.join(", "))
            }
            Trouble::Only { asked, there } => {
                write!(f, "--only {asked}: no such bench, group or test; there are: {}", there.join(", "))
            }
            Trouble::Setting { bench, asked, there } => {
                write!(
                    f,
                    "bench {bench} asks for the setting `{asked}`, which settings.toml lacks; it has: {}",
                    there.join(", ")
                )
            }
        }
    }
}
