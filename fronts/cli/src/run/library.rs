//! `liblargesse.so`, and what lies beside it, checked before a program is told to load it.

use super::elf::{Elf, Unreadable};
use super::error::Trouble;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

/// What tells our library from any other file of this name.
const SYMBOL: &str = "largesse_version";

/// The library that `named` (LARGESSE_LIBRARY) says, or the first one found around this program.
pub(super) fn find(named: Option<OsString>) -> Result<PathBuf, Trouble> {
    checked(largesse_far::library(named).map_err(|looked| Trouble::NoLibrary { looked })?, SYMBOL)
}

/// Returns the library `name`, which defines `symbol`, in the folder of `liblargesse.so`.
pub(super) fn companion(library: &Path, name: &str, symbol: &str) -> Result<PathBuf, Trouble> {
    checked(library.with_file_name(name), symbol)
}

/// The loader would pass over a file it cannot load with a line that is easily missed.
fn checked(path: PathBuf, symbol: &str) -> Result<PathBuf, Trouble> {
    let bad = |why: String| Trouble::BadLibrary { path: path.clone(), why };
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
        return Err(Trouble::LibraryPath { path });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_our_library_is_refused() {
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
