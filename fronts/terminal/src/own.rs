//! Finds the running command and the programs installed with it.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Returns the path of the running command; an error when neither `/proc` nor the auxiliary vector has it.
pub fn path() -> std::io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| started_as().ok_or(error))
}

/// Returns the path under which the kernel started this process (`AT_EXECFN`), which needs no `/proc`. A relative
/// path counts from the working directory at the start, which this command does not change.
fn started_as() -> Option<PathBuf> {
    // SAFETY: no preconditions.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) };
    if name == 0 {
        return None;
    }
    // SAFETY: the kernel put a C string there, which lives as long as the process.
    let name = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(usize::try_from(name).ok()?)) };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// Names of the programs that `largesse` executes for some of its subcommands.
const COMPANIONS: [&str; 2] = ["largesse-bench", "largesse-lisp"];

/// Returns the command `largesse`: the running one, or, for a program that it executes, the one in the same folder.
/// If there is none, returns the bare name, which `exec` looks for in `PATH`.
#[must_use]
pub fn command() -> PathBuf {
    let Ok(own) = path() else { return "largesse".into() };
    command_of(own)
}

fn command_of(own: PathBuf) -> PathBuf {
    if !COMPANIONS.iter().any(|name| own.file_name() == Some(OsStr::new(name))) {
        return own;
    }
    beside(&own, "largesse")
}

/// Returns the program `name` in the folder of the running command. If there is none, returns the bare name, which
/// `exec` looks for in `PATH`.
#[must_use]
pub fn companion(name: &str) -> PathBuf {
    path().map_or_else(|_| name.into(), |own| beside(&own, name))
}

fn beside(own: &Path, name: &str) -> PathBuf {
    let there = own.with_file_name(name);
    if there.exists() { there } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_knows_the_path_too() {
        assert_eq!(started_as(), std::env::current_exe().ok());
    }

    #[test]
    fn companions_know_the_command() {
        let renamed = Path::new("/nowhere/lg").to_path_buf();
        assert_eq!(command_of(renamed.clone()), renamed);
        assert_eq!(command_of("/nowhere/largesse-lisp".into()), Path::new("largesse"));
        let folder = std::env::temp_dir().join(format!("largesse-own-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("largesse"), "").unwrap();
        assert_eq!(command_of(folder.join("largesse-bench")), folder.join("largesse"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
