//! Tests that files of the kernel that another mount hides are called unknown, not absent.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Parts of messages that would be unfounded claims about hidden files.
const CLAIMS: &[&str] = &[
    "kernel built with CONFIG",
    "entity not found",
    "no transparent huge pages",
    "no hugetlb pools",
    "no 64 KiB pages",
    "older kernels",
    "got small pages\n",
    "on this machine: 0",
];

/// Claims about control groups, which are unfounded where the kernel's files about them are hidden.
const CLAIMS_OF_GROUPS: &[&str] = &["no limit below"];

/// Claims about processes, which are only unfounded where `/proc` is hidden.
const CLAIMS_OF_PROCESSES: &[&str] = &["No process with large blocks", "there is no process"];

/// A command that runs while a folder or file of the kernel is hidden, and the required parts of its output.
struct HiddenCase {
    folder: &'static str,
    words: &'static str,
    wanted: &'static [&'static str],
}

const fn row(folder: &'static str, words: &'static str, wanted: &'static [&'static str]) -> HiddenCase {
    HiddenCase { folder, words, wanted }
}

const SYS: &str = "/sys";
const PROC: &str = "/proc";
const CGROUP: &str = "/sys/fs/cgroup";
const MM: &str = "/sys/kernel/mm";
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const THP_MODE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const POOLS: &str = "/sys/kernel/mm/hugepages";
const DEVICES: &str = "/sys/devices";
const NODE: &str = "/sys/devices/system/node";
const HIDDEN_SYS: &str = "cannot be read (/sys is hidden, or not mounted: mount -t sysfs sysfs /sys)";
const HIDDEN_PROC: &str = "cannot be read (/proc is hidden, or not mounted: mount -t proc proc /proc)";
const LARGE: &str = "/sys/kernel/mm/transparent_hugepage/enabled cannot be read";
const HIDDEN_MM: &str = "cannot be read (another mount hides what the kernel has in /sys/kernel/mm)";
const NO_GROUP: &str = "(another mount hides the control groups there)";

