//! Checks the limits of a process: locked memory, address space, number of mappings, segments of shared memory,
//! committed memory.

use crate::doctor::finding::Subject::Limits;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::machine::{MachineFacts, kib_field};
use crate::doctor::tree::Tree;
use largesse_machine::Unread;
use largesse_terminal::say::counted;
use largesse_terminal::size;

/// Name of the group whose members may lock memory and use `/dev/userfaultfd`.
pub(crate) const GROUP: &str = "largesse";
/// The file with the limits of this process.
pub(crate) const PROCESS: &str = "/proc/self/limits";
const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
const MAPPINGS: &str = "/proc/sys/vm/max_map_count";
const SEGMENT: &str = "/proc/sys/kernel/shmmax";
const SEGMENTS: &str = "/proc/sys/kernel/shmall";
const FILES: [&str; 5] = [PROCESS, OVERCOMMIT, MAPPINGS, SEGMENT, SEGMENTS];

pub(crate) fn findings(tree: &Tree, machine: &MachineFacts) -> Vec<Finding> {
    let limits = tree.read(PROCESS).unwrap_or_default();
    let meminfo = tree.read("/proc/meminfo").unwrap_or_default();
    let mut findings = Vec::new();
    findings.extend(soft(&limits, "Max locked memory").map(|limit| locked(limit, machine)));
    findings.extend(soft(&limits, "Max address space").map(|limit| address_space(limit, machine.memory)));
    findings.extend(tree.number(OVERCOMMIT).map(|mode| overcommit(mode, &meminfo)));
    findings.extend(tree.number(MAPPINGS).map(mappings));
    let (most, all) = (tree.number(SEGMENT), tree.number(SEGMENTS));
    let page = machine.page_size.unwrap_or(4096);
    findings.extend(
        most.zip(all).map(|(most, all)| segments(most.min(all.saturating_mul(page)), machine.memory)),
    );
    let unread: Vec<Unread> = FILES.iter().filter_map(|file| tree.unread(file)).collect();
    if let [first, rest @ ..] = &unread[..] {
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!(", nor {}", counted(rest.len() as u64, "other file"))
        };
        findings.push(Finding::unread(Limits, "limits", first).why(format!("{first}{more}")));
    }
    findings
}

/// Returns a soft limit in `/proc/self/limits`, or `u64::MAX` for "unlimited".
pub(crate) fn soft(limits: &str, name: &str) -> Option<u64> {
    let values = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match values.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Returns the bytes that members of our group may lock: half of the machine's memory.
pub(crate) fn lockable(memory: u64) -> u64 {
    memory / 2
}

fn amount(bytes: u64) -> String {
    if bytes == u64::MAX { "unlimited".to_owned() } else { size(bytes) }
}

fn locked(limit: u64, machine: &MachineFacts) -> Finding {
    let mut now = amount(limit);
    let wanted = lockable(machine.memory);
    if machine.is_root() && limit < wanted {
        now += " (root is not bound by it)";
    }
    if limit >= wanted {
        return Finding::new(Limits, Status::Ok, "memlock", now);
    }
    let command = if machine.read_only {
        format!("docker run --ulimit memlock={wanted} …")
    } else {
        format!(
            "sudo largesse doctor --fix && sudo usermod -aG {GROUP} {}   # then log in again",
            machine.whom()
        )
    };
    Finding::new(Limits, Status::Advice, "memlock", now)
        .wanted(format!("{} for group {GROUP}", size(wanted)))
        .why("--lock keeps no more than this in memory")
        .command(command)
}

fn address_space(limit: u64, memory: u64) -> Finding {
    if limit == u64::MAX {
        return Finding::new(Limits, Status::Ok, "address-space", "unlimited");
    }
    // The heap reserves a far larger range of addresses than it uses.
    let status = if limit < memory.saturating_mul(2) { Status::Problem } else { Status::Advice };
    Finding::new(Limits, status, "address-space", size(limit))
        .wanted("unlimited")
        .why("large blocks come from one reserved range of addresses, which may not fit; limit memory by a cgroup")
        .command("ulimit -v unlimited   # or the line `as` in /etc/security/limits.conf, or the job's --mem")
}

fn overcommit(mode: u64, meminfo: &str) -> Finding {
    let id = "overcommit";
    if mode != 2 {
        let now = if mode == 1 { "always (1)" } else { "heuristic (0)" };
        return Finding::new(Limits, Status::Ok, id, now);
    }
    let limit = kib_field(meminfo, "CommitLimit").unwrap_or(0);
    let taken = kib_field(meminfo, "Committed_AS").unwrap_or(0);
    let left = limit.saturating_sub(taken);
    Finding::new(Limits, Status::Advice, id, format!("strict (2): {} of {} left", size(left), size(limit)))
        .wanted("heuristic (0), or a limit that programs fit in")
        .why("every byte a program may write counts at once, touched or not; requests beyond it fail")
        .command("sudo sysctl vm.overcommit_memory=0   # or vm.overcommit_ratio=90")
}

fn mappings(limit: u64) -> Finding {
    const DEFAULT: u64 = 65530;
    if limit >= DEFAULT {
        return Finding::new(Limits, Status::Ok, "map-count", limit.to_string());
    }
    Finding::new(Limits, Status::Advice, "map-count", limit.to_string())
        .wanted(format!("{DEFAULT}, the kernel's default"))
        .why("each block on another kind of page is a separate mapping, and their number may run out")
        .command(format!("sudo sysctl vm.max_map_count={DEFAULT}"))
}

fn segments(limit: u64, memory: u64) -> Finding {
    if limit >= memory {
        return Finding::new(Limits, Status::Ok, "shm", "shmmax and shmall do not limit");
    }
    Finding::new(Limits, Status::Info, "shm", size(limit))
        .why("limits System V segments; largesse makes none, but old programs may")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max locked memory         8388608              8388608              bytes     \n\
                          Max address space         unlimited            unlimited            bytes     \n";

    #[test]
    fn limits_are_parsed() {
        assert_eq!(soft(LIMITS, "Max locked memory"), Some(8 << 20));
        assert_eq!(soft(LIMITS, "Max address space"), Some(u64::MAX));
        assert_eq!(soft(LIMITS, "Max cpu time"), None);
    }

    #[test]
    fn low_address_limit_is_problem() {
        for (limit, want) in [(u64::MAX, Status::Ok), (3 << 30, Status::Problem), (1 << 40, Status::Advice)] {
            assert_eq!(address_space(limit, 4 << 30).status, want, "{limit}");
        }
    }

    #[test]
    fn strict_overcommit_shows_remainder() {
        let meminfo = "CommitLimit:    4194304 kB\nCommitted_AS:   1048576 kB\n";
        let strict = overcommit(2, meminfo);
        assert_eq!((strict.status, &*strict.now), (Status::Advice, "strict (2): 3 GiB of 4 GiB left"));
        assert_eq!(overcommit(0, meminfo).status, Status::Ok);
    }

    #[test]
    fn segment_limit_is_information() {
        assert_eq!(segments(u64::MAX, 1 << 30).status, Status::Ok);
        assert_eq!(segments(32 << 20, 1 << 30).status, Status::Info);
    }
}
