//! Tests `largesse bench far` with a small program and the library itself.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const BENCH: &str = env!("CARGO_BIN_EXE_largesse-bench");

#[test]
fn cells_have_right_answers_and_evictions() {
    let far = ["run", "--local", "1M", "--far", "memory:", "--", "true"];
    let may = Command::new(Path::new(BENCH).with_file_name("largesse")).args(far).output();
    let may = may.expect("the command `largesse`, as `cargo build -p largesse-cli` makes it");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/far");
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join("walk");
    let made =
        Command::new("cc").arg("-O1").arg("-o").arg(program).arg(root.join("programs/walk.c")).status();
    if !may.status.success() || !made.is_ok_and(|made| made.success()) {
        eprintln!("skipped: no C compiler, or {}", String::from_utf8_lossy(&may.stderr).trim());
        return;
    }
    let mut command = Command::new(BENCH);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
        command.env_remove(name);
    }
    command.args(["far", "--runs", "2", "--json", "--programs"]).arg(root).env("PROGRAMS", programs.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let footprint = of("footprint")[0]["bytes"].as_u64().unwrap();
    assert!((16 << 20..17 << 20).contains(&footprint), "{footprint}");
    // Stock twice, and two sizes at half of 16 MiB; 5 % of it is less than the minimum.
    assert_eq!(of("run").len(), 2 * (2 + 2));
    for run in of("run").iter().filter(|run| run["local_percent"] == 50) {
        assert_eq!(run["local_bytes"], footprint / 2);
        assert!(run["far"]["evictions"].as_u64().unwrap() > 1000, "nothing left: {run}");
    }
    let answers: Vec<_> = of("cell").iter().map(|cell| cell["answer"].as_str().unwrap()).collect();
    assert_eq!((&answers[..], of("best").len()), (&["right", "none", "right", "none"][..], 1));
}
