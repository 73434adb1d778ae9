//! Finds the program as `execvp` does, follows scripts to their interpreter, and checks that it can be served.

use super::elf::{Elf, Unreadable};
use super::error::LaunchError;
use super::unserved::Unserved;
use largesse_terminal::name;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Search path of the C library when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The shell with which `execvp` runs a text without `#!`.
const SHELL: &str = "/bin/sh";
/// Largest number of nested interpreters that the kernel follows.
const MOST_SCRIPTS: usize = 5;
/// Number of bytes of a `#!` line that the kernel reads.
const MOST_LINE: usize = 256;

/// A file that can be executed.
#[derive(Debug)]
pub(super) struct Executable {
    pub(super) path: PathBuf,
}

/// Findings about the files from the named program to the executed one: scripts, their interpreters, and the
/// executable.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    /// Hints to the user about a program that can be served.
    pub(super) hints: Vec<String>,
    /// For a program that uses MPI itself, the error to report if MPI ranks are to hold its pages.
    pub(super) mpi: Option<LaunchError>,
}

enum Content {
    Elf,
    /// A text with `#!`, the interpreter and at most one argument.
    Script {
        interpreter: PathBuf,
        argument: Option<String>,
    },
    /// A text without `#!`.
    Plain,
    Other,
}

impl Executable {
    /// Finds the executable `name` in the search path `path`, as `execvp` does.
    pub(super) fn find(name: &OsStr, path: Option<&OsStr>) -> Result<Executable, LaunchError> {
        let not_found = || LaunchError::NotFound { name: name.to_string_lossy().into_owned() };
        if name.is_empty() {
            return Err(not_found());
        }
        if name.as_bytes().contains(&b'/') {
            let path = PathBuf::from(name);
            return match executable(&path) {
                Ok(()) => Ok(Executable { path }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
                Err(error) => Err(LaunchError::NotExecutable { path, why: why_not(&error) }),
            };
        }
        let mut refused = None;
        for directory in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
            let directory = if directory.as_os_str().is_empty() { PathBuf::from(".") } else { directory };
            let path = directory.join(name);
            match executable(&path) {
                Ok(()) => return Ok(Executable { path }),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path.is_file() => {
                    refused.get_or_insert(LaunchError::NotExecutable { path, why: why_not(&error) });
                }
                Err(_) => {}
            }
        }
        Err(refused.unwrap_or_else(not_found))
    }

    /// Follows scripts to the code that runs, and checks that it can be served.
    pub(super) fn inspect(&self, path: Option<&OsStr>) -> Result<Inspection, LaunchError> {
        let mut chain = vec![self.path.clone()];
        let mut inspection = Inspection::default();
        loop {
            let file_path = chain.last().unwrap_or(&self.path).clone();
            let unserved = |why| LaunchError::NotServed { chain: chain.clone(), why };
            let file = match File::open(&file_path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let hint = "may be executed but not read; whether it can be served was not checked";
                    inspection.hints.push(format!("{} {hint}", name(&file_path)));
                    return Ok(inspection);
                }
                Err(error) => return Err(LaunchError::exec(&file_path, &error)),
            };
            let next = match content(&file).map_err(|error| LaunchError::exec(&file_path, &error))? {
                Content::Elf => {
                    check_rights(&file, &file_path).map_err(&unserved)?;
                    let mpi = check_elf(&file, &file_path, unserved)?;
                    inspection.mpi = mpi.map(|library| unserved(Unserved::Mpi { library }));
                    return Ok(inspection);
                }
                Content::Script { interpreter, argument } => {
                    follow(&file_path, interpreter, argument.as_deref(), path)?
                }
                Content::Plain => PathBuf::from(SHELL),
                Content::Other => {
                    let why = "it is neither an ELF program nor a script".into();
                    return Err(LaunchError::NotExecutable { path: file_path, why });
                }
            };
            if chain.len() > MOST_SCRIPTS {
                let why = "too many scripts that name each other as interpreters".into();
                return Err(LaunchError::NotExecutable { path: self.path.clone(), why });
            }
            chain.push(next);
        }
    }
}

/// Returns the interpreter of `script`, or the program that `/usr/bin/env` would start if its argument is a plain name.
fn follow(
    script: &Path,
    interpreter: PathBuf,
    argument: Option<&str>,
    path: Option<&OsStr>,
) -> Result<PathBuf, LaunchError> {
    if let Err(error) = executable(&interpreter) {
        let why = format!("its interpreter {}: {}", name(&interpreter), why_not(&error));
        return Err(match error.kind() {
            io::ErrorKind::NotFound => LaunchError::Incomplete { path: script.to_owned(), why },
            _ => LaunchError::NotExecutable { path: script.to_owned(), why },
        });
    }
    let plain = argument.filter(|word| !word.starts_with('-') && !word.contains('='));
    match plain {
        Some(word) if interpreter.file_name() == Some(OsStr::new("env")) => {
            Ok(Executable::find(OsStr::new(word), path)?.path)
        }
        _ => Ok(interpreter),
    }
}

