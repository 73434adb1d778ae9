//! How much memory this process may still take before somebody is killed for it: the kernel itself says so
//! too late, by a signal.

use std::path::{Path, PathBuf};

/// Left to the rest of the machine, or of the control group.
const SPARE: u64 = 32 << 20;

/// Bytes that this process may still take, by the machine and by each control group around it; `u64::MAX` where neither
/// says.
#[must_use]
pub fn available() -> u64 {
    bytes(&text)
}

/// Whether pages that are not locked may leave memory.
pub(crate) fn has_swap() -> bool {
    is_swap(text(Path::new("/proc/swaps")))
}

fn text(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn bytes(read: &dyn Fn(&Path) -> Option<String>) -> u64 {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| word(&text, "MemAvailable:"));
    let machine = machine.map_or(u64::MAX, |kib| kib.saturating_mul(1024));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let groups = groups
        .lines()
        .filter_map(group)
        .flat_map(|(kind, folders)| folders.into_iter().filter_map(move |folder| kind.room(&folder, read)));
    groups.fold(machine, u64::min).saturating_sub(SPARE)
}

fn is_swap(text: Option<String>) -> bool {
    text.is_some_and(|text| text.lines().count() > 1)
}

#[derive(Clone, Copy)]
enum Kind {
    One,
    Two,
}

impl Kind {
    /// What a group leaves; `None` without a limit, or without a folder that can be read.
    fn room(self, folder: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
        let (limit, usage, prefix) = match self {
            Kind::One => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
            Kind::Two => ("memory.max", "memory.current", ""),
        };
        let number = |name: &str| read(&folder.join(name))?.trim().parse::<u64>().ok();
        let limit = number(limit)?;
        let usage = number(usage)?;
        let about = read(&folder.join("memory.stat")).unwrap_or_default();
        let file = |name: &str| word(&about, &format!("{prefix}{name}")).unwrap_or(0);
        // The page cache makes room.
        let cache = file("inactive_file").saturating_add(file("active_file"));
        Some(limit.saturating_sub(usage.saturating_sub(cache)))
    }
}

/// A line of `/proc/self/cgroup`, if it is about memory: the folders of the group and of those around it.
fn group(line: &str) -> Option<(Kind, Vec<PathBuf>)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let (kind, mounts) = match controllers {
        "" => (Kind::Two, ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].as_slice()),
        _ if controllers.split(',').any(|it| it == "memory") => {
            (Kind::One, ["/sys/fs/cgroup/memory"].as_slice())
        }
        _ => return None,
    };
    let below = path.trim_start_matches('/');
    // In a container the path may be the host's: what is mounted is then the group itself.
    let folders = Path::new(below).ancestors().map(Path::to_owned);
    Some((kind, folders.flat_map(|it| mounts.iter().map(move |mount| Path::new(mount).join(&it))).collect()))
}

/// The number behind `name`.
fn word(text: &str, name: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    words.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], want_mib: u64) {
        let read = |path: &Path| {
            let found = files.iter().find(|(name, _)| path == Path::new(name));
            found.map(|(_, text)| (*text).to_owned())
        };
        assert_eq!(bytes(&read), (want_mib << 20) - SPARE);
    }

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:  1048576 kB\n");

    #[test]
    fn the_machine_is_a_limit_and_so_is_each_group() {
        check(&[MACHINE], 1024);
        check(&[MACHINE, ("/proc/self/cgroup", "0::/a/b\n"), ("/sys/fs/cgroup/a/memory.max", "max\n")], 1024);
        let outer = [
            MACHINE,
            ("/proc/self/cgroup", "9:name=systemd:/\n0::/a/b\n"),
            ("/sys/fs/cgroup/a/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/a/memory.current", "268435456\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 1048576\n"),
        ];
        check(&outer, 256 + 101);
    }

    #[test]
    fn the_first_version_has_other_names_for_all_of_it() {
        let inner = [
            MACHINE,
            ("/proc/self/cgroup", "4:cpu,memory:/x\n0::/\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "134217728\n"),
            ("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1048576\n"),
            ("/sys/fs/cgroup/memory/x/memory.stat", "inactive_file 9\ntotal_inactive_file 0\n"),
        ];
        check(&inner, 127);
    }

    #[test]
    fn swap_is_more_than_a_heading() {
        let with = |text: &str| is_swap(Some(text.to_owned()));
        assert!(!with("Filename Type Size Used Priority\n"));
        assert!(with("Filename Type Size Used Priority\n/dev/sda2 partition 9 0 -2\n"));
    }
}
