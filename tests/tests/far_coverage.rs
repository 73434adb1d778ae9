//! The library names memory that `--local` does not bound: while the program runs, and when it ends.

use largesse_tests::{Exit, Run, Stage, is_root, skipped, users};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

#[test]
fn memory_beyond_the_bound_is_named() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("limits.c", &[]) else { return };
    let store = stage.store();
    for user in users() {
        for (kind, words) in [
            ("executable", Some("MiB in mappings without reserved memory")),
            ("reserved", None),
            ("shared", Some("MiB in shared mappings")),
            ("dense", None),
        ] {
            let run = Run::new(&stage, &[&program]).arg(kind).arg("100").arg("100").as_user(user);
            let ran = run.under(&["--local", "16M", "--far", &store]).finish();
            assert_eq!(
                (ran.exit, ran.stdout.as_str()),
                (Exit::Code(0), "done\n"),
                "{user:?} {kind} {ran:#?}"
            );
            match words {
                Some(words) => assert!(
                    ran.hints.contains("not covered by --local, which is 16 MiB now: 10")
                        && ran.hints.contains(words),
                    "{user:?} {kind} {ran:#?}"
                ),
                None => assert!(!ran.hints.contains("not covered"), "{user:?} {kind} {ran:#?}"),
            }
        }
    }
}

/// Runs a shell command, in which `$0` is the program, and asserts that one line says how many of its bytes are not
/// covered, and that it names the process if it `has_name`.
#[track_caller]
fn check_one_line(run: &Run<'_>, has_name: bool) {
    let ran = run.finish();
    assert_eq!((ran.exit, ran.stderr.as_str()), (Exit::Code(0), ""), "{ran:#?}");
    let lines: Vec<&str> = ran.hints.lines().collect();
    let is_right = |line: &&str| {
        line.starts_with("largesse: limits.bin (process ") == has_name
            && line.contains(" MiB of this program's memory are not covered by --local")
    };
    assert!(lines.len() == 1 && lines.iter().all(is_right), "one line, with a name: {has_name} {ran:#?}");
}

#[test]
fn any_process_reports_for_all() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("limits.c", &[]) else { return };
    let store = stage.store();
    for user in users() {
        let shell = |script: &str| {
            let words = ["sh".into(), "-c".into(), script.into(), program.clone().into_os_string()];
            Run::new(&stage, &words).as_user(user)
        };
        let options = ["--local", "16M", "--far", &store];
        for script in [
            "$0 shared 100 100; $0 shared 100 100; true",
            "sh -c '$0 shared 100 100; $0 shared 100 100' $0; true",
        ] {
            check_one_line(&shell(script).under(&options), true);
        }
        check_one_line(&shell("exec $0 workers 100 100").under(&options), true);
        check_one_line(&shell("exec $0 shared 100 100").under(&options), false);
        // As in a session that has loaded the library without the launcher.
        let variables = format!("LARGESSE_LOCAL=16M LARGESSE_FAR={store} LD_PRELOAD=$LARGESSE_LIBRARY");
        check_one_line(&shell(&format!("{variables} $0 shared 100 100; true")), false);
        check_one_line(&shell(&format!("{variables} $0 workers 100 100; true")), true);
    }
}

/// The outputs about a program while it ran: the first line that the library wrote, the output of `largesse status PID`
/// at that time, and the messages from then on until the program had ended.
#[derive(Debug)]
struct Seen {
    line: String,
    status: Value,
    table: String,
    rest: String,
    report: Value,
}

/// Runs a program with 100 MiB of memory of this kind until the library has written a line. Then ends it: by SIGKILL
/// if `is_killed`, otherwise by the end of its input.
fn seen(stage: &Stage, kind: &str, is_killed: bool) -> Option<Seen> {
    let program = stage.compiled("limits.c", &[])?;
    let report = stage.scratch().join(format!("{kind}-{is_killed}.json"));
    let mut run = Command::new(stage.command());
    run.args(["run", "--local", "16M", "--far", &stage.store(), "--report"])
        .arg(&report)
        .arg("--")
        .arg(program);
    run.args([kind, "100", "100"]).env("LARGESSE_LIBRARY", stage.library());
    let mut child =
        run.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("largesse");
    let mut messages = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    messages.read_line(&mut line).expect("a line");
    let status = |options: &[&str]| {
        let pid = child.id().to_string();
        let shown = Command::new(stage.command()).args(["status", &pid]).args(options).output();
        shown.expect("largesse").stdout
    };
    let json = serde_json::from_slice(&status(&["--json"])).unwrap_or_default();
    let table = String::from_utf8_lossy(&status(&[])).into_owned();
    if is_killed {
        child.kill().expect("a process");
    }
    drop(child.stdin.take());
    child.wait().expect("an end");
    let mut rest = String::new();
    messages.read_to_string(&mut rest).expect("UTF-8");
    let report = std::fs::read(&report).expect("a report");
    Some(Seen { line, status: json, table, rest, report: serde_json::from_slice(&report).expect("JSON") })
}

#[test]
fn unbounded_memory_is_reported_once() {
    if !is_root() {
        return skipped("largesse status needs the right to read other processes");
    }
    let stage = Stage::new();
    for is_killed in [false, true] {
        let Some(seen) = seen(&stage, "held", is_killed) else { return };
        assert!(
            seen.line.contains(" MiB of this program's memory are not covered by --local")
                && seen.rest.is_empty(),
            "one line: {seen:#?}"
        );
        let mib = seen.status["far"]["uncovered_bytes"].as_u64().unwrap_or(0) >> 20;
        assert!(seen.line.contains(&format!("{mib} MiB of this program's")), "the same amount: {seen:#?}");
        assert!((100..110).contains(&mib), "{mib} MiB instead of 100: {seen:#?}");
        assert!(seen.table.contains("not covered by --local"), "the table: {seen:#?}");
        let reported = seen.report["far"]["uncovered_bytes"].as_u64().unwrap_or(0) >> 20;
        assert_eq!(reported, mib, "MiB in the report, killed: {is_killed}: {seen:#?}");
    }
}
