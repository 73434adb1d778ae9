//! `largesse report`: draws the report of an earlier run.
//!
//! # Picture
//! ```text
//!   FILE.json ──────────────────► picture: time line ─► SVG ─► OUT.svg, FILE.svg or standard output
//!   the watcher of `run --report` ───┘
//! ```
//! # Knows / does not know
//! Knows the keys of a report that a picture needs. Does not know how a report is written.
//! # Invariants
//! 1. A file that the user did not name is replaced only if this command drew it.

pub(crate) mod picture;

use largesse_terminal::say::{self, complain};
use picture::{NoPicture, NotWritten};
use serde_json::Value;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Draw the far memory of a run over time, from its report.
///
/// Exit status: 0 if the picture was written, 1 if not, 2 for a wrong option.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Draw this report, which `largesse run --report FILE.json` wrote
    #[arg(value_name = "FILE.json")]
    file: PathBuf,
    /// Write the picture to OUT.svg [default: FILE.svg next to the report]; `-` is standard output
    #[arg(long, value_name = "OUT.svg", required = true)]
    svg: Option<Option<PathBuf>>,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match draw(&args.file, args.svg.as_ref().and_then(Option::as_deref)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("largesse report: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Draws `file` to `named`, or next to it without a name.
fn draw(file: &Path, named: Option<&Path>) -> Result<(), Error> {
    let text = std::fs::read(file).map_err(|error| Error::Unreadable(file.into(), error))?;
    let report: Value = serde_json::from_slice(&text).unwrap_or_default();
    let picture = picture::of(&report).map_err(|why| Error::NoPicture(file.into(), why))?;
    match named {
        Some(path) if path == Path::new("-") => say::raw(format_args!("{picture}")),
        Some(path) => {
            picture::write(path, &picture).map_err(|error| Error::NotWritten(path.into(), error))?;
        }
        None => {
            let path = file.with_extension("svg");
            picture::write_unnamed(&path, &picture).map_err(|error| Error::NotWritten(path, error))?;
        }
    }
    Ok(())
}

/// The reason why nothing was drawn, and the file in question.
#[derive(Debug)]
enum Error {
    Unreadable(PathBuf, io::Error),
    NoPicture(PathBuf, NoPicture),
    NotWritten(PathBuf, NotWritten),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAKE: &str = "`largesse run --local SIZE --report FILE.json -- PROGRAM` writes one";
        match self {
            Error::Unreadable(file, error) => {
                write!(f, "the report {} cannot be read: {error}; {MAKE}", file.display())
            }
            Error::NoPicture(file, why) => {
                write!(f, "{} {why}", file.display())?;
                match why {
                    NoPicture::NotAReport => write!(f, "; {MAKE}"),
                    NoPicture::NoFarMemory => {
                        write!(
                            f,
                            "; run it with far memory: `largesse run --local SIZE --report FILE.json -- PROGRAM`"
                        )
                    }
                    NoPicture::NoTimeline { .. } | NoPicture::NotDrawn(_) => Ok(()),
                }
            }
            Error::NotWritten(path, why @ NotWritten::Foreign) => {
                write!(f, "{} {why}; name a file: `--svg OUT.svg`", path.display())
            }
            Error::NotWritten(path, why) => write!(f, "{} {why}", path.display()),
        }
    }
}
