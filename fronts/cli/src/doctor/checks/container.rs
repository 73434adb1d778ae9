//! What contains us, and which system calls it forbids: found by trying each one.

use crate::doctor::finding::Subject::Container;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Live, Verdict};
use crate::doctor::machine::{FIRST_PROCESS, MachineFacts};
use crate::doctor::tree::Tree;

/// What can be lost without a call, and how to get it back.
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
    let contained = machine.container.clone().unwrap_or_else(|| "no sign of one".to_owned());
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

/// Why a call was not granted.
pub(crate) fn cause(verdict: Verdict, machine: &MachineFacts) -> String {
    match verdict {
        Verdict::Granted => "allowed".to_owned(),
        Verdict::Killed(libc::SIGSYS) => "forbidden by seccomp, which kills the caller".to_owned(),
        Verdict::Killed(signal) => format!("killed by signal {signal}"),
        Verdict::Refused(libc::EPERM | libc::EACCES) if machine.seccomp => {
            "forbidden, most likely by seccomp".to_owned()
        }
        Verdict::Refused(libc::ENOSYS) if machine.seccomp => "not there, or hidden by seccomp".to_owned(),
        Verdict::Refused(libc::ENOSYS) => "this kernel has none".to_owned(),
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
    // On one node there is no other place to go to.
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
        .why(format!("benches go without counters of faults{setting}"))
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
    fn a_filter_is_told_from_a_missing_call_and_from_a_missing_right() {
        check(Verdict::Killed(libc::SIGSYS), true, "forbidden by seccomp, which kills the caller");
        check(Verdict::Refused(libc::EPERM), true, "forbidden, most likely by seccomp");
        check(Verdict::Refused(libc::EPERM), false, "not permitted to this user");
        check(Verdict::Refused(libc::ENOSYS), true, "not there, or hidden by seccomp");
        check(Verdict::Refused(libc::ENOSYS), false, "this kernel has none");
        check(Verdict::Refused(libc::EINVAL), false, "failed: Invalid argument");
    }

    #[test]
    fn placement_matters_on_several_nodes_only() {
        let status = |nodes| judge(&CALLS[1], Verdict::Refused(libc::EPERM), &machine(true, nodes)).status;
        assert_eq!(status(Some(1)), Status::Info);
        assert_eq!(status(Some(2)), Status::Advice);
        assert_eq!(status(None), Status::Advice);
    }
}
