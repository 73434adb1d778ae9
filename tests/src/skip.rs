//! What this machine has.

use crate::user::is_root;
use std::process::{Command, Stdio};

/// Say that a test, or a part of it, cannot run here.
#[expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Whether `program` starts with these arguments; says so when it does not.
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

/// Whether this user may have far memory; says so when not. An ordinary user needs `/dev/userfaultfd`.
#[must_use]
pub fn far_memory_is_permitted() -> bool {
    let device = std::fs::File::options().read(true).write(true).open("/dev/userfaultfd");
    let permitted = is_root() || device.is_ok();
    if !permitted {
        skipped("userfaultfd is not permitted here");
    }
    permitted
}

/// Whether the kernel gives transparent huge pages to whoever asks; says so when it does not.
#[must_use]
pub fn large_pages_are_available() -> bool {
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let given = mode.is_ok_and(|mode| !mode.contains("[never]"));
    if !given {
        skipped("this machine gives no transparent huge pages");
    }
    given
}
