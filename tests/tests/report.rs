//! Tests `--report`: there is one report for all processes, however they end.

use largesse_tests::{Exit, Run, Stage, large_pages_are_available, users};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;

fn stage() -> Option<(Stage, String)> {
    let stage = Stage::new();
    let program = stage.compiled("ends.c", &[])?.to_str()?.to_owned();
    Some((stage, program))
}

/// Returns the process in the report whose command line has `word`.
fn process<'a>(report: &'a Value, word: &str) -> &'a Value {
    let all = report["processes"].as_array().unwrap();
    let has = |one: &&Value| one["command"].as_array().is_some_and(|words| words.iter().any(|it| it == word));
    all.iter().find(has).unwrap_or_else(|| panic!("no process with {word} in {report:#}"))
}

#[test]
fn every_end_is_reported() {
    let Some((stage, program)) = stage() else { return };
    for (how, exit, state, status, signal) in [
        ("exit", Exit::Code(3), "finished", json!(3), Value::Null),
        ("_exit", Exit::Code(7), "finished", json!(7), Value::Null),
        ("abort", Exit::Signal(6), "killed", Value::Null, json!("SIGABRT")),
        ("kill", Exit::Signal(9), "killed", Value::Null, json!("SIGKILL")),
        ("child", Exit::Code(3), "finished", json!(3), Value::Null),
    ] {
        for user in users() {
            let ran = Run::new(&stage, &[&*program, how]).as_user(user).under(&[]).input("go\n").finish();
            let report = &ran.report;
            assert_eq!(ran.exit, exit, "{how}: {ran:#?}");
            let pid = ran.stdout.split_whitespace().last().and_then(|it| it.parse::<u64>().ok());
            assert_eq!(
                report["launched_pid"].as_u64(),
                pid,
                "the program has the launcher's number: {ran:#?}"
            );
            let said = (&report["state"], &report["status"], &report["signal"]);
            assert_eq!(said, (&json!(state), &status, &signal), "{how}: {report:#}");
            assert_eq!(report["counters"]["peak_bytes"], 32 * MIB, "{how}: {report:#}");
            assert!(report["seconds"].as_f64() > Some(0.0) && report["version"].is_string(), "{report:#}");
            // When a process is killed, the report has only the values of the watcher's last sample.
            if large_pages_are_available() && ["exit", "child"].contains(&how) {
                let large = report["large_peak_bytes"].as_u64();
                assert!(large >= Some(16 * MIB), "{how}: {large:?} bytes on large pages");
            }
        }
    }
}

#[test]
fn report_of_a_script_has_its_programs() {
    let Some((stage, program)) = stage() else { return };
    let script = format!("{program} exit </dev/null; {program} abort </dev/null; exit 5");
    let ran = Run::new(&stage, &["/bin/sh", "-c", &script]).under(&[]).finish();
    assert_eq!(ran.exit, Exit::Code(5), "{ran:#?}");
    let report = &ran.report;
    assert_eq!(report["counters"]["allocations"], 1, "{report:#}");
    assert_eq!(report["tree"]["counters"]["allocations"], 2, "{report:#}");
    assert_eq!(process(report, "exit")["status"], 3, "{report:#}");
    assert_eq!(process(report, "abort")["signal"], "SIGABRT", "{report:#}");
    assert_eq!(process(report, &script)["status"], 5, "{report:#}");
}

#[test]
fn forked_child_has_a_record_of_its_own() {
    let Some((stage, program)) = stage() else { return };
    let ran = Run::new(&stage, &[&*program, "child"]).under(&[]).input("go\n").finish();
    let all = ran.report["processes"].as_array().unwrap();
    let child = all.iter().find(|one| one["parent"] == ran.report["launched_pid"]).unwrap();
    assert_eq!(child["signal"], "SIGSEGV", "{:#}", ran.report);
    assert_eq!(child["counters"]["allocations"], 2, "its parent's block and its own: {:#}", ran.report);
    assert_eq!(ran.report["counters"]["allocations"], 1, "{:#}", ran.report);
}

/// Runs the program `words` with far memory in the scratch folder, and writes its report to `report`.
fn reported(stage: &Stage, report: &str, words: &[&str]) -> Output {
    let mut command = Command::new(stage.command());
    command.args(["run", "--local", "4M", "--far", &stage.store(), "--report", report, "--"]).args(words);
    command
        .env("LARGESSE_LIBRARY", stage.library())
        .env("TMPDIR", stage.scratch())
        .current_dir(stage.scratch());
    command.output().unwrap()
}

#[test]
fn picture_that_largesse_did_not_draw_is_not_overwritten() {
    let Some((stage, program)) = stage() else { return };
    let picture = stage.scratch().join("got.svg");
    std::fs::write(&picture, "a user's").unwrap();
    let output = reported(&stage, "got.json", &[&program, "exit"]);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("got.svg is there already"), "{messages}");
    assert_eq!(std::fs::read_to_string(&picture).unwrap(), "a user's");
    std::fs::remove_file(&picture).unwrap();
    for round in 0..2 {
        let output = reported(&stage, "got.json", &[&program, "exit"]);
        assert!(output.stderr.is_empty(), "{round}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(std::fs::read_to_string(&picture).unwrap().contains("</svg>"));
    }
    let report: Value =
        serde_json::from_slice(&std::fs::read(stage.scratch().join("got.json")).unwrap()).unwrap();
    assert!(report["timeline"].as_array().is_some_and(|rows| !rows.is_empty()), "{report:#}");
}

#[test]
fn dash_writes_the_report_to_standard_output() {
    let stage = Stage::new();
    let output = reported(&stage, "-", &["/bin/true"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["state"], "finished", "{report:#}");
    let left: Vec<_> =
        std::fs::read_dir(stage.scratch()).unwrap().flatten().map(|it| it.file_name()).collect();
    assert!(left.is_empty(), "nothing is left behind: {left:?}");
    assert!(!Path::new("-").exists());
}

#[test]
fn program_that_is_not_started_leaves_no_report() {
    let stage = Stage::new();
    let output = reported(&stage, "got.json", &["/nowhere/program"]);
    assert_eq!(output.status.code(), Some(127));
    assert_eq!(std::fs::read_dir(stage.scratch()).unwrap().count(), 0);
}
