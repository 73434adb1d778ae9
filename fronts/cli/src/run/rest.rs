//! What the C library serves, small requests, gets transparent huge pages too.
//!
//! glibc reads its tunables when a program starts, so that only the launcher can ask for this. A
//! value that the user has set is left alone, and another preloaded allocator has no use for it.

use super::settings::Settings;
use largesse_report::Pages;
use std::ffi::{OsStr, OsString};

pub(super) const VARIABLE: &str = "GLIBC_TUNABLES";
const TUNABLE: &str = "glibc.malloc.hugetlb";

/// The new value of [`VARIABLE`]; `None` when it stays as it is.
pub(super) fn tunables(settings: &Settings, inherited: Option<&OsStr>, others: bool) -> Option<OsString> {
    let wanted =
        matches!(settings.pages, Pages::Auto | Pages::Thp) && settings.children && !others && !settings.far;
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

    fn settings(pages: Pages, children: bool) -> Settings {
        Settings { pages, children, ..Settings::parse(&[], |_| None).unwrap() }
    }

    #[track_caller]
    fn check(pages: Pages, children: bool, inherited: Option<&str>, others: bool, want: Option<&str>) {
        let value = tunables(&settings(pages, children), inherited.map(OsStr::new), others);
        assert_eq!(value, want.map(OsString::from));
    }

    #[test]
    fn the_rest_is_asked_for_large_pages_unless_somebody_decided_otherwise() {
        let asked = Some("glibc.malloc.hugetlb=1");
        check(Pages::Auto, true, None, false, asked);
        check(Pages::Thp, true, Some(""), false, asked);
        check(
            Pages::Auto,
            true,
            Some("glibc.malloc.perturb=1"),
            false,
            Some("glibc.malloc.perturb=1:glibc.malloc.hugetlb=1"),
        );
        check(Pages::Auto, true, Some("glibc.malloc.hugetlb=0"), false, None);
        check(Pages::Small, true, None, false, None);
        check(Pages::Hugetlb, true, None, false, None);
        check(Pages::Auto, false, None, false, None);
        check(Pages::Auto, true, None, true, None);
    }
}
