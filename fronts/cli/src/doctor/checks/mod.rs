//! The checks, one file for each subject: functions from the kernel's files to findings.

pub(crate) mod cgroup;
pub(crate) mod container;
pub(crate) mod far;
pub(crate) mod hugetlb;
pub(crate) mod limits;
pub(crate) mod system;
pub(crate) mod thp;

use super::finding::{Finding, Status};
use super::live::Live;
use super::machine::MachineFacts;
use super::tree::Tree;

/// Returns all findings in the order in which they are shown.
pub(crate) fn all(tree: &Tree, live: &Live, machine: &MachineFacts) -> Vec<Finding> {
    let mut findings = system::findings(tree, live, machine);
    findings.extend(thp::findings(tree, live, machine));
    findings.extend(hugetlb::findings(tree, live));
    findings.extend(limits::findings(tree, machine));
    findings.extend(cgroup::findings(tree, machine));
    findings.extend(container::findings(tree, live, machine));
    findings.extend(far::findings(tree, live, machine));
    if machine.read_only {
        findings.iter_mut().for_each(send_to_host);
    }
    findings
}

/// Marks a command for the host if a container cannot run it, since `/sys` and `/proc/sys` are read-only.
fn send_to_host(finding: &mut Finding) {
    let hosts = ["/sys/", "sysctl", "doctor --fix"];
    let command = finding.command.as_deref().unwrap_or_default();
    if finding.status > Status::Info && hosts.iter().any(|word| command.contains(word)) {
        let why = finding.why.take().unwrap_or_default();
        finding.why = Some(format!("{why}. /sys is read-only in here: the command is for the host"));
    }
}
