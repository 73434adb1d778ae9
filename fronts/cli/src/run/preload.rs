//! What goes into `LD_PRELOAD`, and who serves what when another allocator is named there too.

use super::trouble::{Trouble, Unserved};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Parts of file names by which other allocators are known, and what to call them.
const ALLOCATORS: [(&str, &str); 12] = [
    ("jemalloc", "jemalloc"),
    ("mimalloc", "mimalloc"),
    ("tcmalloc", "tcmalloc"),
    ("hoard", "Hoard"),
    ("snmalloc", "snmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("scudo", "Scudo"),
    ("hugetlbfs", "libhugetlbfs"),
    ("tbbmalloc", "TBB malloc"),
    ("umem", "libumem"),
    ("hardened_malloc", "hardened_malloc"),
    ("mesh", "Mesh"),
];

/// Libraries that watch malloc themselves and abort when they are not first.
const SANITIZERS: [&str; 5] = ["libasan.so", "libtsan.so", "libmsan.so", "libhwasan.so", "liblsan.so"];

/// The new value, and what to tell the user about it.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) value: OsString,
    pub(super) hints: Vec<String>,
}

/// Puts `library` before what `inherited` names already; never twice.
pub(super) fn plan(library: &Path, inherited: Option<&OsStr>) -> Result<Plan, Trouble> {
    let mut value = library.as_os_str().as_bytes().to_vec();
    let mut hints = Vec::new();
    for entry in entries(inherited.unwrap_or_default()) {
        let name = file_name(entry);
        if name == "liblargesse.so" {
            continue;
        }
        if let Some(sanitizer) = sanitizer(&name) {
            let chain = vec![PathBuf::from("LD_PRELOAD")];
            return Err(Trouble::NotServed { chain, why: Unserved::Sanitizer { name: sanitizer.into() } });
        }
        if let Some(other) = allocator(&name) {
            hints.push(format!(
                "{other} is preloaded too: large blocks are served by Largesse, small ones by {other}"
            ));
        }
        value.push(b':');
        value.extend_from_slice(entry);
    }
    Ok(Plan { value: OsString::from_vec(value), hints })
}

/// The sanitizer that a library of this file name belongs to.
pub(super) fn sanitizer(name: &str) -> Option<&'static str> {
    SANITIZERS.into_iter().find(|known| name.starts_with(known))
}

fn allocator(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    ALLOCATORS.iter().find(|(part, _)| name.contains(part)).map(|(_, called)| *called)
}

/// The loader separates by spaces and colons.
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
    fn check(inherited: Option<&str>, value: &str, hint: Option<&str>) {
        let plan = plan(Path::new("/l/liblargesse.so"), inherited.map(OsStr::new)).unwrap();
        assert_eq!(plan.value, value);
        assert_eq!(plan.hints.len(), usize::from(hint.is_some()), "{:?}", plan.hints);
        if let Some(hint) = hint {
            assert!(plan.hints[0].contains(hint), "{}", plan.hints[0]);
        }
    }

    #[test]
    fn ours_comes_first_and_only_once() {
        check(None, "/l/liblargesse.so", None);
        check(Some(""), "/l/liblargesse.so", None);
        check(Some("/o/liblargesse.so"), "/l/liblargesse.so", None);
        check(Some("/a/x.so:/b/y.so /c/z.so"), "/l/liblargesse.so:/a/x.so:/b/y.so:/c/z.so", None);
    }

    #[test]
    fn another_allocator_is_named_with_what_it_serves() {
        let small = "small ones by";
        check(
            Some("libjemalloc.so.2"),
            "/l/liblargesse.so:libjemalloc.so.2",
            Some(&format!("{small} jemalloc")),
        );
        check(
            Some("/u/libtcmalloc_minimal.so.4"),
            "/l/liblargesse.so:/u/libtcmalloc_minimal.so.4",
            Some(&format!("{small} tcmalloc")),
        );
    }

    #[test]
    fn a_preloaded_sanitizer_is_refused() {
        let refused = plan(Path::new("/l/liblargesse.so"), Some(OsStr::new("/usr/lib/libasan.so.8")));
        assert!(refused.unwrap_err().to_string().contains("sanitizer"));
    }
}
