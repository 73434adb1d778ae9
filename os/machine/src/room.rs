//! Reads how much memory this process may still use before it reaches the limit of the machine or of a memory control
//! group.
//!
//! # Picture
//! ```text
//!   /proc/meminfo ─────────────────────────────► machine ─┐
//!   /proc/self/cgroup ─┐                                  ├─► minimum ─► Room::available
//!   /proc/self/mountinfo ─► folders ─► limits, usage ─────┘
//! ```
//! A process that exceeds a limit is killed without notice, so that a program must read the limit beforehand. The
//! files stay open, so that reading one again needs one system call and no new descriptor.

use crate::unread::{self, Unread};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Number of bytes from which the value of a limit means that there is none: version 1 of control groups writes the
/// largest number of whole pages.
const UNLIMITED: u64 = u64::MAX / 4;
/// Number of bytes read of `memory.stat` and `/proc/meminfo`. The lines that are needed are among the first.
const MAX_TEXT: usize = 8 << 10;

/// A mount, parsed from a line of `/proc/self/mountinfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// The directory within the file system that is mounted.
    pub part: &'a str,
    /// The directory on which it is mounted.
    pub point: &'a str,
    /// Options of the mount, separated by commas.
    pub options: &'a str,
    /// Type of the file system.
    pub kind: &'a str,
    /// Options of the file system, such as the controllers of a control group hierarchy or the page size of a
    /// hugetlbfs.
    pub system_options: &'a str,
}

impl<'a> Mount<'a> {
    /// Parses a line of `/proc/self/mountinfo`, or returns `None` if it is malformed.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut system = system.split(' ');
        Some(Mount {
            part: mount.next()?,
            point: mount.next()?,
            options: mount.next()?,
            kind: system.next()?,
            system_options: system.nth(1).unwrap_or(""),
        })
    }
}

/// Returns the directories of this process's control group and of its parents, innermost first, in every mounted
/// hierarchy that has `controller`: those of version 1, and version 2's. `groups` is the text of `/proc/self/cgroup`
/// and `mounts` that of `/proc/self/mountinfo`. A directory may not exist if another mount hides it.
#[must_use]
pub fn folders(groups: &str, mounts: &str, controller: &str) -> Vec<String> {
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
    let mut folders = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let names = |list: &str| list.split(',').any(|name| name == controller);
        let holds = |mount: &&Mount<'_>| match controllers {
            "" => mount.kind == "cgroup2",
            list => names(list) && mount.kind == "cgroup" && names(mount.system_options),
        };
        for mount in mounts.iter().filter(holds) {
            // A container sees a part of the hierarchy: the path below that part, or its root.
            let below = path.strip_prefix(mount.part.trim_end_matches('/')).unwrap_or("");
            let mut below = below.trim_end_matches('/');
            if below.split('/').any(|name| name == "..") {
                below = "";
            }
            loop {
                let folder = format!("{}{below}", mount.point);
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
                let Some((parent, _)) = below.rsplit_once('/') else { break };
                below = parent;
            }
        }
    }
    folders
}

