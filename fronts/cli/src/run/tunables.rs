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
/// Bytes of the machine's memory below which the tunable is not set.
const LEAST_MEMORY: u64 = 1 << 30;

/// Returns the bytes of the machine's memory if the program may use all of them; `None` if a control group has a
/// tighter limit, or may have one.
///
/// A byte written to a large page takes 2 MiB. A program that uses its small blocks sparsely takes many times the memory
/// then, and a control group kills it at once, while a machine swaps and splits pages first. No size of the limit is
/// safe, because the C library's small blocks may be arbitrarily sparse, and their memory is not measured.
pub(super) fn unlimited_memory(root: &Path) -> Option<u64> {
    let (room, machine) = (Room::open(root), largesse_pages::physical_memory() as u64);
    let is_limited = room.unread().is_some() || room.group_limit().is_some_and(|limit| limit < machine);
    (!is_limited).then_some(machine)
}

/// Returns the new value of [`VARIABLE`] for a program that may use `memory`, as [`unlimited_memory`] returns it;
/// `None` to keep the old value.
pub(super) fn tunables(
    settings: &Settings,
    inherited: Option<&OsStr>,
    others: bool,
    memory: Option<u64>,
) -> Option<OsString> {
    let wanted = matches!(settings.pages, PageChoice::Auto | PageChoice::Thp)
        && settings.children
        && !others
        && !settings.far
        && memory.is_some_and(|bytes| bytes >= LEAST_MEMORY);
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
    use crate::run::root::Root;

    fn settings(pages: PageChoice, children: bool) -> Settings {
        Settings { pages, children, ..Settings::parse(&[], |_| None).unwrap() }
    }

    #[track_caller]
    fn check(pages: PageChoice, children: bool, inherited: Option<&str>, others: bool, want: Option<&str>) {
        let settings = settings(pages, children);
        let value = tunables(&settings, inherited.map(OsStr::new), others, Some(LEAST_MEMORY));
        assert_eq!(value, want.map(OsString::from));
        for (memory, case) in [(Some(LEAST_MEMORY - 1), "with little memory"), (None, "in a control group")] {
            assert_eq!(tunables(&settings, inherited.map(OsStr::new), others, memory), None, "{case}");
        }
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
    #[test]
    fn limits_of_groups_leave_no_memory_unlimited() {
        let machine = largesse_pages::physical_memory() as u64;
        let memory_with = |limit: &str| {
            let files = [
                ("proc/self/cgroup", "0::/a\n"),
                ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("sys/fs/cgroup/a/cgroup.procs", ""),
                ("sys/fs/cgroup/a/memory.current", "4096\n"),
                ("sys/fs/cgroup/a/memory.max", limit),
                ("sys/fs/cgroup/a/memory.high", "max\n"),
            ];
            unlimited_memory(&Root::with("tunables", &files).0)
        };
        assert_eq!(memory_with("max\n"), Some(machine), "no limit");
        assert_eq!(memory_with(&format!("{machine}\n")), Some(machine), "a limit that is no tighter");
        assert_eq!(memory_with(&format!("{}\n", machine - 4096)), None, "a tighter limit");
        assert_eq!(memory_with(&format!("{}\n", LEAST_MEMORY)), None, "a tight limit");
    }
}
