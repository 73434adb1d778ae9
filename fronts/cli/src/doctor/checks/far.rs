//! Checks the permission to open a userfaultfd, which far memory uses and large pages do not need.

use super::container::cause;
use super::limits::GROUP;
use crate::doctor::finding::Subject::Far;
use crate::doctor::finding::{Finding, Status};
use crate::doctor::live::{Device, Live, Verdict};
use crate::doctor::machine::{MAY_PTRACE, MachineFacts};
use crate::doctor::tree::Tree;

pub(crate) const DEVICE: &str = "/dev/userfaultfd";
pub(crate) const FOR_ALL: &str = "/proc/sys/vm/unprivileged_userfaultfd";
pub(crate) const MODE: u32 = 0o660;
const IDLE_DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
/// The file with the maximum nanoseconds for which an idle processor polls before it halts.
const IDLE_POLL: &str = "/sys/module/haltpoll/parameters/guest_halt_poll_ns";

pub(crate) fn findings(tree: &Tree, live: &Live, machine: &MachineFacts) -> Vec<Finding> {
    let for_all = tree.number(FOR_ALL) == Some(1);
    let group = group(tree, GROUP);
    let trials = Trials {
        device: live.trial("userfaultfd_device"),
        full: live.trial("userfaultfd"),
        user: live.trial("userfaultfd_user"),
    };
    let permission = permission(live.device, group.as_ref(), for_all, &trials, machine);
    [permission].into_iter().chain(idle(tree)).collect()
}

/// Checks whether idle processors of a virtual machine poll for work before they halt, since waking a halted one takes
/// the hypervisor (measured: docs/results).
fn idle(tree: &Tree) -> Option<Finding> {
    let halts = tree.read(IDLE_DRIVER)? == "haltpoll" && tree.number(IDLE_POLL)? == 0;
    halts.then(|| {
        Finding::new(Far, Status::Info, "idle", "idle processors halt at once")
            .why("page faults of far memory take twice as long; but polling processors keep the host busy")
            .command(format!("echo 200000 | sudo tee {IDLE_POLL}"))
    })
}

struct Trials {
    device: Option<Verdict>,
    full: Option<Verdict>,
    /// Result for userfaultfd user mode, which needs no permission since Linux 5.11.
    user: Option<Verdict>,
}

/// A group in `/etc/group`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserGroup {
    pub(crate) number: u32,
    pub(crate) members: Vec<String>,
}

pub(crate) fn group(tree: &Tree, name: &str) -> Option<UserGroup> {
    let groups = tree.read("/etc/group")?;
    let line = groups.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    let number = fields.next()?.parse().ok()?;
    let members = fields.next().unwrap_or("").split(',').filter(|name| !name.is_empty());
    Some(UserGroup { number, members: members.map(str::to_owned).collect() })
}

/// Returns whether members of the group may open the device.
pub(crate) fn is_open_to(device: Device, group: Option<u32>) -> bool {
    let others = device.mode & 0o006 == 0o006;
    others || (Some(device.group) == group && device.mode & 0o060 == 0o060)
}

fn permission(
    device: Option<Device>,
    group: Option<&UserGroup>,
    for_all: bool,
    trials: &Trials,
    machine: &MachineFacts,
) -> Finding {
    let finding = |status, now: String| Finding::new(Far, status, "userfaultfd", now);
    let why = if trials.user == Some(Verdict::Granted) {
        "--local and --limit work without it, but filter the program's system calls then, and sudo fails in the program"
    } else {
        "far memory serves a program's page faults through it; large pages do not need it"
    };
    let number = group.map(|group| group.number);
    let open = device.is_some_and(|device| is_open_to(device, number));
    if !machine.is_root() && trials.device == Some(Verdict::Granted) {
        return finding(Status::Ok, format!("{DEVICE} opens"));
    }
    if for_all && trials.full != Some(Verdict::Killed(libc::SIGSYS)) {
        return finding(Status::Ok, "open to every user (vm.unprivileged_userfaultfd=1)".to_owned());
    }
    if machine.is_root() && open {
        return finding(Status::Ok, format!("{DEVICE} is open to group {GROUP}"));
    }
    if trials.user.is_some_and(|verdict| verdict != Verdict::Granted)
        && machine.version >= (5, 11)
        && machine.seccomp
    {
        let now = trials.user.map(|verdict| cause(verdict, machine)).unwrap_or_default();
        return finding(Status::Advice, now)
            .wanted("allowed")
            .why("far memory serves a program's page faults through it; large pages do not need it")
            .command(format!(
                "docker run --device {DEVICE} --group-add $(getent group {GROUP} | cut -d: -f3) …"
            ));
    }
    if open && !number.is_some_and(|number| machine.groups.contains(&number)) {
        return finding(
            Status::Advice,
            format!("{DEVICE} is open to group {GROUP}, of which you are not a member"),
        )
        .wanted("your membership")
        .why(why)
        .command("sudo usermod -aG largesse $USER   # then log in again");
    }
    let now = match device {
        Some(device) => format!("{DEVICE} is for root only (mode {:04o})", device.mode),
        None if machine.version >= (6, 1) => format!("no {DEVICE}"),
        None => format!("no {DEVICE} (it came with kernel 6.1)"),
    };
    let now = if machine.may(MAY_PTRACE) { format!("{now}; this process may (CAP_SYS_PTRACE)") } else { now };
    let finding = finding(Status::Advice, now).why(why);
    if device.is_some() {
        finding.wanted(format!("open to group {GROUP}, mode {MODE:04o}")).command(format!(
            "sudo largesse doctor --fix && sudo usermod -aG {GROUP} {}   # then log in again",
            machine.whom()
        ))
    } else {
        finding
            .wanted("kernel 6.1 with CONFIG_USERFAULTFD, or the right for every user")
            .command("sudo largesse doctor --fix --yes   # vm.unprivileged_userfaultfd=1: helps attackers of the kernel, too")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_mode_decides_access() {
        let device = |mode, group| Device { mode, user: 0, group };
        for (mode, of, ours, want) in [
            (0o600, 0, Some(5), false),
            (0o660, 5, Some(5), true),
            (0o660, 0, Some(5), false),
            (0o660, 0, None, false),
            (0o666, 0, None, true),
            (0o640, 5, Some(5), false),
        ] {
            assert_eq!(is_open_to(device(mode, of), ours), want, "{mode:o} {of}");
        }
    }

    #[test]
    fn groups_are_parsed() {
        let directory = std::env::temp_dir().join(format!("largesse-group-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("etc")).unwrap();
        std::fs::write(directory.join("etc/group"), "root:x:0:\nlargesse:x:991:ann,bob\n").unwrap();
        let tree = Tree::new(&directory);
        let found = group(&tree, "largesse").unwrap();
        assert_eq!((found.number, found.members.len()), (991, 2));
        assert_eq!(group(&tree, "large"), None);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