/// Returns the directories of [`folders`] below `root`. If they are hidden, a limit may exist that cannot be read: the
/// error then names the file or directory that hides them.
pub fn groups(root: &Path, controller: &str) -> Result<Vec<String>, Unread> {
    let read = |path: &str| unread::text(root, path).map(Option::unwrap_or_default);
    let (groups, mounts) = (read("proc/self/cgroup")?, read("proc/self/mountinfo")?);
    let of = |wanted: &dyn Fn(&str) -> bool| {
        let lines = groups.lines().filter(|line| line.split(':').nth(1).is_some_and(wanted));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    // A controller belongs to one hierarchy: that of version 1 which names it, or else version 2's.
    let first = of(&|names| names.split(',').any(|name| name == controller));
    let decisive = if first.is_empty() { of(&str::is_empty) } else { first };
    let seen = folders(&decisive, &mounts, controller);
    let at = |folder: &str| root.join(folder.trim_start_matches('/'));
    // Every directory of a control group has this file. Of a container's path only the mount's top may be visible.
    if decisive.is_empty() || seen.iter().any(|folder| at(folder).join("cgroup.procs").exists()) {
        return Ok(folders(&groups, &mounts, controller));
    }
    Err(match seen.last() {
        Some(top) => Unread::because(at(top), "another mount hides the control groups there"),
        None => Unread::because(PathBuf::from("/sys/fs/cgroup"), "the control groups are not mounted"),
    })
}

/// The open files of one memory control group.
#[derive(Debug)]
struct MemoryGroup {
    /// The files with limits: the hard limit, and in version 2 also the limit from which allocations are throttled.
    limits: Vec<File>,
    usage: File,
    stat: Option<File>,
}

impl MemoryGroup {
    /// Opens the group's files in `folder` below `root`. If one exists and cannot be opened, `unread` is set to it.
    fn open(root: &Path, folder: &str, unread: &mut Option<Unread>) -> Option<MemoryGroup> {
        let mut open = |name: &str| {
            let path = format!("{}/{name}", folder.trim_start_matches('/'));
            let file = File::open(root.join(&path));
            file.map_err(|error| *unread = Unread::of(root, &path, &error).or(unread.take())).ok()
        };
        if let Some(usage) = open("memory.current") {
            let limits = ["memory.max", "memory.high"].into_iter().filter_map(&mut open).collect();
            return Some(MemoryGroup { limits, usage, stat: open("memory.stat") });
        }
        let limits = open("memory.limit_in_bytes").into_iter().collect();
        Some(MemoryGroup { limits, usage: open("memory.usage_in_bytes")?, stat: open("memory.stat") })
    }

    /// Returns the group's lowest limit in bytes, or `None` if it has none.
    fn limit(&self) -> Option<u64> {
        // "max" is not a number, and means no limit.
        let limits = self.limits.iter().filter_map(|file| text(file)?.trim().parse().ok());
        limits.min().filter(|limit| *limit < UNLIMITED)
    }

    /// Returns the number of bytes that the group's processes may still use. Page cache counts as free, because it can
    /// be reclaimed.
    fn available(&self) -> Option<u64> {
        let usage: u64 = text(&self.usage)?.trim().parse().ok()?;
        let stat = self.stat.as_ref().and_then(text).unwrap_or_default();
        // Sums with the prefix `total_` include child groups; version 2 has only sums that do.
        let pages =
            |name: &str| word(&stat, &format!("total_{name}")).or_else(|| word(&stat, name)).unwrap_or(0);
        let cache = pages("inactive_file").saturating_add(pages("active_file"));
        Some(self.limit()?.saturating_sub(usage.saturating_sub(cache)))
    }
}

/// The memory limits of this process, read from files that stay open.
#[derive(Debug)]
pub struct Room {
    machine: Option<File>,
    groups: Vec<MemoryGroup>,
    unread: Option<Unread>,
}

impl Room {
    /// Opens the files of all limits below `root`. A file that cannot be read sets no limit, and [`Room::unread`]
    /// names it.
    #[must_use]
    pub fn open(root: &Path) -> Room {
        let mut unread = None;
        let folders = groups(root, "memory").unwrap_or_else(|hidden| {
            unread = Some(hidden);
            Vec::new()
        });
        Room {
            machine: File::open(root.join("proc/meminfo")).ok(),
            groups: folders
                .iter()
                .filter_map(|folder| MemoryGroup::open(root, folder, &mut unread))
                .collect(),
            unread,
        }
    }

    /// Returns the file or directory that hides the limits of the control groups, if any does.
    #[must_use]
    pub fn unread(&self) -> Option<&Unread> {
        self.unread.as_ref()
    }

    /// Returns the number of bytes that this process may still use before a limit of the machine or of a control group
    /// is reached, or `None` if neither can be read.
    #[must_use]
    pub fn available(&self) -> Option<u64> {
        let machine = self.machine.as_ref().and_then(text);
        let machine =
            machine.and_then(|text| word(&text, "MemAvailable:")).map(|kib| kib.saturating_mul(1024));
        machine.into_iter().chain(self.groups.iter().filter_map(MemoryGroup::available)).min()
    }

    /// Returns the smallest limit of a control group in bytes, or `None` if no group has one or [`Room::unread`] hides it.
    #[must_use]
    pub fn group_limit(&self) -> Option<u64> {
        self.groups.iter().filter_map(MemoryGroup::limit).min()
    }
}

/// Reads the first [`MAX_TEXT`] bytes of one of the kernel's files again.
fn text(file: &File) -> Option<String> {
    let mut bytes = [0; MAX_TEXT];
    let mut len = 0;
    while let more @ 1.. = file.read_at(&mut bytes[len..], len as u64).ok()? {
        len += more;
    }
    Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

/// Returns the number after the word `name`, which must begin a line.
fn word(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests;
