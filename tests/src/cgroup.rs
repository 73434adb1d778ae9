//! Runs programs in a control group of their own, which `docs/examples/in-cgroup.sh` creates.

use crate::built::workspace;
use crate::skip::skipped;
use std::process::Output;

/// The exit status of `in-cgroup.sh` if it cannot create a control group.
const CANNOT: i32 = 77;

/// Returns the start of a command line that limits the rest of it to `limit_mib` MiB of memory and `seconds` of time.
#[must_use]
pub fn confined(limit_mib: u64, seconds: u32) -> Vec<String> {
    let script = workspace().join("docs/examples/in-cgroup.sh").display().to_string();
    vec!["timeout".into(), seconds.to_string(), script, limit_mib.to_string()]
}

/// Returns whether a confined command did not run because no control group can be created on this machine. If so,
/// reports that the test is skipped.
#[must_use]
pub fn could_not_confine(done: &Output) -> bool {
    let cannot = done.status.code() == Some(CANNOT);
    if cannot {
        skipped(String::from_utf8_lossy(&done.stderr).trim_start_matches("skipped: ").trim());
    }
    cannot
}
