//! Finds `liblargesse.so`.

use crate::own;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const NAME: &str = "liblargesse.so";

/// Returns the path `named` (the value of `LARGESSE_LIBRARY`) if it is given, otherwise the first library found near
/// this program. The contents of the file are not checked.
///
/// # Errors
/// Returns the paths that were searched if there is no file at any of them.
pub fn library(named: Option<OsString>) -> Result<PathBuf, Vec<PathBuf>> {
    if let Some(named) = named {
        let path = PathBuf::from(named);
        return Ok(std::path::absolute(&path).unwrap_or(path));
    }
    let program = own::path().unwrap_or_default();
    let looked = places(&program, is_cargos);
    looked.iter().find(|path| path.exists()).cloned().ok_or(looked)
}

/// Returns whether `folder` is one to which Cargo writes the files that it builds: its marker `CACHEDIR.TAG` names
/// Cargo. Other programs, such as conda, mark folders by files of that name, too.
fn is_cargos(folder: &Path) -> bool {
    std::fs::read_to_string(folder.join("CACHEDIR.TAG")).is_ok_and(|tag| tag.contains("by cargo"))
}

/// Returns the paths to search for the library of the command `program`, in order. If the command lies in Cargo's build
/// folder (`is_target`), the file next to it is not searched: that is a debug build without the profile `preload`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: &str, in_checkout: bool, want: &[&str]) {
        let found = places(Path::new(program), |_| in_checkout);
        assert_eq!(found, want.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn installed_commands_search_their_folder_then_lib() {
        let want = ["/usr/bin/liblargesse.so", "/usr/lib/liblargesse.so", "/usr/lib/largesse/liblargesse.so"];
        check("/usr/bin/largesse", false, &want);
    }

    #[test]
    fn folders_of_cargo_are_recognized() {
        let folder = std::env::temp_dir().join(format!("largesse-cachedir-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let tagged = |tag: &str| {
            std::fs::write(folder.join("CACHEDIR.TAG"), tag).unwrap();
            is_cargos(&folder)
        };
        assert!(tagged("# This file is a cache directory tag created by cargo."));
        assert!(!tagged("# This file is a cache directory tag created by rattler."));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!is_cargos(&folder));
    }

    #[test]
    fn commands_in_checkouts_take_the_preload_build() {
        let want = ["/x/target/preload/liblargesse.so", "/x/target/preload-checked/liblargesse.so"];
        check("/x/target/debug/largesse", true, &want);
    }
}
