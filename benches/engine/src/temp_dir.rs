//! Makes temporary directories for files that a benchmark builds or writes.

use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A temporary directory that only this user may enter, under a name that another user cannot take first. It is
/// removed with its contents when dropped.
#[derive(Debug)]
pub(super) struct TempDir(PathBuf);

impl TempDir {
    /// Creates the directory in `$TMPDIR`, or in `/tmp`. The error is a sentence for the user.
    pub(super) fn new() -> Result<TempDir, String> {
        let template = std::env::temp_dir().join("largesse-bench-XXXXXX");
        let refused = |why: io::Error| format!("{}: {why}", template.display());
        let name = CString::new(template.as_os_str().as_bytes()).map_err(|why| refused(why.into()))?;
        let name = name.into_raw();
        // SAFETY: the pointer is to a C string that is ours alone; it ends in six X, which the call replaces in
        // place.
        let made = unsafe { libc::mkdtemp(name) };
        let error = io::Error::last_os_error();
        // SAFETY: the pointer comes from `into_raw`, and the string's length has not changed.
        let name = unsafe { CString::from_raw(name) };
        if made.is_null() {
            return Err(refused(error));
        }
        Ok(TempDir(OsString::from_vec(name.into_bytes()).into()))
    }

    pub(super) fn path(&self) -> &Path {
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
