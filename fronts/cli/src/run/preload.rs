//! Composes `LD_PRELOAD`, and detects other allocators in it.

use super::error::LaunchError;
use super::unserved::Unserved;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Parts of file names that identify other allocators.
const ALLOCATORS: [&str; 12] = [
    "jemalloc",
    "mimalloc",
    "tcmalloc",
    "hoard",
    "snmalloc",
    "rpmalloc",
    "scudo",
    "hugetlbfs",
    "tbbmalloc",
    "umem",
    "hardened_malloc",
    "mesh",
];

/// Libraries that intercept malloc themselves and abort unless they are loaded first.
const SANITIZERS: [&str; 5] = ["libasan.so", "libtsan.so", "libmsan.so", "libhwasan.so", "liblsan.so"];

/// The environment that preloads the library.
#[derive(Debug)]
pub(super) struct Preload {
    /// New value of `LD_PRELOAD`.
    pub(super) value: OsString,
    /// Whether another allocator is preloaded, so that tunables of the C library's malloc have no effect.
    pub(super) other_allocator: bool,
}

/// Puts `library` in front of the libraries in `inherited`, once.
pub(super) fn plan(library: &Path, inherited: Option<&OsStr>) -> Result<Preload, LaunchError> {
    let mut value = library.as_os_str().as_bytes().to_vec();
    let mut other_allocator = false;
    for entry in entries(inherited.unwrap_or_default()) {
        let name = file_name(entry);
        if name == "liblargesse.so" {
            continue;
        }
        if let Some(sanitizer) = sanitizer(&name) {
            let chain = vec![PathBuf::from("LD_PRELOAD")];
            return Err(LaunchError::NotServed {
                chain,
                why: Unserved::Sanitizer { name: sanitizer.into() },
            });
        }
        other_allocator |= is_allocator(&name);
        value.push(b':');
        value.extend_from_slice(entry);
    }
    Ok(Preload { value: OsString::from_vec(value), other_allocator })
}

/// Returns the sanitizer to which a library of this file name belongs, if any.
pub(super) fn sanitizer(name: &str) -> Option<&'static str> {
    SANITIZERS.into_iter().find(|known| name.starts_with(known))
}

fn is_allocator(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ALLOCATORS.iter().any(|part| name.contains(part))
}

/// Splits a value of `LD_PRELOAD` at spaces and colons, as the loader does.
fn entries(value: &OsStr) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| matches!(byte, b' ' | b':')).filter(|entry| !entry.is_empty())
}

fn file_name(entry: &[u8]) -> String {
    let name = Path::new(OsStr::from_bytes(entry)).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(inherited: Option<&str>, value: &str, other_allocator: bool) {
        let plan = plan(Path::new("/l/liblargesse.so"), inherited.map(OsStr::new)).unwrap();
        assert_eq!(plan.value, value);
        assert_eq!(plan.other_allocator, other_allocator, "{inherited:?}");
    }

    #[test]
    fn own_library_comes_first_once() {
        check(None, "/l/liblargesse.so", false);
        check(Some(""), "/l/liblargesse.so", false);
        check(Some("/o/liblargesse.so"), "/l/liblargesse.so", false);
        check(Some("/a/x.so:/b/y.so /c/z.so"), "/l/liblargesse.so:/a/x.so:/b/y.so:/c/z.so", false);
    }

    #[test]
    fn other_allocators_are_recognised() {
        check(Some("libjemalloc.so.2"), "/l/liblargesse.so:libjemalloc.so.2", true);
        let tcmalloc = "/u/libtcmalloc_minimal.so.4";
        check(Some(tcmalloc), "/l/liblargesse.so:/u/libtcmalloc_minimal.so.4", true);
    }

    #[test]
    fn preloaded_sanitizer_is_refused() {
        let refused = plan(Path::new("/l/liblargesse.so"), Some(OsStr::new("/usr/lib/libasan.so.8")));
        assert!(refused.unwrap_err().to_string().contains("sanitizer"));
    }
}
