//! Where the running command and its companions lie.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Returns the path of the running command; an error when neither `/proc` nor the kernel's own note says it.
pub fn path() -> std::io::Result<PathBuf> {
    std::env::current_exe().or_else(|error| started_as().ok_or(error))
}

/// Returns the path under which the kernel started this process, which needs no `/proc`. A relative one counts from the
/// folder of that moment, which this command does not leave.
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

/// Returns the program `name` beside the running command; otherwise the name alone, which is looked for in `PATH`.
#[must_use]
pub fn companion(name: &str) -> PathBuf {
    let beside = path().map(|own| own.with_file_name(name)).ok();
    beside.filter(|path| path.exists()).unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_knows_the_path_too() {
        assert_eq!(started_as(), std::env::current_exe().ok());
    }
}
