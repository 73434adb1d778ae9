//! Tests `--report`: there is one report for all processes, however they end.

use largesse_tests::{Exit, Run, Stage, large_pages_are_available, skipped, users};
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

/// Returns whether a command that starts programs in namespaces of their own works here.
fn works(prefix: &[&str]) -> bool {
    let tried = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
    tried.is_ok_and(|done| done.status.success())
}

#[test]
fn processes_that_are_not_watched_are_reported() {
    let stage = Stage::new();
    let no_inotify = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"";
    // Children that end at once, more children at a time than the watcher can have descriptors, and no inotify.
    for (prefix, children, loops) in [
        (&["env"][..], "/bin/true; /bin/true", 60),
        (&["prlimit", "--nofile=20:20"], "/bin/sleep 0.3 & /bin/sleep 0.3 &", 5),
        (&["unshare", "-Ur", "sh", "-c", no_inotify, "sh"], "/bin/true; /bin/true", 2),
    ] {
        if !works(prefix) {
            skipped(&format!("{prefix:?} does not work"));
            continue;
        }
        let script = format!("for i in $(seq {loops}); do {children} done; wait; exit 5")
            .replace("true done", "true; done");
        let ran = Run::new(&stage, &["/bin/sh", "-c", &script]).under(&[]).started_by(prefix).finish();
        assert_eq!((ran.exit, &ran.report["status"]), (Exit::Code(5), &json!(5)), "{prefix:?}: {ran:#?}");
        // The shell's own child that lists the numbers is a process, too.
        let count = |word: &str| {
            let all = ran.report["processes"].as_array().unwrap();
            all.iter().filter(|one| one["command"][0] == word).count()
        };
        assert_eq!(count("/bin/true") + count("/bin/sleep"), 2 * loops, "{prefix:?}: {:#}", ran.report);
        let has_limit = ran.hints.contains("more processes ran than the report can watch (4 at a time");
        assert_eq!(has_limit, prefix[0] == "prlimit", "{prefix:?}: {}", ran.hints);
    }
}

#[test]
fn folder_without_fallocate_has_records() {
    let stage = Stage::new();
    let temporary = stage.scratch().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mounted = |kind: &str| format!("mount -t {kind} none {} && exec \"$@\"", temporary.display());
    let (plain, full) = (mounted("ramfs"), mounted("tmpfs -o nr_inodes=2"));
    let prefix = |script| ["unshare", "--mount", "sh", "-c", script, "sh"];
    if !works(&prefix(&plain)) {
        return skipped("no mounts of our own");
    }
    let run = |script| {
        let run = Run::new(&stage, &["/bin/true"]).under(&[]).started_by(&prefix(script));
        run.variable("TMPDIR", &temporary).finish().succeeded()
    };
    let ran = run(&plain);
    assert_eq!(ran.report["processes"][0]["command"][0], "/bin/true", "{ran:#?}");
    let ran = run(&full);
    assert!(
        ran.hints.contains("is missing in the report: ") && ran.hints.contains("No space left"),
        "{ran:#?}"
    );
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

/// Far memory holds the shell's small blocks, too, which must not hide the program that the script starts.
#[test]
fn far_program_of_a_script_has_picture_and_counters() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("limits.c", &[]) else { return };
    let folder = stage.scratch();
    let script = format!("{} dense 24 24; true", program.display());
    let mut run = Command::new(stage.command());
    run.args([
        "run",
        "--local",
        "8M",
        "--far",
        &stage.store(),
        "--report",
        "x.json",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let output = run.env("LARGESSE_LIBRARY", stage.library()).current_dir(&folder).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(folder.join("x.json")).unwrap()).unwrap();
    let written = report["far"]["bytes_out"].as_u64().unwrap();
    assert!(written >= 12 * MIB, "{report:#}");
    assert!(report["command"][0].as_str().is_some_and(|word| word.contains("/limits")), "{report:#}");
    assert_ne!(report["pid"], report["launched_pid"], "{report:#}");
    let picture = std::fs::read_to_string(folder.join("x.svg")).unwrap();
    assert!(picture.contains("<svg") && picture.contains("limits"), "{picture}");
}
