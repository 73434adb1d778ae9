//! Programs in a control group of their own, which `docs/examples/in-cgroup.sh` makes.

use crate::built::workspace;
use crate::skip::skipped;
use std::process::Output;

/// The status with which the script ends where it can make no group.
const CANNOT: i32 = 77;

/// Words before a command that limit its memory to `limit_mib` MiB and its time to `seconds`.
#[must_use]
pub fn confined(limit_mib: u64, seconds: u32) -> Vec<String> {
    let script = workspace().join("docs/examples/in-cgroup.sh").display().to_string();
    vec!["timeout".into(), seconds.to_string(), script, limit_mib.to_string()]
}

/// Returns whether a confined command did not run because no control group can be created here, and prints so.
#[must_use]
pub fn could_not_confine(done: &Output) -> bool {
    let cannot = done.status.code() == Some(CANNOT);
    if cannot {
        skipped(String::from_utf8_lossy(&done.stderr).trim_start_matches("skipped: ").trim());
    }
    cannot
}
