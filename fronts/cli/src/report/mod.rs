//! `largesse report`: draws the report of an earlier run.
//!
//! # Picture
//! ```text
//!   FILE.json ──────────────────► picture: time line ─► SVG ─► OUT.svg, FILE.svg or standard output
//!           └───────────────────► chart:   time line ─► characters ─► standard output
//!   the watcher of `run --report` ───┘
//! ```
//! # Knows / does not know
//! Knows the keys of a report that a picture needs. Does not know how a report is written.
//! # Invariants
//! 1. A file that the user did not name is replaced only if this command drew it.
//! 2. At most 64 MiB of a report are read.

mod bounded;
mod chart;
pub(crate) mod picture;

use bounded::RefusedFile;
use largesse_terminal::name;
use largesse_terminal::say::{self, complain};
use largesse_terminal::table::Paper;
use picture::{NoPicture, NotWritten};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show the far memory of a run over time, from its report.
///
/// Without --svg, prints a small chart. Exit status: 0 if it was drawn, 1 if not, 2 for a wrong option.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Draw this report, which `largesse run --report FILE.json` wrote: a file or a pipe, of at most 64 MiB
    #[arg(value_name = "FILE.json")]
    file: PathBuf,
    /// Draw a picture instead, to OUT.svg [default: FILE.svg next to the report]; `-` is standard output
    #[arg(long, value_name = "OUT.svg")]
    svg: Option<Option<PathBuf>>,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let drawn = read(&args.file).and_then(|report| match &args.svg {
        Some(named) => draw(&args.file, &report, named.as_deref()),
        None => print(&args.file, &report),
    });
    match drawn {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("largesse report: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a report; returns null for a file that is not JSON.
fn read(file: &Path) -> Result<Value, Error> {
    let text = bounded::read(file).map_err(|error| Error::Unreadable(file.into(), error))?;
    Ok(serde_json::from_slice(&text).unwrap_or_default())
}

/// Prints a chart of `file`.
fn print(file: &Path, report: &Value) -> Result<(), Error> {
    let (title, moments) = picture::timeline(report).map_err(|why| Error::NoPicture(file.into(), why))?;
    say::raw(format_args!("{}", chart::of(&title, &moments, Paper::here())));
    Ok(())
}

/// Draws the report `file` to the file `named`, or next to the report if no file is named.
fn draw(file: &Path, report: &Value, named: Option<&Path>) -> Result<(), Error> {
    let picture = picture::of(report).map_err(|why| Error::NoPicture(file.into(), why))?;
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

const MAKE: &str = "`largesse run --local SIZE --report FILE.json -- PROGRAM` writes one";

/// The reason why nothing was drawn, and the file in question.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the report {} cannot be read: {}; {MAKE}", name(.0), .1)]
    Unreadable(PathBuf, RefusedFile),
    #[error("{} {}{}", name(.0), .1, advice(.1))]
    NoPicture(PathBuf, NoPicture),
    #[error("{} {}{}", name(.0), .1, other_file(.1))]
    NotWritten(PathBuf, NotWritten),
}

/// Says how to get a report that has a picture.
fn advice(why: &NoPicture) -> String {
    match why {
        NoPicture::NotAReport => format!("; {MAKE}"),
        NoPicture::NoFarMemory => {
            "; run it with far memory: `largesse run --local SIZE --report FILE.json -- PROGRAM`".to_owned()
        }
        NoPicture::NoTimeline { .. } | NoPicture::NotDrawn(_) => String::new(),
    }
}

/// Says how to write the picture to another file.
fn other_file(why: &NotWritten) -> &'static str {
    match why {
        NotWritten::Foreign => "; name a file: `--svg OUT.svg`",
        NotWritten::Refused(_) => "",
    }
}
