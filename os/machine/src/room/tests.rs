//! Tests the limits that are read from the files of artificial machines.

#[path = "../../tests/common/root.rs"]
mod root;

use super::*;
use root::Root;

const MIB: u64 = 1 << 20;
const SECOND: &str = "30 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
const FIRST: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:  1048576 kB\n");

#[track_caller]
fn check(name: &str, files: &[(&str, &str)], available_mib: Option<u64>, limit_mib: Option<u64>) {
    let root = Root::with(name, files);
    for (file, _) in files.iter().filter(|(file, _)| file.starts_with("sys/fs/cgroup")) {
        std::fs::write(root.0.join(file).with_file_name("cgroup.procs"), "").unwrap();
    }
    let room = Room::open(&root.0);
    assert_eq!(room.unread(), None, "{name}: hidden");
    assert_eq!(room.available().map(|bytes| bytes / MIB), available_mib, "{name}: MiB available");
    assert_eq!(room.group_limit().map(|bytes| bytes / MIB), limit_mib, "{name}: the limit in MiB");
}

#[test]
fn machine_limits_without_groups() {
    check("nothing", &[], None, None);
    check("machine", &[MACHINE], Some(1024), None);
}

#[test]
fn version_2_takes_the_tightest_group() {
    let groups = ("proc/self/cgroup", "9:name=systemd:/\n0::/a/b\n");
    let mounts = ("proc/self/mountinfo", SECOND);
    let outer = [
        MACHINE,
        groups,
        mounts,
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("sys/fs/cgroup/a/b/memory.current", "1048576\n"),
        ("sys/fs/cgroup/a/memory.max", "536870912\n"),
        ("sys/fs/cgroup/a/memory.current", "268435456\n"),
        ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 104857600\nactive_file 1048576\n"),
    ];
    check("second-nested", &outer, Some(256 + 101), Some(512));
    let slowed = [
        MACHINE,
        groups,
        mounts,
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("sys/fs/cgroup/a/b/memory.high", "104857600\n"),
        ("sys/fs/cgroup/a/b/memory.current", "1048576\n"),
    ];
    check("second-high", &slowed, Some(99), Some(100));
}

#[test]
fn version_1_includes_child_groups() {
    let files = [
        MACHINE,
        ("proc/self/cgroup", "4:cpu,memory:/x\n0::/\n"),
        ("proc/self/mountinfo", &format!("{SECOND}\n{FIRST}")),
        ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "134217728\n"),
        ("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "3145728\n"),
        ("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 9\ntotal_inactive_file 1048576\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9\n"),
    ];
    check("first", &files, Some(126), Some(128));
}

#[test]
fn hidden_group_folders_are_tolerated() {
    // The path is the host's, and the container sees its own group at the root of the mount.
    let seen = [
        MACHINE,
        ("proc/self/cgroup", "4:memory:/docker/1\n"),
        ("proc/self/mountinfo", FIRST),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "67108864\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n"),
    ];
    check("container", &seen, Some(63), Some(64));
    check("no-controller", &[MACHINE, ("proc/self/cgroup", "4:cpu:/docker/1\n")], Some(1024), None);
}

#[test]
fn hidden_groups_are_named() {
    let second = ("proc/self/cgroup", "4:cpu:/a\n0::/a\n");
    let first = ("proc/self/cgroup", "4:memory:/a\n0::/\n");
    let both = format!("{SECOND}\n{FIRST}");
    for (name, files, want) in [
        (
            "mounted-over",
            &[second, ("proc/self/mountinfo", SECOND)][..],
            "sys/fs/cgroup cannot be read (another",
        ),
        ("no-mounts", &[second], "/sys/fs/cgroup cannot be read (the control groups are not mounted)"),
        // The second version's hierarchy is visible, and says nothing about memory.
        (
            "first-hidden",
            &[first, ("proc/self/mountinfo", &both), ("sys/fs/cgroup/cgroup.procs", "")],
            "sys/fs/cgroup/memory cannot be read (another",
        ),
    ] {
        let root = Root::with(name, files);
        let room = Room::open(&root.0);
        let said = room.unread().map(ToString::to_string).unwrap_or_default();
        assert!(said.contains(want), "{name}: {said}");
        assert_eq!(room.group_limit(), None, "{name}");
    }
}

#[test]
fn limit_that_cannot_be_opened_is_named() {
    let files = [
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", SECOND),
        ("sys/fs/cgroup/cgroup.procs", ""),
        ("sys/fs/cgroup/memory.current", "1"),
    ];
    let root = Root::with("unopened", &files);
    // Root may open any file, but not a link to itself.
    std::os::unix::fs::symlink("memory.max", root.0.join("sys/fs/cgroup/memory.max")).unwrap();
    let said = Room::open(&root.0).unread().map(ToString::to_string).unwrap_or_default();
    assert!(said.contains("sys/fs/cgroup/memory.max cannot be read (Too many levels"), "{said}");
}

#[test]
fn folders_lead_to_the_root() {
    let part = "35 31 0:32 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory";
    let twice = format!("{SECOND}\n31 30 0:27 / /mnt/groups rw - cgroup2 cgroup2 rw");
    for (groups, mounts, want) in [
        ("0::/a/b", SECOND, &["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"][..]),
        ("0::/", SECOND, &["/sys/fs/cgroup"]),
        ("0::/../other", SECOND, &["/sys/fs/cgroup"]),
        ("", SECOND, &[]),
        ("4:memory:/x\n1:cpu:/", FIRST, &["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]),
        ("4:memory:/docker/1", part, &["/sys/fs/cgroup/memory"]),
        ("0::/a", &twice, &["/sys/fs/cgroup/a", "/sys/fs/cgroup", "/mnt/groups/a", "/mnt/groups"]),
    ] {
        assert_eq!(folders(groups, mounts, "memory"), want, "{groups} under {mounts}");
    }
}

#[test]
fn mounts_are_parsed() {
    let line = "31 23 0:28 /a /sys/fs/cgroup ro,nosuid shared:9 master:2 - cgroup2 cgroup rw,memory";
    let mount = Mount::parse(line).unwrap();
    assert_eq!((mount.part, mount.point, mount.kind), ("/a", "/sys/fs/cgroup", "cgroup2"));
    assert_eq!((mount.options, mount.system_options), ("ro,nosuid", "rw,memory"));
    assert_eq!(Mount::parse("31 23"), None);
}
