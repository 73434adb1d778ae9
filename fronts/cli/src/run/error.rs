//! Why a program was not started, in words that say what to type.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Why `largesse run` did not start the program.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No program on the command line.
    NoProgram,
    /// A setting is refused, or far memory cannot be made ready.
    Setting(largesse_far::Error),
    /// The smallest size is above the largest.
    Limits { min: (&'static str, u64), max: (&'static str, u64) },
    /// The report cannot be written.
    Report { path: PathBuf, error: io::Error },
    /// `liblargesse.so` was not found.
    NoLibrary { looked: Vec<PathBuf> },
    /// `LARGESSE_LIBRARY` or what was found is not our library.
    BadLibrary { path: PathBuf, why: String },
    /// The loader separates the names in `LD_PRELOAD` by spaces and colons.
    LibraryPath { path: PathBuf },
    /// No such program.
    NotFound { name: String },
    /// There is such a file, and it cannot be executed.
    NotExecutable { path: PathBuf, why: String },
    /// The program can run, but the library cannot serve it.
    NotServed { chain: Vec<PathBuf>, why: Unserved },
    /// The watcher that writes the report was not started.
    Watcher(io::Error),
    /// `exec` failed.
    Exec { path: PathBuf, error: io::Error },
}

/// Why the library cannot serve a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// No dynamic loader is named.
    Static,
    /// A loader, but no shared library.
    NoLibraries,
    /// The loader of the musl C library.
    Musl,
    /// Runs with the rights of its owner or group.
    SetId { what: &'static str },
    /// Runs with capabilities written on the file.
    Capabilities,
    /// 32-bit code.
    Bits32,
    /// For another processor.
    Machine { number: u16 },
    /// Built with a sanitizer, which must be the first allocator.
    Sanitizer { name: String },
    /// Linked with an MPI library, while ranks are to hold its pages.
    Mpi { library: String },
}

impl From<largesse_far::Error> for Trouble {
    fn from(error: largesse_far::Error) -> Trouble {
        Trouble::Setting(error)
    }
}

impl Trouble {
    pub(super) fn exec(path: &Path, error: &io::Error) -> Trouble {
        let error = error.raw_os_error().map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
        Trouble::Exec { path: path.to_owned(), error }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Trouble::Setting(error) => return error.exit_code(),
            Trouble::NoProgram | Trouble::Limits { .. } => 2,
            Trouble::Report { .. }
            | Trouble::Watcher(_)
            | Trouble::NoLibrary { .. }
            | Trouble::BadLibrary { .. }
            | Trouble::LibraryPath { .. } => 125,
            Trouble::NotExecutable { .. } | Trouble::NotServed { .. } => 126,
            Trouble::NotFound { .. } => 127,
            Trouble::Exec { error, .. } => match error.kind() {
                io::ErrorKind::NotFound => 127,
                _ => 126,
            },
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NoProgram => {
                write!(f, "no program was given: largesse run [OPTIONS] -- PROGRAM [ARGS]...")
            }
            Trouble::Setting(error) => error.fmt(f),
            Trouble::Limits { min: (min, least), max: (max, most) } => {
                write!(
                    f,
                    "{min} ({least} KiB) is above {max} ({most} KiB): no block would be taken; give both"
                )
            }
            Trouble::Report { path, error } => {
                write!(f, "--report: {} cannot be written: {error}", path.display())
            }
            Trouble::NoLibrary { looked } => {
                if looked.is_empty() {
                    writeln!(
                        f,
                        "liblargesse.so was not found: this command cannot tell where it lies (/proc is missing)"
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
            Trouble::BadLibrary { path, why } => {
                write!(
                    f,
                    "{} cannot be preloaded: {why}\nBuild it with `make` in Largesse's sources.",
                    path.display()
                )
            }
            Trouble::LibraryPath { path } => write!(
                f,
                "{} has a space or a colon in its path, which LD_PRELOAD cannot hold; move it, or link to it from elsewhere and set LARGESSE_LIBRARY to the link",
                path.display()
            ),
            Trouble::Watcher(error) => write!(
                f,
                "--report: no private folder in $TMPDIR or /tmp, or no process that looks on: {error}"
            ),
            Trouble::NotFound { name } if name.contains('/') => write!(f, "{name}: no such file"),
            Trouble::NotFound { name } => write!(f, "{name}: not found in PATH"),
            Trouble::NotExecutable { path, why } => write!(f, "{} cannot be executed: {why}", path.display()),
            Trouble::NotServed { chain, why } => {
                let (file, scripts) =
                    chain.split_last().map_or((Path::new("?"), [].as_slice()), |(file, rest)| (file, rest));
                write!(f, "{}", file.display())?;
                if let Some(script) = scripts.last() {
                    write!(f, " (which runs {})", script.display())?;
                }
                write!(f, " {why}")
            }
            Trouble::Exec { path, error } => write!(f, "{} was not started: {error}", path.display()),
        }
    }
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unserved::Static => write!(
                f,
                "is statically linked: no library can be preloaded into it.\nLink it dynamically (without -static), or start it without Largesse."
            ),
            Unserved::NoLibraries => write!(
                f,
                "uses no shared library, so that it has no malloc to replace.\nLink it with the C library, or start it without Largesse."
            ),
            Unserved::Musl => write!(
                f,
                "is linked with the musl C library; liblargesse.so needs the GNU C library.\nUse a build of the program for glibc."
            ),
            Unserved::SetId { what } => write!(
                f,
                "is {what}: the loader ignores LD_PRELOAD in programs that change their rights.\nStart Largesse with those rights instead (`sudo largesse run -- PROGRAM`), or run a copy without the bit (chmod u-s,g-s)."
            ),
            Unserved::Capabilities => write!(
                f,
                "has file capabilities (getcap shows them): the loader ignores LD_PRELOAD in programs that gain rights.\nRun a copy without them (cp drops them)."
            ),
            Unserved::Bits32 => write!(
                f,
                "is a 32-bit program; liblargesse.so is 64-bit.\nUse a 64-bit build of the program."
            ),
            Unserved::Machine { number } => write!(
                f,
                "is built for another processor ({}; this one is {}).",
                super::elf::machine_name(*number),
                std::env::consts::ARCH
            ),
            Unserved::Mpi { library } => write!(
                f,
                "uses MPI itself ({library}): the ranks of its mpirun cannot hold its pages as well.\nUse another store: --far file:PATH."
            ),
            Unserved::Sanitizer { name } => write!(
                f,
                "is built with a sanitizer ({name}), which watches malloc itself.\nStart it without Largesse, or build it without -fsanitize."
            ),
        }
    }
}
