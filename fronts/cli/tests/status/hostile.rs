//! Tests of `largesse status` on hostile processes.

use super::{TargetProcess, status, stdout};
use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Wall time that no command may exceed under the load of other tests; without load it takes a second.
const PATIENCE: Duration = Duration::from_secs(4);

#[track_caller]
fn check_harmless(output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(text).expect("text");
        let harmful = |letter: char| {
            (letter.is_control() && letter != '\n') || matches!(letter, '\u{202a}'..='\u{202e}')
        };
        assert!(!text.contains(harmful), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("Process 1:")), "a line that is another's: {text}");
    }
}

/// Checks that control characters in a store's name are escaped in all output.
#[test]
fn store_names_are_printable() {
    let Some(target) = TargetProcess::start("escapes") else { return };
    for arguments in [vec![target.pid()], vec![target.pid(), "--json".into()], vec![], vec!["--json".into()]]
    {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = status(&arguments);
        assert!(output.status.success(), "{output:?}");
        check_harmless(&output);
    }
    let text = stdout(&status(&[&target.pid()]));
    assert!(text.contains("file:/x\\u001b[2J\\u001b]0;title\\u0007\\nProcess 1: fine"), "{text}");
}

#[test]
fn command_lines_are_printable() {
    let mut sleeper = Command::new("sh");
    sleeper.args(["-c", "read line", "\x1b[2J\nProcess 1: fine\x07\u{9b}"]);
    let mut child = sleeper.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let output = status(&[&child.id().to_string()]);
    drop(child.stdin.take());
    child.wait().unwrap();
    check_harmless(&output);
}

/// Checks that the command ends in time: without a bound on their number, reading all blocks took minutes and gigabytes
/// of memory.
#[test]
fn excess_blocks_are_left_out() {
    let Some(target) = TargetProcess::start("many") else { return };
    for arguments in [vec![target.pid()], vec![]] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let begun = Instant::now();
        let output = status(&arguments);
        let took = begun.elapsed();
        assert!(took < PATIENCE, "{arguments:?} took {took:?}: {output:?}");
        // A slow machine cannot read all records in time, and reports that.
        let text = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        let named = text.contains(&format!("Process {} reports 2097152 blocks", target.pid()))
            || text.contains(&format!("process {} was left out", target.pid()));
        assert!(named, "{text}");
    }
}

/// Checks that permanently changing records are read a bounded number of times.
#[test]
fn restless_heap_takes_bounded_time() {
    let Some(target) = TargetProcess::start("restless") else { return };
    let begun = Instant::now();
    let shown: Result<Value, _> = serde_json::from_slice(&status(&[&target.pid(), "--json"]).stdout);
    let took = begun.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    if let Ok(shown) = shown {
        assert_eq!(shown["steady"], false, "{}", shown["left_out"]);
    }
}
