//! Checks for features that this machine may lack. Each check reports which feature is absent.

use crate::skip::skipped;
use crate::user::is_root;
use std::process::{Command, Stdio};

/// Returns whether `program` can be started with these arguments. Otherwise reports that the test is skipped.
#[must_use]
pub fn has_program(program: &str, arguments: &[&str]) -> bool {
    let quiet = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let has = quiet.is_ok_and(|status| status.success());
    if !has {
        skipped(&format!("no {program} {}", arguments.join(" ")));
    }
    has
}

/// Returns whether this user may use the fault engine `events`, under which system calls wait for far pages in the
/// kernel. Otherwise reports that the test is skipped. All users may use the other engines.
#[must_use]
pub fn events_are_permitted() -> bool {
    let device = std::fs::File::options().read(true).write(true).open("/dev/userfaultfd");
    let switch = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd");
    let permitted = is_root() || device.is_ok() || switch.is_ok_and(|it| it.trim() == "1");
    if !permitted {
        skipped("far memory with --fault-engine events is not permitted here");
    }
    permitted
}

/// Returns whether the kernel offers transparent huge pages. Otherwise reports that the test is skipped.
#[must_use]
pub fn large_pages_are_available() -> bool {
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let given = mode.is_ok_and(|mode| !mode.contains("[never]"));
    if !given {
        skipped("this machine gives no transparent huge pages");
    }
    given
}
