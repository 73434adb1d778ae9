//! Tests programs in a control group with a limit: a program that fits without Largesse fits with it, too.

use largesse_tests::{Stage, confined, could_not_confine};
use std::process::{Command, Output};

struct Group {
    stage: Stage,
    program: String,
}

impl Group {
    /// Makes a control group. Where that is not possible, reports why the test is skipped and returns `None`.
    fn new() -> Option<Group> {
        let stage = Stage::new();
        let program = stage.compiled("limits.c", &[])?.display().to_string();
        Some(Group { stage, program })
    }

    fn run(&self, limit_mib: u64, words: &[&str]) -> Output {
        let before = confined(limit_mib, 60);
        let mut command = Command::new(&before[0]);
        command.args(&before[1..]);
        let largesse = self.stage.command().display().to_string();
        command.args([&largesse, "run", "--", &self.program]).args(words);
        command.env("LARGESSE_LIBRARY", self.stage.library()).output().expect("a shell")
    }
}

#[test]
fn program_that_fits_is_not_killed() {
    let Some(group) = Group::new() else { return };
    for (limit_mib, words) in [
        (156, ["dense", "512", "150"]),
        (262, ["dense", "256", "256"]),
        (264, ["dense", "256", "256"]),
        (64, ["sparse", "512", "0"]),
        (200, ["sparse", "512", "0"]),
        (100, ["sparse", "512", "60"]),
        (150, ["sparse", "64", "60"]),
        (64, ["blocks", "256", "0"]),
        (150, ["mappings", "512", "0"]),
        (64, ["small", "512", "0"]),
        (1100, ["small", "4096", "0"]),
        (100, ["growing", "512", "0"]),
        (100, ["moving", "512", "0"]),
        (150, ["freed", "100", "100"]),
        (200, ["forked", "100", "0"]),
    ] {
        let done = group.run(limit_mib, &words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if could_not_confine(&done) {
            return;
        }
        let (said, why) = (text(&done.stdout), text(&done.stderr));
        assert!(
            done.status.success() && said.starts_with("done"),
            "{words:?} under {limit_mib} MiB ended with {}: {said}{why}",
            done.status
        );
    }
}
