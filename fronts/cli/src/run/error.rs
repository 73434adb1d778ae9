//! The errors of starting a program, with messages that say what to type.

use super::unserved::Unserved;
use largesse_far::FarError;
use largesse_terminal::{line, name, word};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reason why `largesse run` did not start the program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// The command line names no program.
    #[error("no program was given: largesse run [OPTIONS] -- PROGRAM [ARGS]...")]
    NoProgram,
    /// A setting is refused, or far memory cannot be set up.
    #[error(transparent)]
    Setting(#[from] FarError),
    /// The smallest block size is above the largest. Each is given by the option or variable that set it, and in KiB.
    #[error(
        "{} ({} KiB) is above {} ({} KiB): no block would be served; give both",
        .min.0, .min.1, .max.0, .max.1
    )]
    Limits { min: (&'static str, u64), max: (&'static str, u64) },
    /// The report, which `origin` names, cannot be written.
    #[error("{} cannot be written: {error}", largesse_far::shown(.origin, .path))]
    Report { origin: &'static str, path: PathBuf, error: io::Error },
    /// `liblargesse.so` is at none of the paths in `looked`.
    #[error(
        "liblargesse.so was not found{}\nBuild it with `make` in Largesse's sources, or name it: LARGESSE_LIBRARY=/path/to/liblargesse.so",
        searched(.looked)
    )]
    NoLibrary { looked: Vec<PathBuf> },
    /// The file that was found, or that `LARGESSE_LIBRARY` names, is not our library.
    #[error(
        "{} cannot be preloaded: {}\nInstall Largesse again, or build it with `make` in its sources.",
        name(.path),
        line(.why)
    )]
    BadLibrary { path: PathBuf, why: String },
    /// The path has a space or a colon, which `LD_PRELOAD` cannot hold.
    #[error(
        "{} has a space or a colon in its path, which LD_PRELOAD cannot hold; move it, or link to it from elsewhere and set LARGESSE_LIBRARY to the link",
        name(.path)
    )]
    LibraryPath { path: PathBuf },
    /// The program does not exist.
    #[error("{}: {}", word(.name), if .name.contains('/') { "no such file" } else { "not found in PATH" })]
    NotFound { name: String },
    /// The program, or a program that it needs, does not exist, for the reason `why`.
    #[error("{} ({}): no such file", name(.path), line(.why))]
    Incomplete { path: PathBuf, why: String },
    /// The file exists but cannot be executed.
    #[error("{} cannot be executed: {}", name(.path), line(.why))]
    NotExecutable { path: PathBuf, why: String },
    /// The program can run, but the library cannot serve it; `chain` leads from the named script to the program.
    #[error("{} {why}", named(.chain))]
    NotServed { chain: Vec<PathBuf>, why: Unserved },
    /// The watcher that writes the report was not started.
    #[error("{origin}: no private folder in $TMPDIR or /tmp, or no process to write the report: {error}")]
    Watcher { origin: &'static str, error: io::Error },
    /// `exec` failed.
    #[error("{} was not started: {error}", name(.path))]
    Exec { path: PathBuf, error: io::Error },
}

impl LaunchError {
    pub(super) fn exec(path: &Path, error: &io::Error) -> LaunchError {
        let error = error.raw_os_error().map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
        LaunchError::Exec { path: path.to_owned(), error }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            LaunchError::Setting(error) => return error.exit_code(),
            LaunchError::NoProgram | LaunchError::Limits { .. } => 2,
            LaunchError::Report { .. }
            | LaunchError::Watcher { .. }
            | LaunchError::NoLibrary { .. }
            | LaunchError::BadLibrary { .. }
            | LaunchError::LibraryPath { .. } => 125,
            LaunchError::NotExecutable { .. } | LaunchError::NotServed { .. } => 126,
            LaunchError::NotFound { .. } | LaunchError::Incomplete { .. } => 127,
            LaunchError::Exec { error, .. } => match error.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            },
        })
    }
}

/// Says where the library was looked for.
fn searched(looked: &[PathBuf]) -> String {
    if looked.is_empty() {
        return ": this command cannot tell its own folder (/proc is missing)".to_owned();
    }
    let paths = looked.iter().map(|path| format!("\n  {}", name(path)));
    "; looked at".to_owned() + &paths.collect::<String>()
}

/// Names the program at the end of `chain`, and the last script that leads to it.
fn named(chain: &[PathBuf]) -> String {
    let (file, scripts) =
        chain.split_last().map_or((Path::new("?"), [].as_slice()), |(file, rest)| (file, rest));
    match scripts.last() {
        Some(script) => format!("{} (which runs {})", name(file), name(script)),
        None => name(file),
    }
}
