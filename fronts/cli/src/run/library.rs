//! Finds and checks `liblargesse.so` and the libraries in its folder before a program preloads them.

use super::elf::{Elf, Unreadable};
use super::error::LaunchError;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The symbol that distinguishes our library from other files of this name.
const SYMBOL: &str = "largesse_version";

/// Returns the library at `named` (LARGESSE_LIBRARY), or else the first one found near this command.
pub(super) fn find(named: Option<OsString>) -> Result<PathBuf, LaunchError> {
    checked(largesse_far::library(named).map_err(|looked| LaunchError::NoLibrary { looked })?, SYMBOL)
}

/// Returns the library `name`, which defines `symbol`, in the folder of `liblargesse.so`.
pub(super) fn companion(library: &Path, name: &str, symbol: &str) -> Result<PathBuf, LaunchError> {
    checked(library.with_file_name(name), symbol)
}

/// Checks that `path` can be preloaded and defines `symbol`. The loader itself would only print a warning and go on.
fn checked(path: PathBuf, symbol: &str) -> Result<PathBuf, LaunchError> {
    let bad = |why: String| LaunchError::BadLibrary { path: path.clone(), why };
    let file = File::open(&path).map_err(|error| bad(error.to_string()))?;
    let elf = Elf::read(&file).map_err(|error| {
        bad(match error {
            Unreadable::Unserved(_) => "it is built for another processor".into(),
            Unreadable::Damaged(why) => format!("it is no shared library ({why})"),
        })
    })?;
    if !elf.defines(symbol) {
        return Err(bad(format!("it does not define {symbol}, so it is not Largesse's library")));
    }
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        return Err(LaunchError::LibraryPath { path });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_library_is_refused() {
        let message = checked("/proc/self/exe".into(), SYMBOL).unwrap_err().to_string();
        assert!(message.contains("largesse_version"), "{message}");
        let message = checked("/proc/self/maps".into(), SYMBOL).unwrap_err().to_string();
        assert!(message.contains("no shared library"), "{message}");
        assert!(
            checked("/nowhere/liblargesse.so".into(), SYMBOL)
                .unwrap_err()
                .to_string()
                .contains("No such file")
        );
    }
}