/// Refuses set-id programs and file capabilities, for which the loader ignores LD_PRELOAD. Refuses a set-id bit even if
/// it changes nothing for this user, so that the answer is the same for all users.
fn check_rights(file: &File, path: &Path) -> Result<(), Unserved> {
    let mode = file.metadata().map_or(0, |data| data.mode());
    if mode & libc::S_ISUID != 0 {
        return Err(Unserved::SetId { what: "setuid" });
    }
    // Without the group's x bit, S_ISGID meant mandatory locking.
    if mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 {
        return Err(Unserved::SetId { what: "setgid" });
    }
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return Ok(()) };
    // SAFETY: both names end with a zero; with length 0 nothing is written.
    let len =
        unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) };
    if len > 0 { Err(Unserved::Capabilities) } else { Ok(()) }
}

/// Checks that the program can be served, and returns the MPI library with which it is linked.
fn check_elf(
    file: &File,
    path: &Path,
    unserved: impl Fn(Unserved) -> LaunchError,
) -> Result<Option<String>, LaunchError> {
    let elf = Elf::read(file).map_err(|error| match error {
        Unreadable::Unserved(why) => unserved(why),
        Unreadable::Damaged(why) => LaunchError::NotExecutable { path: path.to_owned(), why },
    })?;
    // The loader itself (`ld.so PROGRAM`) names no loader, but preloads libraries.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("ld-linux") || name == "ld.so" {
        return Ok(None);
    }
    elf.served().map_err(unserved)?;
    if let Some(loader) = elf.interpreter().filter(|loader| !Path::new(loader).exists()) {
        let why = format!("its loader {loader}: no such file");
        return Err(LaunchError::Incomplete { path: path.to_owned(), why });
    }
    Ok(elf.mpi().map(str::to_owned))
}

fn content(mut file: &File) -> io::Result<Content> {
    let mut start = Vec::with_capacity(MOST_LINE);
    file.by_ref().take(MOST_LINE as u64).read_to_end(&mut start)?;
    if start.starts_with(&object::elf::ELFMAG) {
        return Ok(Content::Elf);
    }
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(words) = line.strip_prefix(b"#!") else {
        return Ok(if line.contains(&0) { Content::Other } else { Content::Plain });
    };
    let words = words.trim_ascii();
    let end = words.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(words.len());
    let (interpreter, argument) = words.split_at(end);
    if interpreter.is_empty() {
        return Ok(Content::Plain);
    }
    let argument = String::from_utf8_lossy(argument.trim_ascii()).into_owned();
    Ok(Content::Script {
        interpreter: PathBuf::from(OsStr::from_bytes(interpreter)),
        argument: (!argument.is_empty()).then_some(argument),
    })
}

/// Checks that this process may execute `path`.
fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `name` ends with a zero.
    let rc = unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn why_not(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "no permission to execute it (chmod +x?)".into(),
        io::ErrorKind::IsADirectory => "it is a directory".into(),
        io::ErrorKind::NotFound => "no such file".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, path: &str) -> Result<PathBuf, String> {
        let program = Executable::find(OsStr::new(name), Some(OsStr::new(path)));
        program.map(|program| program.path).map_err(|error| error.to_string())
    }

    #[test]
    fn only_names_are_searched_in_path() {
        assert_eq!(found("sh", "/nowhere:/bin"), Ok("/bin/sh".into()));
        assert_eq!(found("/bin/sh", ""), Ok("/bin/sh".into()));
        assert_eq!(found("sh", "/nowhere"), Err("sh: not found in PATH".into()));
        assert_eq!(found("./sh", "/bin"), Err("./sh: no such file".into()));
        assert_eq!(found("", "/bin"), Err("'': not found in PATH".into()));
        assert!(found("/bin", "").unwrap_err().contains("it is a directory"));
    }

    #[test]
    fn script_tells_its_interpreter() {
        let folder = std::env::temp_dir().join(format!("largesse-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("script");
        let check = |text: &[u8], want: Option<(&str, Option<&str>)>| {
            std::fs::write(&path, text).unwrap();
            let content = content(&File::open(&path).unwrap()).unwrap();
            match (content, want) {
                (Content::Script { interpreter, argument }, Some((name, word))) => {
                    assert_eq!((interpreter.to_str(), argument.as_deref()), (Some(name), word));
                }
                (Content::Plain, None) => {}
                _ => panic!("{}", String::from_utf8_lossy(text)),
            }
        };
        check(b"#!/bin/sh\nexit 0\n", Some(("/bin/sh", None)));
        check(b"#! /usr/bin/env  python3 \n", Some(("/usr/bin/env", Some("python3"))));
        check(b"#!/usr/bin/awk -f", Some(("/usr/bin/awk", Some("-f"))));
        check(b"echo no interpreter\n", None);
        check(b"#!\n", None);
        check(b"", None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
