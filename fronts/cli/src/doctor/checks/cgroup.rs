//! Checks the limits of this process's control groups up to the root, of versions 1 and 2.

use crate::doctor::finding::Subject::Container;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::machine::MachineFacts;
use crate::doctor::tree::Tree;
use largesse_machine::room::{folders, groups};
use largesse_terminal::size;
use std::path::Path;

pub(crate) fn findings(tree: &Tree, machine: &MachineFacts) -> Vec<Finding> {
    // A saved machine has only those files of its control groups that were read.
    let hidden = if tree.is_saved() { None } else { groups(Path::new("/"), "memory").err() };
    if let Some(unread) = hidden {
        let why = format!("{unread}: programs may be killed at a limit that is not seen");
        return vec![Finding::unread(Container, "cgroup-memory", &unread).why(why)];
    }
    let ours = tree.read("/proc/self/cgroup").unwrap_or_default();
    let mounts = tree.read("/proc/self/mountinfo").unwrap_or_default();
    let mut findings = Vec::new();
    let memory = folders(&ours, &mounts, "memory");
    let hard = tightest(tree, &memory, &["memory.max", "memory.limit_in_bytes"]);
    findings.extend(hard.map(|limit| memory_limit(limit, used(tree, &memory), machine.memory)));
    findings
        .extend(tightest(tree, &memory, &["memory.high"]).and_then(|limit| slowed(limit, machine.memory)));
    let hugetlb = folders(&ours, &mounts, "hugetlb");
    for (file, page) in pool_files(tree, &hugetlb) {
        findings.extend(tightest(tree, &hugetlb, &[&file]).and_then(|limit| pool_limit(limit, &page)));
    }
    findings
}

/// A limit in bytes, and the file that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    file: String,
}

fn tightest(tree: &Tree, directories: &[String], names: &[&str]) -> Option<Limit> {
    let files =
        directories.iter().flat_map(|directory| names.iter().map(move |name| format!("{directory}/{name}")));
    let limits = files.filter_map(|file| {
        // "max" is not a number, and means no limit.
        let bytes = tree.number(&file).or_else(|| tree.exists(&file).then_some(u64::MAX))?;
        Some(Limit { bytes, file })
    });
    limits.min_by_key(|limit| limit.bytes)
}

fn used(tree: &Tree, directories: &[String]) -> Option<u64> {
    let names = ["memory.current", "memory.usage_in_bytes"];
    directories
        .iter()
        .find_map(|directory| names.iter().find_map(|name| tree.number(&format!("{directory}/{name}"))))
}

fn memory_limit(limit: Limit, used: Option<u64>, memory: u64) -> Finding {
    let finding = |status, now| Finding::new(Container, status, "cgroup-memory", now);
    if limit.bytes >= memory {
        return finding(Status::Ok, "no limit below the machine's memory".to_owned());
    }
    let mut now = format!("{} of the machine's {}", size(limit.bytes), size(memory));
    if let Some(used) = used {
        now += &format!(", {} in use", size(used));
    }
    if used.is_some_and(|used| used > limit.bytes / 10 * 9) {
        return finding(Status::Advice, now)
            .wanted("room for whole large pages")
            .why("a large page that does not fit is not granted, and a program that grows is killed")
            .command(format!("echo SIZE | sudo tee {}   # or docker run --memory SIZE", limit.file));
    }
    finding(Status::Info, now).why(format!("programs beyond it are killed ({})", limit.file))
}

fn slowed(limit: Limit, memory: u64) -> Option<Finding> {
    (limit.bytes < memory).then(|| {
        Finding::new(Container, Status::Info, "cgroup-memory-high", size(limit.bytes))
            .why(format!("programs beyond it are slowed down ({})", limit.file))
    })
}

/// Returns the names of files such as `hugetlb.2MB.max`, each with its page size.
fn pool_files(tree: &Tree, directories: &[String]) -> Vec<(String, String)> {
    let names = directories.first().map(|directory| tree.list(directory)).unwrap_or_default();
    let is_limit = |name: &str| {
        let page = name.strip_prefix("hugetlb.")?.split('.').next()?.to_owned();
        let kind = name.strip_prefix("hugetlb.")?.strip_prefix(&page)?;
        match kind {
            ".max" | ".limit_in_bytes" => Some(page),
            ".rsvd.max" | ".rsvd.limit_in_bytes" => Some(format!("{page}-reserved")),
            _ => None,
        }
    };
    names.iter().filter_map(|name| Some((name.clone(), is_limit(name)?))).collect()
}

fn pool_limit(limit: Limit, page: &str) -> Option<Finding> {
    // Version 1 writes "no limit" as the largest number of whole pages.
    if limit.bytes > u64::MAX / 4 {
        return None;
    }
    let id = format!("cgroup-hugetlb-{page}");
    if limit.bytes > 0 {
        let finding = Finding::new(Container, Status::Info, id, size(limit.bytes));
        return Some(finding.why(format!("a program that touches more is killed ({})", limit.file)));
    }
    Some(
        Finding::new(Container, Status::Advice, id, "none allowed")
            .wanted("max, if --pages hugetlb is used in here")
            .why("the pool of the machine is closed to this control group")
            .command(format!("echo max | sudo tee {}", limit.file)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_reached_limit_gives_advice() {
        let limit = |bytes| Limit { bytes, file: "f".to_owned() };
        for (bytes, used, want) in
            [(8, Some(1), Status::Ok), (100, None, Status::Ok), (4, None, Status::Info)]
        {
            assert_eq!(memory_limit(limit(bytes), used, 8).status, want, "{bytes}");
        }
        assert_eq!(memory_limit(limit(1000), Some(950), 8000).status, Status::Advice);
        assert_eq!(memory_limit(limit(1000), Some(500), 8000).status, Status::Info);
    }

    #[test]
    fn closed_pool_gives_advice() {
        let limit = |bytes| Limit { bytes, file: "f".to_owned() };
        assert_eq!(pool_limit(limit(0), "2MB").unwrap().status, Status::Advice);
        assert_eq!(pool_limit(limit(2 << 20), "2MB").unwrap().status, Status::Info);
        assert_eq!(pool_limit(limit(u64::MAX), "2MB"), None);
        assert_eq!(pool_limit(limit(9_223_372_036_854_771_712), "2MB"), None);
    }
}
