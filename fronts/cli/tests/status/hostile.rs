//! Tests of `largesse status` on hostile processes.

use super::{TargetProcess, status, stdout};
use serde_json::Value;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Wall time that no command may exceed. Without load it takes a second; without bounds it would take minutes.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// A program that maps a page of a file whose path has 3600 characters, 6,000 times.
const LONG_NAMES: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    char name[201], top[64];
    if (count != 2 || chdir(words[1])) return 1;
    memset(name, 'n', 200);
    name[200] = 0;
    int folder = open(".", O_RDONLY), depth = 0;
    for (; depth < 18; depth++) {
        if (mkdir(name, 0700) || chdir(name)) return 2;
    }
    int file = open("file", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096)) return 3;
    for (int at = 0; at < 6000; at++) {
        if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED) return 4;
    }
    puts("ready");
    fflush(stdout);
    return getchar() != EOF;
}
"#;

/// Runs `largesse status PID`. Returns its standard error, and its highest resident memory in bytes.
fn status_with_peak(pid: &str) -> (String, i64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_largesse"));
    command.args(["status", pid]).stdout(Stdio::null()).stderr(Stdio::piped());
    #[expect(clippy::zombie_processes, reason = "`wait4` below waits for it")]
    let mut child = command.spawn().expect("largesse");
    let mut text = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut text).expect("text");
    // SAFETY: all zero bytes are valid for this plain structure, which the call fills.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    let child = child.id().cast_signed();
    // SAFETY: the structure is writable, and nothing else waits for the child.
    assert_eq!(unsafe { libc::wait4(child, core::ptr::null_mut(), 0, &raw mut usage) }, child);
    (text, usage.ru_maxrss * 1024)
}

/// Checks that the names of mappings are not collected: `maps` has more than 20 MiB here.
#[test]
fn long_names_take_little_memory() {
    let target = TargetProcess::started(LONG_NAMES, |program| {
        let mut command = Command::new(program);
        command.arg(program.parent().expect("a folder"));
        command
    });
    let Some(target) = target else { return };
    // First: the peak of a new process includes that of this one.
    let (text, peak) = status_with_peak(&target.pid());
    let maps = std::fs::read(format!("/proc/{}/maps", target.pid())).expect("a file").len();
    // On a busy machine the file is not read to its end within the second that each process gets.
    let ends = ["was not started with largesse run", "was not read within a second"];
    assert!(ends.iter().any(|end| text.contains(end)), "{text}");
    assert!(maps > 20 << 20 && peak < 20 << 20, "{} MiB for maps of {} MiB", peak >> 20, maps >> 20);
}
