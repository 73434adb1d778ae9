//! The errors of starting a program, with messages that say what to type.

use super::unserved::Unserved;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reason why `largesse run` did not start the program.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line names no program.
    NoProgram,
    /// A setting is refused, or far memory cannot be set up.
    Setting(largesse_far::Error),
    /// The smallest block size is above the largest; each has its origin and KiB.
    Limits { min: (&'static str, u64), max: (&'static str, u64) },
    /// The report cannot be written.
    Report { path: PathBuf, error: io::Error },
    /// `liblargesse.so` is at none of the paths in `looked`.
    NoLibrary { looked: Vec<PathBuf> },
    /// The file that was found, or that `LARGESSE_LIBRARY` names, is not our library.
    BadLibrary { path: PathBuf, why: String },
    /// The path has a space or a colon, which `LD_PRELOAD` cannot hold.
    LibraryPath { path: PathBuf },
    /// The program does not exist.
    NotFound { name: String },
    /// The file exists but cannot be executed.
    NotExecutable { path: PathBuf, why: String },
    /// The program can run, but the library cannot serve it; `chain` leads from the named script to the program.
    NotServed { chain: Vec<PathBuf>, why: Unserved },
    /// The watcher that writes the report was not started.
    Watcher(io::Error),
    /// `exec` failed.
    Exec { path: PathBuf, error: io::Error },
}

impl From<largesse_far::Error> for Error {
    fn from(error: largesse_far::Error) -> Error {
        Error::Setting(error)
    }
}

impl Error {
    pub(super) fn exec(path: &Path, error: &io::Error) -> Error {
        let error = error.raw_os_error().map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
        Error::Exec { path: path.to_owned(), error }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Error::Setting(error) => return error.exit_code(),
            Error::NoProgram | Error::Limits { .. } => 2,
            Error::Report { .. }
            | Error::Watcher(_)
            | Error::NoLibrary { .. }
            | Error::BadLibrary { .. }
            | Error::LibraryPath { .. } => 125,
            Error::NotExecutable { .. } | Error::NotServed { .. } => 126,
            Error::NotFound { .. } => 127,
            Error::Exec { error, .. } => match error.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            },
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProgram => {
                write!(f, "no program was given: largesse run [OPTIONS] -- PROGRAM [ARGS]...")
            }
            Error::Setting(error) => error.fmt(f),
            Error::Limits { min: (min, least), max: (max, most) } => {
                write!(
                    f,
                    "{min} ({least} KiB) is above {max} ({most} KiB): no block would be served; give both"
                )
            }
            Error::Report { path, error } => {
                write!(f, "--report: {} cannot be written: {error}", path.display())
            }
            Error::NoLibrary { looked } => {
                if looked.is_empty() {
                    writeln!(
                        f,
                        "liblargesse.so was not found: this command cannot tell its own folder (/proc is missing)"
                    )?;
                } else {
                    writeln!(f, "liblargesse.so was not found; looked at")?;
                }
                for path in looked {
                    writeln!(f, "  {}", path.display())?;
                }
                write!(
                    f,
                    "Build it with `make` in Largesse's sources, or name it: LARGESSE_LIBRARY=/path/to/liblargesse.so"
                )
            }
            Error::BadLibrary { path, why } => {
                write!(
                    f,
                    "{} cannot be preloaded: {why}\nBuild it with `make` in Largesse's sources.",
                    path.display()
                )
            }
            Error::LibraryPath { path } => write!(
                f,
                "{} has a space or a colon in its path, which LD_PRELOAD cannot hold; move it, or link to it from elsewhere and set LARGESSE_LIBRARY to the link",
                path.display()
            ),
            Error::Watcher(error) => write!(
                f,
                "--report: no private folder in $TMPDIR or /tmp, or no process to write the report: {error}"
            ),
            Error::NotFound { name } if name.contains('/') => write!(f, "{name}: no such file"),
            Error::NotFound { name } => write!(f, "{name}: not found in PATH"),
            Error::NotExecutable { path, why } => write!(f, "{} cannot be executed: {why}", path.display()),
            Error::NotServed { chain, why } => {
                let (file, scripts) =
                    chain.split_last().map_or((Path::new("?"), [].as_slice()), |(file, rest)| (file, rest));
                write!(f, "{}", file.display())?;
                if let Some(script) = scripts.last() {
                    write!(f, " (which runs {})", script.display())?;
                }
                write!(f, " {why}")
            }
            Error::Exec { path, error } => write!(f, "{} was not started: {error}", path.display()),
        }
    }
}
