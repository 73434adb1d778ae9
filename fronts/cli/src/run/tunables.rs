//! Asks glibc by a tunable to serve small requests from transparent huge pages, too.
//!
//! glibc reads its tunables when a program starts, so that only the launcher can set them. A value that the user has
//! set is kept, and nothing is set for another preloaded allocator.

use super::settings::Settings;
use largesse_machine::Room;
use largesse_report::PageChoice;
use std::ffi::{OsStr, OsString};
use std::path::Path;

pub(super) const VARIABLE: &str = "GLIBC_TUNABLES";
const TUNABLE: &str = "glibc.malloc.hugetlb";
/// Bytes of memory below which the tunable is not set: a byte written to a huge page takes 2 MiB, so that sparse use
/// could exceed the limit.
const LEAST_MEMORY: u64 = 1 << 30;

/// Returns the bytes of memory that the program may use: the machine's, or the tightest limit of its control groups.
pub(super) fn memory(root: &Path) -> u64 {
    Room::open(root).group_limit().unwrap_or(u64::MAX).min(largesse_pages::physical_memory() as u64)
}

/// Returns the new value of [`VARIABLE`] for a program that may use `memory` bytes, or `None` to keep the old one.
pub(super) fn tunables(
    settings: &Settings,
    inherited: Option<&OsStr>,
    others: bool,
    memory: u64,
) -> Option<OsString> {
    let wanted = matches!(settings.pages, PageChoice::Auto | PageChoice::Thp)
        && settings.children
        && !others
        && !settings.far
        && memory >= LEAST_MEMORY;
    let inherited = inherited.unwrap_or_default();
    if !wanted || inherited.to_string_lossy().contains(TUNABLE) {
        return None;
    }
    let mut value = inherited.to_os_string();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(format!("{TUNABLE}=1"));
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pages: PageChoice, children: bool) -> Settings {
        Settings { pages, children, ..Settings::parse(&[], |_| None).unwrap() }
    }

    #[track_caller]
    fn check(pages: PageChoice, children: bool, inherited: Option<&str>, others: bool, want: Option<&str>) {
        let settings = settings(pages, children);
        let value = tunables(&settings, inherited.map(OsStr::new), others, LEAST_MEMORY);
        assert_eq!(value, want.map(OsString::from));
        let value = tunables(&settings, inherited.map(OsStr::new), others, LEAST_MEMORY - 1);
        assert_eq!(value, None, "with little memory");
    }

    #[test]
    fn tunable_is_set_unless_overridden() {
        let asked = Some("glibc.malloc.hugetlb=1");
        check(PageChoice::Auto, true, None, false, asked);
        check(PageChoice::Thp, true, Some(""), false, asked);
        check(
            PageChoice::Auto,
            true,
            Some("glibc.malloc.perturb=1"),
            false,
            Some("glibc.malloc.perturb=1:glibc.malloc.hugetlb=1"),
        );
        check(PageChoice::Auto, true, Some("glibc.malloc.hugetlb=0"), false, None);
        check(PageChoice::Small, true, None, false, None);
        check(PageChoice::Hugetlb, true, None, false, None);
        check(PageChoice::Auto, false, None, false, None);
        check(PageChoice::Auto, true, None, true, None);
    }
}