const ROWS: &[HiddenCase] = &[
    row(SYS, "status", &[]),
    row(SYS, "doctor", &[LARGE, "nodes not known", "/sys/kernel/mm/hugepages cannot be read", NO_GROUP]),
    row(SYS, "doctor --fix --dry-run", &[LARGE, "this setting is not checked"]),
    row(SYS, "run -- echo ran", &["ran"]),
    row(SYS, "run --pages 64k -- echo ran", &["ran"]),
    row(SYS, "run --pages hugetlb -- echo ran", &["free_hugepages", HIDDEN_SYS, "a trial got no", "ran"]),
    row(SYS, "run --node 7 -- echo ran", &["ran"]),
    row(SYS, "run --local 64M -- echo ran", &["ran"]),
    row(SYS, "machine", &["packages not known, cores not known, ", "NUMA nodes not known", LARGE]),
    row(SYS, "machine", &["something is missing here: /sys/devices/system/cpu/online"]),
    row(SYS, "pin --node 0 -- echo placed", &["placed"]),
    row(
        SYS,
        "pin --cpus 8000 -- echo placed",
        &["why is not known: /sys/devices/system/cpu/online", HIDDEN_SYS],
    ),
    row(PROC, "status", &["the processes are not known: ", HIDDEN_PROC]),
    row(PROC, "status 1", &["process 1 cannot be looked at: /proc/1/maps", HIDDEN_PROC]),
    row(
        PROC,
        "doctor --json",
        &["/proc/self/limits cannot be read", "nor 4 other files", r#""processors": "#],
    ),
    row(PROC, "doctor --json", &["PAGEMAP_SCAN was not tried", "/proc/self/pagemap", "/proc/self/mountinfo"]),
    row(PROC, "doctor --json", &["/proc/self/cgroup cannot be read", "at a limit that is not seen"]),
    row(PROC, "doctor --fix --dry-run", &["/proc/self/limits", "this setting is not checked"]),
    row(PROC, "doctor --fix --dry-run --hugetlb-pages 8", &["/proc/meminfo", HIDDEN_PROC]),
    row(PROC, "run -- echo ran", &["ran"]),
    row(PROC, "run --pages 64k -- echo ran", &["ran"]),
    row(PROC, "run --local 64M -- echo ran", &["ran"]),
    row(PROC, "machine", &["a processor whose name is not known, Linux ", "/proc/meminfo"]),
    row(PROC, "pin --node 0 -- echo placed", &["placed"]),
    row(CGROUP, "status", &[]),
    row(CGROUP, "doctor", &["cgroup-memory  not known", NO_GROUP]),
    row(CGROUP, "run -- echo ran", &["ran"]),
    row(CGROUP, "run --pages 64k -- echo ran", &["ran"]),
    row(CGROUP, "run --local 64M -- echo ran", &["ran"]),
    row(CGROUP, "machine", &["NUMA node"]),
    row(CGROUP, "pin --node 0 -- echo placed", &["placed"]),
    row(MM, "run -- echo ran", &["ran"]),
    row(MM, "run --pages 64k -- echo ran", &["ran"]),
    row(MM, "run --pages hugetlb -- echo ran", &["free_hugepages", HIDDEN_MM, "a trial got no", "ran"]),
    row(MM, "run --pages hugetlb-1g -- echo ran", &["1048576kB/free_hugepages", HIDDEN_MM, "ran"]),
    row(MM, "doctor", &[LARGE, HIDDEN_MM, "/sys/kernel/mm/hugepages cannot be read"]),
    row(MM, "machine", &[LARGE, "hugetlb pools: /sys/kernel/mm/hugepages cannot be read"]),
    row(THP, "run -- echo ran", &["ran"]),
    row(THP, "doctor", &[LARGE, "another mount hides"]),
    row(THP_MODE, "run -- echo ran", &["ran"]),
    row(THP_MODE, "doctor", &[LARGE, "another mount hides"]),
    row(POOLS, "run --pages hugetlb -- echo ran", &["free_hugepages", "another mount hides", "ran"]),
    row(POOLS, "doctor", &["/sys/kernel/mm/hugepages cannot be read (another mount hides"]),
    row(POOLS, "machine", &["hugetlb pools: /sys/kernel/mm/hugepages cannot be read"]),
    row(DEVICES, "run --node 1 -- echo ran", &["ran"]),
    row(DEVICES, "pin --node 0 -- echo placed", &["placed"]),
    row(DEVICES, "doctor", &["nodes not known"]),
    row(DEVICES, "machine", &["NUMA nodes not known", "is missing here: /sys/devices/system/cpu/online"]),
    row(NODE, "run --node 1 -- echo ran", &["ran"]),
    row(NODE, "pin --node 0 -- echo placed", &["placed"]),
    row(NODE, "doctor", &["nodes not known"]),
    row(NODE, "machine", &["NUMA nodes not known", "is missing here: /sys/devices/system/node"]),
];

/// A directory with a stand-in for the library and an empty directory to mount over the kernel's; removed when dropped.
struct EmptyMount(PathBuf);

impl EmptyMount {
    /// Builds the stand-in, or prints the reason and returns `None` without a compiler.
    fn new() -> Option<EmptyMount> {
        let folder = EmptyMount(std::env::temp_dir().join(format!("largesse-hidden-{}", std::process::id())));
        std::fs::create_dir_all(folder.empty()).unwrap();
        let source = folder.0.join("library.c");
        std::fs::write(&source, "unsigned largesse_version(void) { return 1; }").unwrap();
        let mut compiler = Command::new("cc");
        let done = compiler.args(["-shared", "-fPIC", "-o"]).arg(folder.library()).arg(source).status();
        if !done.is_ok_and(|status| status.success()) {
            println!("skipped: cc does not work here");
            return None;
        }
        Some(folder)
    }

    fn empty(&self) -> PathBuf {
        self.0.join("empty")
    }

    fn library(&self) -> PathBuf {
        self.0.join("liblargesse.so")
    }

    /// Returns the output of `largesse` under a hidden folder, or prints the reason and returns `None` if mounts are
    /// not permitted.
    fn run(&self, row: &HiddenCase) -> Option<String> {
        // Containers mask a file by a device.
        let empty = if Path::new(row.folder).is_file() { "/dev/null".into() } else { self.empty() };
        let script = format!(
            "mount --bind {} {} || exit 99; exec {} {}",
            empty.display(),
            row.folder,
            env!("CARGO_BIN_EXE_largesse"),
            row.words
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).env("LARGESSE_LIBRARY", self.library());
        let output = command.output().ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        // `unshare` fails without the right to mount.
        if output.status.code() == Some(99) || said.contains("unshare failed") {
            println!("skipped: no mounts of our own");
            return None;
        }
        Some(said)
    }
}

impl Drop for EmptyMount {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn hidden_file_is_not_absent() {
    let Some(folder) = EmptyMount::new() else { return };
    let mut wrong = Vec::new();
    for row in ROWS.iter().filter(|row| Path::new(row.folder).exists()) {
        let Some(said) = folder.run(row) else { return };
        // Tables fold long lines.
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let holds = |part: &str| said.contains(part) || flat.contains(part);
        let missing = row.wanted.iter().filter(|part| !holds(part)).map(|part| format!("no '{part}'"));
        let of_processes = if row.folder == PROC { CLAIMS_OF_PROCESSES } else { &[] };
        let of_groups = if [SYS, PROC, CGROUP].contains(&row.folder) { CLAIMS_OF_GROUPS } else { &[] };
        let claims = CLAIMS
            .iter()
            .chain(of_processes)
            .chain(of_groups)
            .filter(|part| holds(part))
            .map(|part| format!("'{part}'"));
        let faults: Vec<String> = missing.chain(claims).collect();
        if !faults.is_empty() {
            wrong.push(format!("{} without {}: {} in\n{said}", row.words, row.folder, faults.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
