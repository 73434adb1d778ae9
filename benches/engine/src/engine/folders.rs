//! Finds the folder of the benches, and makes temporary ones.

use super::Result;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Returns the folder with `definitions` and `programs`: the named one, else the one installed with the command, else
/// the one of the checkout that the command was built in.
pub(crate) fn benches(named: Option<&Path>) -> Result<PathBuf> {
    let looked = match named {
        Some(named) => vec![named.to_owned()],
        None => around(&largesse_terminal::own::path().unwrap_or_default()),
    };
    let is_one = |root: &&PathBuf| root.join("definitions").is_dir() && root.join("programs").is_dir();
    looked.iter().find(is_one).cloned().ok_or_else(|| {
        let looked: String = looked.iter().map(|path| format!("\n  {}", path.display())).collect();
        format!(
            "no benches found; --programs DIR says where `definitions` and `programs` are. Looked in:{looked}"
        )
    })
}

fn around(command: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(prefix) = command.parent().and_then(Path::parent) {
        places.push(prefix.join("share/largesse/benches"));
    }
    // The command may be `target/release/largesse` of a checkout.
    places.extend(command.ancestors().skip(3).take(2).map(|above| above.join("benches")));
    places.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches"));
    places
}

/// A temporary directory that only this user may enter, under a name that another user cannot take first. It is
/// removed with its contents when dropped.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// Creates the directory in `$TMPDIR`, or in `/tmp`.
    pub(crate) fn new() -> Result<TempDir> {
        let template = std::env::temp_dir().join("largesse-bench-XXXXXX");
        let refused = |why: io::Error| format!("{}: {why}", template.display());
        let name = CString::new(template.as_os_str().as_bytes()).map_err(|why| refused(why.into()))?;
        let mut name = name.into_bytes_with_nul();
        // SAFETY: the bytes are a C string that ends in six X, which the call replaces in place.
        if unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) }.is_null() {
            return Err(refused(io::Error::last_os_error()));
        }
        name.pop();
        Ok(TempDir(OsString::from_vec(name).into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn commands_search_share_then_their_checkout() {
        let places = around(Path::new("/usr/bin/largesse"));
        assert_eq!(places[0], Path::new("/usr/share/largesse/benches"));
        let places = around(Path::new("/x/target/release/largesse"));
        assert!(places.contains(&PathBuf::from("/x/benches")), "{places:?}");
        let message = benches(Some(Path::new("/nowhere"))).unwrap_err();
        assert!(message.contains("/nowhere") && message.contains("--programs"), "{message}");
    }

    #[test]
    fn directories_are_private_and_removed() {
        let [one, other] = [(); 2].map(|()| TempDir::new().unwrap());
        assert_ne!(one.path(), other.path());
        let mode = std::fs::metadata(one.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "the rights of {}", one.path().display());
        let path = one.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        drop(one);
        assert!(!path.exists(), "{} was not removed", path.display());
    }
}
