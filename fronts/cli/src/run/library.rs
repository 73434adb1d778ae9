//! Where `liblargesse.so` is.

use super::elf::{Elf, Unreadable};
use super::trouble::Trouble;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

const NAME: &str = "liblargesse.so";
/// What tells our library from any other file of this name.
const SYMBOL: &str = "largesse_version";

/// The library that `named` (LARGESSE_LIBRARY) says, or the first one found around this program.
pub(super) fn find(named: Option<OsString>) -> Result<PathBuf, Trouble> {
    if let Some(named) = named {
        let path = PathBuf::from(named);
        let path = std::path::absolute(&path).unwrap_or(path);
        return checked(path, SYMBOL);
    }
    let program = crate::own::path().unwrap_or_default();
    let looked = places(&program, |directory| directory.join("CACHEDIR.TAG").exists());
    match looked.iter().find(|path| path.exists()) {
        Some(path) => checked(path.clone(), SYMBOL),
        None => Err(Trouble::NoLibrary { looked }),
    }
}

/// Returns the library `name`, which defines `symbol`, in the folder of `liblargesse.so`.
pub(super) fn companion(library: &Path, name: &str, symbol: &str) -> Result<PathBuf, Trouble> {
    checked(library.with_file_name(name), symbol)
}

/// Where to look for the library of the command `program`, in order. In a Cargo checkout
/// (`is_target` knows the folder) the file beside the command is a debug build without the
/// `preload` profile, which nobody wants to measure: it is not considered.
fn places(program: &Path, is_target: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let Some(folder) = program.parent() else { return Vec::new() };
    let above = folder.parent();
    if let Some(target) = above.filter(|target| is_target(target)) {
        return vec![target.join("preload").join(NAME), target.join("preload-checked").join(NAME)];
    }
    let mut places = vec![folder.join(NAME)];
    if let Some(above) = above {
        places.push(above.join("lib").join(NAME));
        places.push(above.join("lib/largesse").join(NAME));
    }
    places
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

    #[track_caller]
    fn check(program: &str, in_checkout: bool, want: &[&str]) {
        let found = places(Path::new(program), |_| in_checkout);
        assert_eq!(found, want.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn an_installed_command_looks_beside_itself_then_in_lib() {
        let want = ["/usr/bin/liblargesse.so", "/usr/lib/liblargesse.so", "/usr/lib/largesse/liblargesse.so"];
        check("/usr/bin/largesse", false, &want);
    }

    #[test]
    fn a_command_in_a_checkout_takes_the_preload_build() {
        let want = ["/x/target/preload/liblargesse.so", "/x/target/preload-checked/liblargesse.so"];
        check("/x/target/debug/largesse", true, &want);
    }

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
