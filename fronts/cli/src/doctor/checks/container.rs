//! Checks for a container, and for system calls that it forbids.

use crate::doctor::finding::Subject::Container;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Live, Verdict};
use crate::doctor::machine::{FIRST_PROCESS, MachineFacts};
use crate::doctor::tree::Tree;

/// A system call, the consequence of its absence, and the remedy.
struct CheckedCall {
    name: &'static str,
    why: &'static str,
    command: &'static str,
}

const CALLS: &[CheckedCall] = &[
    CheckedCall {
        name: "memfd_create",
        why: "largesse status reads a named memfd; without it blocks are not shown",
        command: "docker run --security-opt seccomp=PROFILE.json …   # a profile that allows memfd_create",
    },
    CheckedCall {
        name: "mbind",
        why: "--node and --interleave are not granted; blocks go where they are first touched",
        command: "docker run --cap-add SYS_NICE …",
    },
    CheckedCall {
        name: "move_pages",
        why: "largesse status cannot say on which node a block is",
        command: "docker run --security-opt seccomp=PROFILE.json …   # a profile that allows move_pages",
    },
];

pub(crate) fn findings(tree: &Tree, live: &Live, machine: &MachineFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let seccomp = if machine.seccomp { "filter on" } else { "no filter" };
    let status = if machine.seccomp { Status::Info } else { Status::Ok };
    let contained = machine.container.clone().unwrap_or_else(|| "none found".to_owned());
    let told = if machine.container.is_some() { Status::Info } else { Status::Ok };
    let unread = tree.unread(FIRST_PROCESS).filter(|_| machine.container.is_none());
    findings.push(match unread {
        Some(unread) => Finding::unread(Container, "container", &unread),
        None => Finding::new(Container, told, "container", contained),
    });
    findings.push(Finding::new(Container, status, "seccomp", seccomp));
    findings.extend(CALLS.iter().filter_map(|call| Some(judge(call, live.trial(call.name)?, machine))));
    let paranoid = tree.read("/proc/sys/kernel/perf_event_paranoid");
    findings
        .extend(live.trial("perf_event_open").map(|verdict| counters(verdict, machine, paranoid.as_deref())));
    findings
}

/// Returns a verdict in words, with the probable cause of a refusal.
pub(crate) fn cause(verdict: Verdict, machine: &MachineFacts) -> String {
    match verdict {
        Verdict::Granted => "allowed".to_owned(),
        Verdict::Killed(libc::SIGSYS) => "forbidden by seccomp, which kills the caller".to_owned(),
        Verdict::Killed(signal) => format!("killed by signal {signal}"),
        Verdict::Refused(libc::EPERM | libc::EACCES) if machine.seccomp => {
            "forbidden, most likely by seccomp".to_owned()
        }
        Verdict::Refused(libc::ENOSYS) if machine.seccomp => "missing, or hidden by seccomp".to_owned(),
        Verdict::Refused(libc::ENOSYS) => "this kernel does not have it".to_owned(),
        Verdict::Refused(libc::EPERM | libc::EACCES) => "not permitted to this user".to_owned(),
        Verdict::Refused(errno) => {
            let text = std::io::Error::from_raw_os_error(errno).to_string();
            format!("failed: {}", text.split(" (os").next().unwrap_or_default())
        }
    }
}

fn judge(call: &CheckedCall, verdict: Verdict, machine: &MachineFacts) -> Finding {
    let now = cause(verdict, machine);
    if verdict == Verdict::Granted {
        return Finding::new(Container, Status::Ok, call.name, now);
    }
    let about_nodes = call.name != "memfd_create";
    // With a single node, placement does not matter.
    let status = if about_nodes && machine.nodes == Some(1) { Status::Info } else { Status::Advice };
    let command = if machine.seccomp {
        call.command
    } else {
        "a kernel that has the call (CONFIG_NUMA, CONFIG_MEMFD_CREATE)"
    };
    let finding = Finding::new(Container, status, call.name, now).why(call.why);
    if status == Status::Info {
        finding.why("matters only on several nodes")
    } else {
        finding.wanted("allowed").command(command)
    }
}

fn counters(verdict: Verdict, machine: &MachineFacts, paranoid: Option<&str>) -> Finding {
    let now = cause(verdict, machine);
    if verdict == Verdict::Granted {
        return Finding::new(Container, Status::Ok, "perf", now);
    }
    let setting =
        paranoid.map(|level| format!(" (kernel.perf_event_paranoid is {level})")).unwrap_or_default();
    Finding::new(Container, Status::Info, "perf", now)
        .why(format!("benchmarks run without counters of page faults{setting}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(seccomp: bool, nodes: Option<usize>) -> MachineFacts {
        let tree = Tree::new(std::path::Path::new("/nowhere"));
        MachineFacts { seccomp, nodes, ..MachineFacts::read(&tree, &Live::default()) }
    }

    #[track_caller]
    fn check(verdict: Verdict, seccomp: bool, want: &str) {
        assert_eq!(cause(verdict, &machine(seccomp, Some(1))), want);
    }

    #[test]
    fn refusals_name_their_cause() {
        check(Verdict::Killed(libc::SIGSYS), true, "forbidden by seccomp, which kills the caller");
        check(Verdict::Refused(libc::EPERM), true, "forbidden, most likely by seccomp");
        check(Verdict::Refused(libc::EPERM), false, "not permitted to this user");
        check(Verdict::Refused(libc::ENOSYS), true, "missing, or hidden by seccomp");
        check(Verdict::Refused(libc::ENOSYS), false, "this kernel does not have it");
        check(Verdict::Refused(libc::EINVAL), false, "failed: Invalid argument");
    }

    #[test]
    fn placement_needs_several_nodes() {
        let status = |nodes| judge(&CALLS[1], Verdict::Refused(libc::EPERM), &machine(true, nodes)).status;
        assert_eq!(status(Some(1)), Status::Info);
        assert_eq!(status(Some(2)), Status::Advice);
        assert_eq!(status(None), Status::Advice);
    }
}
