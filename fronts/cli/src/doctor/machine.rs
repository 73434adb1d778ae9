//! Facts about the machine and this process that several checks use.

use super::live::Live;
use super::probe;
use super::tree::Tree;
use largesse_machine::Bitmap;
use largesse_machine::room::Mount;
use serde::{Serialize, Serializer};

/// Facts about the machine and about the process that runs the doctor.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MachineFacts {
    pub(crate) kernel: String,
    /// Major and minor number of the kernel.
    #[serde(skip)]
    pub(crate) version: (u32, u32),
    /// Bytes of memory of the machine; 0 if unknown, and null in JSON.
    #[serde(serialize_with = "null_for_zero")]
    pub(crate) memory: u64,
    /// Number of processors on which this process may run, or `None` if unknown.
    pub(crate) processors: Option<usize>,
    /// `processors` under its former name in JSON, which stays for one release.
    pub(crate) cores: Option<usize>,
    /// Number of NUMA nodes with memory, or `None` if unknown.
    pub(crate) nodes: Option<usize>,
    pub(crate) page_size: Option<u64>,
    pub(crate) transparent_size: Option<u64>,
    /// The kind of container and the file that reveals it, if there is one.
    pub(crate) container: Option<String>,
    pub(crate) seccomp: bool,
    pub(crate) user: u32,
    #[serde(skip)]
    pub(crate) groups: Vec<u32>,
    /// Bits of the effective capabilities.
    #[serde(skip)]
    pub(crate) capabilities: u64,
    /// Whether `/sys` is mounted read-only, so that only the host can change it.
    #[serde(skip)]
    pub(crate) read_only: bool,
}

impl MachineFacts {
    pub(crate) fn read(tree: &Tree, live: &Live) -> MachineFacts {
        let kernel = tree.read("/proc/sys/kernel/osrelease");
        let status = tree.read("/proc/self/status").unwrap_or_default();
        // System calls replace files of a hidden `/proc`.
        let asked = (!tree.is_saved()).then(probe::asked);
        let asked = asked.as_ref();
        let kernel = kernel.or_else(|| Some(asked?.kernel.clone())).unwrap_or_default();
        let meminfo = tree.read("/proc/meminfo").unwrap_or_default();
        let mounts = tree.read("/proc/self/mountinfo");
        let with_memory = tree.read(WITH_MEMORY);
        let processors =
            field(&status, "Cpus_allowed_list").map(count).or(asked.and_then(|it| it.processors));
        MachineFacts {
            version: version(&kernel).unwrap_or((0, 0)),
            memory: kib_field(&meminfo, "MemTotal").or(asked.map(|it| it.memory)).unwrap_or(0),
            processors,
            cores: processors,
            nodes: match with_memory.as_deref() {
                Some(list) => Some(count(list).max(1)),
                // A kernel without NUMA has one node.
                None => tree.unread(WITH_MEMORY).is_none().then_some(1),
            },
            page_size: live.page_size,
            transparent_size: tree.number("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
            container: container(tree),
            seccomp: field(&status, "Seccomp")
                .map(|mode| mode != "0")
                .or(asked.map(|it| it.seccomp))
                .unwrap_or(false),
            user: numbers(&status, "Uid").get(1).copied().or(asked.map(|it| it.user)).unwrap_or(0),
            groups: match asked {
                Some(asked) if status.is_empty() => asked.groups.clone(),
                _ => [numbers(&status, "Gid"), numbers(&status, "Groups")].concat(),
            },
            capabilities: field(&status, "CapEff")
                .and_then(|bits| u64::from_str_radix(bits, 16).ok())
                .or(asked.map(|it| it.capabilities))
                .unwrap_or(0),
            read_only: mounts.as_deref().map(read_only).or(asked.map(|it| it.read_only)).unwrap_or(false),
            kernel,
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.user == 0
    }

    /// Returns how a command names the user to add to a group.
    pub(crate) fn whom(&self) -> &'static str {
        if self.is_root() { "USER" } else { "$USER" }
    }

    pub(crate) fn may(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

fn null_for_zero<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    Some(number).filter(|number| **number > 0).serialize(to)
}

/// The file that lists the nodes with memory.
pub(crate) const WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";
/// Number of the capability `CAP_SYS_PTRACE`.
pub(crate) const MAY_PTRACE: u32 = 19;

/// Returns the value in a line `Name:   value`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// Returns the value in a line `Name:  12 kB`, in bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn numbers(status: &str, name: &str) -> Vec<u32> {
    field(status, name).unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns how many numbers are in a list such as `0-3,8`; 0 for any other text.
fn count(list: &str) -> usize {
    list.parse().map_or(0, |numbers: Bitmap| numbers.len())
}

/// The file with the control groups of the first process, whose names reveal a container.
pub(crate) const FIRST_PROCESS: &str = "/proc/1/cgroup";

fn container(tree: &Tree) -> Option<String> {
    const TRACES: [(&str, &str); 2] = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    if let Some((file, name)) = TRACES.iter().find(|(file, _)| tree.exists(file)) {
        return Some(format!("{name} ({file})"));
    }
    if let Some(name) = tree.read("/run/systemd/container") {
        return Some(format!("{name} (/run/systemd/container)"));
    }
    const NAMES: [(&str, &str); 5] = [
        ("docker", "Docker"),
        ("kubepods", "Kubernetes"),
        ("libpod", "Podman"),
        ("lxc", "LXC"),
        ("cri-containerd", "containerd"),
    ];
    let groups = tree.read(FIRST_PROCESS)?;
    let (_, name) = NAMES.iter().find(|(trace, _)| groups.contains(trace))?;
    Some(format!("{name} (/proc/1/cgroup)"))
}

fn read_only(mounts: &str) -> bool {
    let mut sysfs = mounts.lines().filter_map(Mount::parse).filter(|mount| mount.point == "/sys");
    sysfs.next_back().is_some_and(|mount| mount.options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_lists_are_parsed() {
        assert_eq!(version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(version("5.10.0-30-amd64"), Some((5, 10)));
        assert_eq!(version("6.1"), Some((6, 1)));
        assert_eq!(version(""), None);
        for (list, want) in [("0", 1), ("0-3,8", 5), ("", 0), ("0,2-3", 3)] {
            assert_eq!(count(list), want, "{list}");
        }
    }

    #[test]
    fn read_only_mount_is_recognised() {
        assert!(read_only("1 2 0:1 / /sys ro,nosuid - sysfs sysfs rw"));
        assert!(!read_only("1 2 0:1 / /sys rw - sysfs sysfs rw"));
    }
}
